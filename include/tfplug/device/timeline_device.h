// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_TIMELINE_DEVICE_H_
#define TFPLUG_DEVICE_TIMELINE_DEVICE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/device/device.h"
#include "tfplug/device/timeline_memory.h"
#include "tfplug/device/timeline_stream.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// A device with TimelineStreams, for a class `Machine` (timeline_stream.h) that
// also has
//
//   absl::Status Init(int ordinal);  // makes the driver's objects
//   std::string HardwareName();      // as in Device
//
// To override other hooks of Device, derive from it.
template <class Machine>
class TimelineDevice
    : public Device<TimelineStream<Machine>, TimelineAllocator<Machine>>,
      public Machine {
 public:
  explicit TimelineDevice(int ordinal) : ordinal_(ordinal) {}

  absl::Status Init() override {
    TFPLUG_RETURN_IF_ERROR(Machine::Init(ordinal_));
    return clock_.Init();
  }
  std::string HardwareName() override { return Machine::HardwareName(); }
  absl::StatusOr<uint64_t> GetTime() override { return clock_.GetTime(); }

 private:
  const int ordinal_;
  TimelineStream<Machine> clock_{*this};  // for GetTime
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_TIMELINE_DEVICE_H_
