// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_PROFILER_CHECK_TIMES_H_
#define TFPLUG_TESTS_PROFILER_CHECK_TIMES_H_

#include <doctest/doctest.h>
#include <tfplug/testing.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "profiler/xspace_reader.h"
#include "tfplug/profiler/internal/recorder.h"

extern "C" void TF_InitProfiler(tfplug::capi::TF_ProfilerRegistrationParams*,
                                tfplug::capi::TF_Status*);

// Checks that profiles have the time at which a device fills memory, which a
// host task delays, and not that of the call.
inline void CheckTimes(tfplug::testing::FakeDevice& device) {
  auto profiler =
      tfplug::testing::ProfilerHost::Register(&TF_InitProfiler).value();
  const tfplug::DeviceMemory memory = device.Allocate(256);
  for (int profile = 0; profile < 2; ++profile) {
    CHECK(profiler->Start().ok());
    // It may run in RunOnHost, if the stream is done, or beside Memset32.
    std::atomic<uint64_t> before_ns{0};
    CHECK(device.compute()
              .RunOnHost([&] {
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                before_ns = tfplug::profiler_internal::Recorder::NowNs();
                return absl::OkStatus();
              })
              .ok());
    CHECK(device.compute().Memset32(memory, {1}, 256).ok());
    CHECK(device.compute().BlockHostUntilDone().ok());
    const uint64_t after_ns = tfplug::profiler_internal::Recorder::NowNs();
    CHECK(profiler->Stop().ok());
    int fills = 0;
    for (const auto& plane : xspace::Read(profiler->Collect().value())) {
      for (const auto& line : plane.lines) {
        if (line.name.find("(Memset)") == std::string::npos) continue;
        for (const auto& event : line.events) {
          ++fills;
          constexpr uint64_t kToleranceNs = 5000000;
          const uint64_t begin_ns = line.start_ns + event.begin_ps / 1000;
          const uint64_t end_ns = begin_ns + event.duration_ps / 1000;
          CHECK(begin_ns + kToleranceNs > before_ns);
          CHECK(end_ns < after_ns + kToleranceNs);
        }
      }
    }
    CHECK(fills == 1);
  }
  device.Deallocate(memory);
}

#endif  // TFPLUG_TESTS_PROFILER_CHECK_TIMES_H_
