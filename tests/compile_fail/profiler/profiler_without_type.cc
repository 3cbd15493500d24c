// SPDX-License-Identifier: Apache-2.0
// expect-first: tfplug: this class has no public `static constexpr char kDeviceType[]`
#include <tfplug/profiler.h>

struct Profiler : tfplug::Profiler {
  absl::Status Start() override { return absl::OkStatus(); }
  absl::Status Stop() override { return absl::OkStatus(); }
  absl::Status Collect(tfplug::XSpace&) override { return absl::OkStatus(); }
};
TFPLUG_REGISTER_PROFILER(Profiler);
