// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_CHECK_STRESS_H_
#define TFPLUG_CHECK_STRESS_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "interpose.h"
#include "plugin.h"
#include "streams.h"
#include "tfplug/testing/conformance.h"

// Checks of much work on streams.
namespace tfplug::check {

inline void CheckEnvironment(Plugin& plugin) {
  Report& report = plugin.report();
  FakeDevice* const device = plugin.device();
  if (device == nullptr) return;
  Buffers buffers(report, *device);
  if (!buffers.ok()) return;
  const Contents bytes = Pattern(Buffers::kSize, 8);
  constexpr int kCopies = 10;
  calls().is_watching = true;
  for (int i = 0; i < kCopies; ++i) {
    report.Step("allocate and memcpy_htod");
    const DeviceMemory memory = device->Allocate(256);
    device->compute().CopyHostToDevice(memory, bytes.data(), 256).IgnoreError();
    device->compute().BlockHostUntilDone().IgnoreError();
    device->Deallocate(memory);
  }
  calls().is_watching = false;
  if (calls().environment < kCopies) return;
  report.Warning("reads the environment " +
                 std::to_string(calls().environment) + " times for " +
                 std::to_string(kCopies) + " allocations and copies");
}

inline void CheckRandomPrograms(Plugin& plugin) {
  FakeDevice* const device = plugin.device();
  if (device == nullptr) return;
  plugin.report().Step("random programs on four streams");
  const absl::Status status = testing::CheckDevice(*device, {plugin.seed, 0.2});
  if (!status.ok()) plugin.report().Error(std::string(status.message()));
}

// Threads share the four streams; each has its own memory, and its sum at the
// end.
inline void CheckThreads(Plugin& plugin) {
  Report& report = plugin.report();
  FakeDevice* const device = plugin.device();
  if (device == nullptr) return;
  constexpr int kThreads = 8, kRounds = 60;
  report.Step("8 threads on four streams");
  std::atomic<int> wrong{0}, failed{0}, tasks{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      FakeStream* const streams[] = {
          &device->host_to_device(), &device->compute(),
          &device->device_to_device(), &device->device_to_host()};
      uint64_t sum = 0, expected_sum = 0;
      for (int round = 0; round < kRounds; ++round) {
        const size_t size =
            1 + static_cast<size_t>(t * 977 + round * 131) % 5000;
        const Contents in =
            Pattern(size, static_cast<uint32_t>(t + 64 * round));
        Contents out(size, 0);
        const DeviceMemory a = device->Allocate(size),
                           b = device->Allocate(size);
        FakeStream& up = *streams[round % 4];
        FakeStream& across = *streams[(round + t) % 4];
        FakeStream& down = *streams[(round / 2) % 4];
        absl::Status status = up.CopyHostToDevice(a, in.data(), size);
        status.Update(across.WaitForStream(up));
        status.Update(across.CopyDeviceToDevice(b, a, size));
        auto event = device->CreateEvent();
        status.Update(event.status());
        if (event.ok()) {
          status.Update(across.RecordEvent(**event));
          status.Update(down.WaitForEvent(**event));
        }
        status.Update(down.CopyDeviceToHost(out.data(), b, size));
        status.Update(down.RunOnHost([&tasks] {
          ++tasks;
          return absl::OkStatus();
        }));
        status.Update(down.BlockHostUntilDone());
        for (size_t i = 0; i < size; ++i) {
          sum += out[i] * (i + 1);
          expected_sum += in[i] * (i + 1);
        }
        if (!status.ok()) ++failed;
        device->Deallocate(a);
        device->Deallocate(b);
      }
      if (sum != expected_sum) ++wrong;
    });
  }
  for (std::thread& thread : threads) thread.join();
  report.Expect(failed == 0, std::to_string(failed) +
                                 " rounds of copies failed on 8 threads, which "
                                 "succeed on one");
  report.Expect(wrong == 0, "the sums of " + std::to_string(wrong) +
                                " of 8 threads are wrong");
  report.Expect(tasks == kThreads * kRounds,
                std::to_string(tasks) + " of " +
                    std::to_string(kThreads * kRounds) + " host tasks ran");
  report.Ok(device->Problems(), "8 threads");
}

}  // namespace tfplug::check

#endif  // TFPLUG_CHECK_STRESS_H_
