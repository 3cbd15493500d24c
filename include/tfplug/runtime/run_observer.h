// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_RUNTIME_RUN_OBSERVER_H_
#define TFPLUG_RUNTIME_RUN_OBSERVER_H_

#include <cstdint>

#include "absl/base/optimization.h"
#include "tfplug/abi/types.h"
#include "tfplug/kernel/tensor.h"

#pragma GCC visibility push(hidden)

namespace tfplug::runtime {

// The handles that kernels in a region get have odd addresses, which
// TensorFlow's never have.
template <class C, class T>
C* ToHandle(T* object) {
  return reinterpret_cast<C*>(reinterpret_cast<uintptr_t>(object) | 1);
}
template <class C>
bool IsOurs(C* handle) {
  return (reinterpret_cast<uintptr_t>(handle) & 1) != 0;
}
template <class T, class C>
T& FromHandle(C* handle) {
  return *reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(handle) - 1);
}

// Learns what a region's kernels do with memory and with the stream, to record
// the run (op_kernels/internal/region_recorder.h).
class RunObserver {
 public:
  virtual ~RunObserver() = default;

  // The kernel of a node is about to run.
  virtual void OnNode(int node) = 0;
  // A kernel has allocated memory: value `value` of the subgraph, or scratch in
  // device memory if that is -1.
  virtual void OnAllocate(int value, const Tensor& tensor) = 0;
  // A kernel has made value `value` share the memory of another tensor.
  virtual void OnShare(int value, const Tensor& tensor) = 0;
  // A kernel gets the stream, on which it may enqueue anything.
  virtual void OnGetStream() = 0;
};

// The base of NodeRun (node_run.h).
class ObservedRun {
 public:
  explicit ObservedRun(RunObserver* observer) : observer_(observer) {}
  RunObserver* observer() const { return observer_; }

 private:
  RunObserver* const observer_;
};

// Returns the observer of a kernel's run; null if there is none.
inline RunObserver* ObserverOf(capi::TF_OpKernelContext* context) {
  return ABSL_PREDICT_FALSE(IsOurs(context))
             ? FromHandle<ObservedRun>(context).observer()
             : nullptr;
}

}  // namespace tfplug::runtime

#pragma GCC visibility pop

#endif  // TFPLUG_RUNTIME_RUN_OBSERVER_H_
