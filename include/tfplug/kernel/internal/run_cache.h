// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_RUN_CACHE_H_
#define TFPLUG_KERNEL_INTERNAL_RUN_CACHE_H_

#include <atomic>
#include <cstdint>

#include "absl/base/optimization.h"
#include "tfplug/base/internal/tensorflow.h"

#pragma GCC visibility push(hidden)

namespace tfplug::kernel_internal {

// A TF_Status and the set of the node's outputs, which a kernel keeps from run
// to run, and the node's op. One run holds the cache at a time; runs that
// overlap with it create their own status.
class RunCache {
 public:
  RunCache() = default;
  RunCache(const RunCache&) = delete;
  RunCache& operator=(const RunCache&) = delete;
  ~RunCache() {
    if (status_ != nullptr) internal::tensorflow.TF_DeleteStatus(status_);
  }

  // Returns false while another run holds the cache. The accessors below are
  // for the holder only.
  bool TryAcquire(capi::TF_OpKernelContext* context) {
    if (ABSL_PREDICT_FALSE(is_held_.exchange(true, std::memory_order_acquire)))
      return false;
    if (ABSL_PREDICT_FALSE(status_ == nullptr)) Fill(context);
    return true;
  }
  // Lets another run acquire the cache. `status()` must be OK, because the next
  // run relies on that.
  void Release() { is_held_.store(false, std::memory_order_release); }

  capi::TF_Status* status() const { return status_; }
  uint64_t outputs() const { return outputs_; }

  // Returns the op of the node, for profiles; null if it is unknown. Static.
  const char* op() const { return op_; }
  void set_op(const char* op) { op_ = op; }

  // Returns one bit for each of the node's first 64 outputs.
  static uint64_t OutputsOf(capi::TF_OpKernelContext* context) {
    const int n = internal::tensorflow.TF_NumOutputs(context);
    return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
  }

 private:
  [[gnu::cold, gnu::noinline]] void Fill(capi::TF_OpKernelContext* context) {
    status_ = internal::tensorflow.TF_NewStatus();
    outputs_ = OutputsOf(context);
  }

  std::atomic<bool> is_held_{false};
  capi::TF_Status* status_ = nullptr;
  uint64_t outputs_ = 0;
  const char* op_ = nullptr;
};

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_RUN_CACHE_H_
