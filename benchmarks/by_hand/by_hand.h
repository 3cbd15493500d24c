// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BENCHMARKS_BY_HAND_BY_HAND_H_
#define TFPLUG_BENCHMARKS_BY_HAND_BY_HAND_H_

#include <atomic>
#include <cstdint>
#include <mutex>

#include "driver.h"
#include "tfplug/abi/abi.h"

// Declarations that by_hand.cc and kernels_by_hand.cc share: TensorFlow's
// functions that both call, and the objects of the device.
namespace tfplug::capi {
extern "C" {
TF_Status* TF_NewStatus();
void TF_DeleteStatus(TF_Status* status);
void TF_SetStatus(TF_Status* status, TF_Code code, const char* message);
TF_Code TF_GetCode(const TF_Status* status);

struct SP_Stream_st {
  drv_stream* handle;
  drv_event* fence;  // For create_stream_dependency; guarded by fence_mutex.
  std::mutex fence_mutex;
  // The thread whose last call made this stream wait for another one.
  std::atomic<const void*> ordered_by{nullptr};
};

struct SP_Event_st {
  drv_event* handle;
};

struct SP_Timer_st {
  std::atomic<int64_t> start{0}, stop{0};
};
}  // extern "C"
}  // namespace tfplug::capi

#endif  // TFPLUG_BENCHMARKS_BY_HAND_BY_HAND_H_
