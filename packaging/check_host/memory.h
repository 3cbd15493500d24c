// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_CHECK_MEMORY_H_
#define TFPLUG_CHECK_MEMORY_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "interpose.h"
#include "plugin.h"

// Checks of a device's properties and of its memory.
namespace tfplug::check {

inline constexpr uint64_t kSizes[] = {1, 3, 64, 255, 256, 257, 4096, 100001};

inline std::string Bytes(uint64_t size) {
  return std::to_string(size) + (size == 1 ? " byte" : " bytes");
}

inline void CheckDevices(Plugin& plugin) {
  Report& report = plugin.report();
  if (plugin.device(/*with_streams=*/false) == nullptr) return;
  Host& host = *plugin.host();
  const int count = host.DeviceCount().value();
  report.Expect(count >= 0,
                "get_device_count reports " + std::to_string(count));
  for (int i = 0; i < std::min(count, 16); ++i) {
    const std::string name = "device " + std::to_string(i);
    report.Step("creation of " + name);
    auto device = host.Device(i);
    if (!report.Ok(device.status(), "creation of " + name)) continue;
    report.Step("properties of " + name);
    const auto usage = (*device)->Usage();
    if (!usage.has_value()) {
      report.Warning("device_memory_usage of " + name +
                     " fails: TensorFlow creates no device without it");
    } else {
      report.Expect(
          usage->free >= 0 && usage->total > 0 && usage->free <= usage->total,
          "device_memory_usage of " + name + " reports " +
              std::to_string(usage->free) + " free of " +
              std::to_string(usage->total));
    }
    report.Ok((*device)->Problems(), name);
  }
  report.Note(std::to_string(count) +
              (count == 1 ? " device, hardware '" : " devices, hardware '") +
              (*host.Device(0))->hardware_name() + "'");
}

inline void CheckHandles(Plugin& plugin) {
  Report& report = plugin.report();
  FakeDevice* const device = plugin.device(/*with_streams=*/false);
  if (device == nullptr) return;
  report.Step("create_event");
  auto a = device->CreateEvent(), b = device->CreateEvent();
  if (report.Ok(a.status(), "create_event") &&
      report.Ok(b.status(), "create_event")) {
    report.Expect((*a)->handle() != (*b)->handle(),
                  "create_event returns the same handle twice");
  }
  report.Step("create_stream");
  auto c = device->CreateStream(), d = device->CreateStream();
  if (report.Ok(c.status(), "create_stream") &&
      report.Ok(d.status(), "create_stream")) {
    report.Expect((*c)->handle() != (*d)->handle(),
                  "create_stream returns the same handle twice");
  }
  report.Step("create_timer");
  auto e = device->CreateTimer(), f = device->CreateTimer();
  if (report.Ok(e.status(), "create_timer") &&
      report.Ok(f.status(), "create_timer")) {
    report.Expect((*e)->handle() != (*f)->handle(),
                  "create_timer returns the same handle twice");
  }
}

inline void CheckAllocation(Plugin& plugin) {
  Report& report = plugin.report();
  FakeDevice* const device = plugin.device(/*with_streams=*/false);
  if (device == nullptr) return;
  std::vector<DeviceMemory> memory;
  std::vector<std::pair<uintptr_t, uintptr_t>> ranges;
  for (int round = 0; round < 4; ++round) {
    for (const uint64_t size : kSizes) {
      const std::string call = "allocate(" + Bytes(size) + ")";
      report.Step(call);
      const DeviceMemory found = device->Allocate(size);
      if (!report.Expect(!found.is_null(), call + " returns no memory")) return;
      report.Expect(found.size() >= size,
                    call + " sets SP_DeviceMemoryBase::size to " +
                        std::to_string(found.size()));
      const auto begin = reinterpret_cast<uintptr_t>(found.opaque());
      ranges.emplace_back(begin, begin + size);
      memory.push_back(found);
    }
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first >= ranges[i - 1].second) continue;
    report.Error("allocate returns memory that is in use");
    break;
  }
  report.Step("deallocate");
  for (const DeviceMemory& each : memory) device->Deallocate(each);
  report.Step("deallocate of null memory");
  device->Deallocate(DeviceMemory());
  for (const uint64_t size : kSizes) {
    const std::string call = "host_memory_allocate(" + Bytes(size) + ")";
    report.Step(call);
    void* const found = device->AllocateHost(size);
    if (!report.Expect(found != nullptr, call + " returns null")) return;
    std::memset(found, 0x5a, size);
    report.Step("host_memory_deallocate");
    device->DeallocateHost(found);
  }
  report.Ok(device->Problems(), "allocate");
}

inline void CheckAlignment(Plugin& plugin) {
  Report& report = plugin.report();
  FakeDevice* const device = plugin.device(/*with_streams=*/false);
  if (device == nullptr) return;
  const bool uses_bfc = plugin.host()->platform().use_bfc_allocator != 0;
  const auto check = [&](const char* slot, void* memory) {
    const uintptr_t offset = reinterpret_cast<uintptr_t>(memory) % 256;
    if (offset == 0) return true;
    return report.Expect(false, std::string(slot) +
                                    " returns memory that is not aligned to "
                                    "256 bytes, but to " +
                                    std::to_string(offset & -offset) +
                                    ": TensorFlow 2.22 aborts");
  };
  // Odd sizes in between, so that nothing is aligned by chance.
  bool device_ok = true, host_ok = true;
  for (int i = 0; i < 8; ++i) {
    for (const uint64_t size : kSizes) {
      report.Step("allocate");
      const DeviceMemory memory = device->Allocate(size);
      if (device_ok && uses_bfc) device_ok = check("allocate", memory.opaque());
      report.Step("host_memory_allocate");
      void* const host = device->AllocateHost(size);
      if (host_ok) host_ok = check("host_memory_allocate", host);
    }
  }
}

inline void CheckAlignedAlloc(Plugin& plugin) {
  Report& report = plugin.report();
  FakeDevice* const device = plugin.device(/*with_streams=*/false);
  if (device == nullptr) return;
  calls().is_watching = true;
  for (const uint64_t size : kSizes) {
    report.Step("allocate, host_memory_allocate");
    device->Allocate(size);
    device->AllocateHost(size);
  }
  calls().is_watching = false;
  if (calls().misfit_sizes == 0) return;
  report.Warning(
      "calls aligned_alloc with sizes that are no multiple of the "
      "alignment: C libraries other than glibc return null");
}

inline void CheckHugeAllocation(Plugin& plugin) {
  Report& report = plugin.report();
  FakeDevice* const device = plugin.device(/*with_streams=*/false);
  if (device == nullptr) return;
  for (const uint64_t size :
       {uint64_t{1} << 62, UINT64_MAX - 100, UINT64_MAX}) {
    const std::string call = "allocate(" + Bytes(size) + ")";
    report.Step(call);
    const DeviceMemory memory = device->Allocate(size);
    report.Expect(memory.is_null(), call + " returns memory");
    const std::string host_call = "host_memory_allocate(" + Bytes(size) + ")";
    report.Step(host_call);
    report.Expect(device->AllocateHost(size) == nullptr,
                  host_call + " returns memory");
  }
  report.Step("allocate after a refusal");
  report.Expect(!device->Allocate(256).is_null(),
                "allocate(256 bytes) fails after a larger one was refused");
}

inline void CheckStatistics(Plugin& plugin) {
  Report& report = plugin.report();
  FakeDevice* const device = plugin.device(/*with_streams=*/false);
  if (device == nullptr) return;
  report.Step("get_allocator_stats");
  const auto before = device->Stats();
  if (!before.has_value()) {
    return report.Skip("get_allocator_stats returns false: no statistics");
  }
  constexpr int64_t kSize = 1 << 20;
  const DeviceMemory memory = device->Allocate(kSize);
  const auto during = device->Stats();
  device->Deallocate(memory);
  const auto after = device->Stats();
  if (!during.has_value() || !after.has_value()) {
    return report.Error("get_allocator_stats returns true, and later false");
  }
  const auto in_use = [](const auto& stats) {
    return std::to_string(stats->bytes_in_use);
  };
  report.Expect(
      during->bytes_in_use - before->bytes_in_use >= kSize,
      "get_allocator_stats reports " + in_use(before) +
          " bytes in use before an allocation of 1048576 bytes, and " +
          in_use(during) + " after it");
  report.Expect(after->bytes_in_use < during->bytes_in_use,
                "get_allocator_stats reports " + in_use(after) +
                    " bytes in use after 1048576 of " + in_use(during) +
                    " were freed");
  report.Expect(during->peak_bytes_in_use >= during->bytes_in_use,
                "get_allocator_stats reports a peak of " +
                    std::to_string(during->peak_bytes_in_use) + " bytes and " +
                    in_use(during) + " in use");
  report.Expect(during->num_allocs > before->num_allocs,
                "num_allocs does not count an allocation");
  report.Ok(device->Problems(), "get_allocator_stats");
}

}  // namespace tfplug::check

#endif  // TFPLUG_CHECK_MEMORY_H_
