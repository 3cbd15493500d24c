// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_CHECK_PROFILER_H_
#define TFPLUG_CHECK_PROFILER_H_

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "plugin.h"
#include "tfplug/base/internal/wire.h"

namespace tfplug::check {

// Records two profiles, as TensorFlow does.
inline void CheckProfiler(Plugin& plugin) {
  Report& report = plugin.report();
  if (plugin.init_profiler() == nullptr) {
    return report.Skip("the plug-in exports no TF_InitProfiler");
  }
  if (testing::StructSizeIn<capi::TP_Profiler>(plugin.release) == 0) {
    return report.Skip("this release has no profilers of plug-ins");
  }
  report.Step(
      "TF_InitProfiler, then destroy_profiler and "
      "destroy_profiler_fns, twice each");
  auto host = ProfilerHost::Register(plugin.init_profiler(), plugin.release);
  if (!report.Ok(host.status(), "TF_InitProfiler")) return;
  ProfilerHost* const profiler = Keep(*host);
  for (int round = 0; round < 2; ++round) {
    report.Step("start");
    if (!report.Ok(profiler->Start(), "start")) return;
    if (plugin.init_plugin() != nullptr) {
      if (Host* const devices = plugin.host()) {
        const auto count = devices->DeviceCount();
        if (count.ok() && *count > 0) devices->Device(0).IgnoreError();
      }
    }
    report.Step("stop");
    if (!report.Ok(profiler->Stop(), "stop")) return;
    report.Step("collect_data_xspace");
    const auto xspace = profiler->Collect();
    if (!report.Ok(xspace.status(), "collect_data_xspace")) return;
    internal::WireReader reader(*xspace);
    std::vector<std::string> planes;
    while (reader.Next()) {
      if (reader.number() != 1) continue;
      planes.push_back(internal::MessageField(reader.bytes(), 2).value_or(""));
    }
    report.Expect(reader.ok(), "collect_data_xspace returns " +
                                   std::to_string(xspace->size()) +
                                   " bytes that are no XSpace");
    // A plane of the host alone is a profile of a device that ran nothing.
    bool has_device = false, is_shown = false;
    for (const std::string& name : planes) {
      has_device = has_device || absl::StartsWith(name, "/device:");
      is_shown = is_shown || absl::StartsWith(name, "/device:GPU:") ||
                 absl::StartsWith(name, "/device:TPU:") ||
                 absl::StartsWith(name, "/device:CUSTOM:");
    }
    if (round == 0 && has_device && !is_shown) {
      report.Warning("the profile has the planes " +
                     absl::StrJoin(planes, ", ") +
                     ", but none called \"/device:GPU:0 ...\": the profiler's "
                     "tools show no device");
    }
  }
}

}  // namespace tfplug::check

#endif  // TFPLUG_CHECK_PROFILER_H_
