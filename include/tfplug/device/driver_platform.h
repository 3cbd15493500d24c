// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_DRIVER_PLATFORM_H_
#define TFPLUG_DEVICE_DRIVER_PLATFORM_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/ask_in_child.h"
#include "tfplug/base/data_type.h"
#include "tfplug/device/platform.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// A platform of the devices that a driver finds at run time. `driver` is an object
// that lives as long as the process, such as a DriverTable, with the function
//
//   // Loads the driver, if it is not loaded, and finds the devices. Returns for
//   // each a d if it computes in doubles, or an f; an error if there are none.
//   absl::StatusOr<std::string> Load();
//
// The devices are counted in another process (AskInChild), so that children which
// are forked before a device is used can use it: Device::Init calls Load again.
template <class DeviceT, auto& driver>
class DriverPlatform : public Platform<DeviceT> {
 public:
  // Returns the answer of Load. Threads: any.
  static const absl::StatusOr<std::string>& Found() {
    static const auto* const answer = new absl::StatusOr<std::string>(
        AskInChild([] { return driver.Load(); }));
    return *answer;
  }

  // Returns whether all devices compute in the type, for Backend::Supports: doubles
  // are optional in many APIs. Threads: any.
  static bool Supports(DataType type) {
    return type != DataType::kDouble ||
           Found().value_or("").find('f') == std::string::npos;
  }

  absl::Status Init() override { return Found().status(); }
  absl::StatusOr<int> DeviceCount() override {
    return static_cast<int>(Found()->size());
  }
  // A driver's largest buffer is often smaller than its memory, therefore
  // TensorFlow allocates step by step.
  PlatformOptions Options() override {
    PlatformOptions options;
    options.force_memory_growth = true;
    return options;
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_DRIVER_PLATFORM_H_
