// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: a device type must begin with a capital letter
#include <tfplug/profiler.h>

struct Profiler : tfplug::Profiler {
  static constexpr char kDeviceType[] = "mine";
  absl::Status Start() override { return absl::OkStatus(); }
  absl::Status Stop() override { return absl::OkStatus(); }
  absl::Status Collect(tfplug::XSpace&) override { return absl::OkStatus(); }
};
TFPLUG_REGISTER_PROFILER(Profiler);
