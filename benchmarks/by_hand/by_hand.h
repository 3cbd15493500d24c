// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_BY_HAND_BY_HAND_H_
#define TFPLUG_TESTS_BY_HAND_BY_HAND_H_

#include <atomic>
#include <cstdint>
#include <mutex>

#include "driver.h"
#include "tfplug/abi/abi.h"

// What by_hand.cc and kernels_by_hand.cc share: core's functions that both call
// and the device's objects.
namespace tfplug::capi {
extern "C" {
TF_Status* TF_NewStatus();
void TF_DeleteStatus(TF_Status* status);
void TF_SetStatus(TF_Status* status, TF_Code code, const char* message);
TF_Code TF_GetCode(const TF_Status* status);

struct SP_Stream_st {
  drv_stream* handle;
  drv_event* fence;  // for create_stream_dependency, as is the next
  std::mutex fence_mutex;
  // The thread that has had this stream wait for another one just now.
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

#endif  // TFPLUG_TESTS_BY_HAND_BY_HAND_H_
