// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_RUN_CACHE_H_
#define TFPLUG_KERNEL_INTERNAL_RUN_CACHE_H_

#include <atomic>
#include <cstdint>

#include "absl/base/optimization.h"
#include "tfplug/base/internal/tensorflow.h"

namespace tfplug::internal {

// What a kernel keeps from run to run, so that a run need not ask for it: a
// TF_Status, and which outputs there are. One run has it at a time; others at
// the same time make their own.
class RunCache {
 public:
  RunCache() = default;
  RunCache(const RunCache&) = delete;
  RunCache& operator=(const RunCache&) = delete;
  ~RunCache() {
    if (status_ != nullptr) tensorflow.TF_DeleteStatus(status_);
  }

  // False while another run has it. The rest is for whoever has taken it.
  bool Take(capi::TF_OpKernelContext* context) {
    if (ABSL_PREDICT_FALSE(is_taken_.exchange(true, std::memory_order_acquire)))
      return false;
    if (ABSL_PREDICT_FALSE(status_ == nullptr)) Fill(context);
    return true;
  }
  void GiveBack() { is_taken_.store(false, std::memory_order_release); }

  // OK, and must be so when given back.
  capi::TF_Status* status() const { return status_; }
  uint64_t outputs() const { return outputs_; }

  // A bit for each output of the node, of the first 64.
  static uint64_t OutputsOf(capi::TF_OpKernelContext* context) {
    const int n = tensorflow.TF_NumOutputs(context);
    return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
  }

 private:
  [[gnu::cold, gnu::noinline]] void Fill(capi::TF_OpKernelContext* context) {
    status_ = tensorflow.TF_NewStatus();
    outputs_ = OutputsOf(context);
  }

  std::atomic<bool> is_taken_{false};
  capi::TF_Status* status_ = nullptr;
  uint64_t outputs_ = 0;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_KERNEL_INTERNAL_RUN_CACHE_H_
