// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_PLATFORM_TABLE_H_
#define TFPLUG_DEVICE_INTERNAL_PLATFORM_TABLE_H_

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tfplug/abi/se_create_device_fns_params.h"
#include "tfplug/abi/se_create_device_params.h"
#include "tfplug/abi/se_create_stream_executor_params.h"
#include "tfplug/abi/se_platform_registration_params.h"
#include "tfplug/abi/sp_device_fns.h"
#include "tfplug/abi/sp_platform.h"
#include "tfplug/abi/sp_platform_fns.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/internal/construct.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/intern_string.h"
#include "tfplug/base/internal/override.h"
#include "tfplug/base/internal/struct_copy.h"
#include "tfplug/device/device.h"
#include "tfplug/device/internal/default_profiler.h"
#include "tfplug/device/internal/device_times.h"
#include "tfplug/device/internal/handles.h"
#include "tfplug/device/internal/stream_executor_table.h"
#include "tfplug/device/internal/timer_slots.h"
#include "tfplug/device/internal/value_or_log.h"
#include "tfplug/device/platform.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// The trampolines of SP_DeviceFns.
template <class DeviceT>
struct DeviceFnsTable {
  using H = Handles<DeviceT>;
  using Base = typename H::DeviceBase;

  static int32_t get_numa_node(const capi::SP_Device* device) {
    return ValueOrLog("get_numa_node", int32_t{0},
                      [&] { return H::ToDevice(device).DeviceT::NumaNode(); });
  }

  static int64_t get_memory_bandwidth(const capi::SP_Device* device) {
    return ValueOrLog("get_memory_bandwidth", int64_t{-1}, [&] {
      return H::ToDevice(device).DeviceT::MemoryBandwidth();
    });
  }

  static double get_gflops(const capi::SP_Device* device) {
    return ValueOrLog("get_gflops", -1.0,
                      [&] { return H::ToDevice(device).DeviceT::Gflops(); });
  }

  static capi::SP_DeviceFns Make() {
    capi::SP_DeviceFns table = {};
    table.struct_size = capi::StructInfo<capi::SP_DeviceFns>::kSize;
    table.get_numa_node = &get_numa_node;
    if constexpr (internal::Overrides(&DeviceT::MemoryBandwidth,
                                      &Base::MemoryBandwidth)) {
      table.get_memory_bandwidth = &get_memory_bandwidth;
    }
    if constexpr (internal::Overrides(&DeviceT::Gflops, &Base::Gflops)) {
      table.get_gflops = &get_gflops;
    }
    return table;
  }
};

// The trampolines of SP_PlatformFns. SP_Platform::ext is the author's Platform,
// or null if it could not be constructed; the platform then has no devices.
template <class PlatformT>
struct PlatformFnsTable {
  using DeviceT = typename PlatformT::Device;
  using H = Handles<DeviceT>;

  static PlatformT* ToPlatform(const capi::SP_Platform* platform) {
    return static_cast<PlatformT*>(platform->ext);
  }

  // Reports zero devices after a failure, because TensorFlow aborts on an error
  // here.
  static void get_device_count(const capi::SP_Platform* platform,
                               int* device_count, capi::TF_Status* status) {
    *device_count =
        ValueOrLog("get_device_count", 0, [&]() -> absl::StatusOr<int> {
          auto ordinals = Ordinals(*platform);
          if (!ordinals.ok()) return ordinals.status();
          return static_cast<int>(ordinals->size());
        });
    internal::tensorflow.TF_SetStatus(status, capi::TF_OK, "");
  }

  static void create_device(const capi::SP_Platform* platform,
                            capi::SE_CreateDeviceParams* params,
                            capi::TF_Status* status) {
    internal::Guard(status, "create_device",
                    [&] { return FillDevice(*platform, *params); });
  }

  static void destroy_device(const capi::SP_Platform*,
                             capi::SP_Device* device) {
    internal::GuardOrLog("destroy_device", [&] {
      DeviceOwner(
          static_cast<DeviceT*>(std::exchange(device->device_handle, nullptr)));
      return absl::OkStatus();
    });
  }

  static void create_device_fns(const capi::SP_Platform*,
                                capi::SE_CreateDeviceFnsParams* params,
                                capi::TF_Status* status) {
    internal::Guard(status, "create_device_fns", [&] {
      return FillTable(*params, &capi::SE_CreateDeviceFnsParams::device_fns,
                       DeviceFnsTable<DeviceT>::Make());
    });
  }

  static void create_stream_executor(
      const capi::SP_Platform* platform,
      capi::SE_CreateStreamExecutorParams* params, capi::TF_Status* status) {
    internal::Guard(status, "create_stream_executor", [&] {
      return FillTable(*params,
                       &capi::SE_CreateStreamExecutorParams::stream_executor,
                       MakeStreamExecutor(*platform));
    });
  }

  static void create_timer_fns(const capi::SP_Platform*,
                               capi::SP_TimerFns* timer_fns,
                               capi::TF_Status* status) {
    internal::Guard(status, "create_timer_fns", [&] {
      return internal::FillStruct(timer_fns, TimerFnsTable<DeviceT>::Make());
    });
  }

  // These functions do nothing, because the tables own nothing.
  static void destroy_device_fns(const capi::SP_Platform*,
                                 capi::SP_DeviceFns*) {}
  static void destroy_stream_executor(const capi::SP_Platform*,
                                      capi::SP_StreamExecutor*) {}
  static void destroy_timer_fns(const capi::SP_Platform*, capi::SP_TimerFns*) {}
  static void destroy_platform_fns(capi::SP_PlatformFns*) {}

  static void destroy_platform(capi::SP_Platform* platform) {
    internal::Destroy("destroy_platform", static_cast<PlatformT*>(std::exchange(
                                              platform->ext, nullptr)));
  }

  static capi::SP_PlatformFns Make() {
    capi::SP_PlatformFns table = {};
    table.struct_size = capi::StructInfo<capi::SP_PlatformFns>::kSize;
    table.get_device_count = &get_device_count;
    table.create_device = &create_device;
    table.destroy_device = &destroy_device;
    table.create_device_fns = &create_device_fns;
    table.destroy_device_fns = &destroy_device_fns;
    table.create_stream_executor = &create_stream_executor;
    table.destroy_stream_executor = &destroy_stream_executor;
    table.create_timer_fns = &create_timer_fns;
    table.destroy_timer_fns = &destroy_timer_fns;
    return table;
  }

 private:
  static constexpr bool kHasDeviceTimes =
      PlatformT::kHasProfiler && H::kHasTimes;

  static auto& State(DeviceT& device) {
    return internal::Access::state(
        static_cast<typename H::DeviceBase&>(device));
  }

  struct DeviceDeleter {
    void operator()(DeviceT* device) const {
      if constexpr (kHasDeviceTimes) TimedDevices<DeviceT>::Remove(device);
      State(*device).Clear();
      internal::Deleter<DeviceT>()(device);
    }
  };
  using DeviceOwner = std::unique_ptr<DeviceT, DeviceDeleter>;

  static capi::SP_StreamExecutor MakeStreamExecutor(
      [[maybe_unused]] const capi::SP_Platform& platform) {
    if constexpr (PlatformT::kHasProfiler) {
      return SwitchedTable<DeviceT>::Make(platform.use_bfc_allocator != 0);
    } else {
      return StreamExecutorTable<DeviceT>::Make();
    }
  }

  // Returns the author's ordinals of the devices, in TensorFlow's order.
  static absl::StatusOr<std::vector<int>> Ordinals(
      const capi::SP_Platform& platform) {
    PlatformT* const ours = ToPlatform(&platform);
    if (ours == nullptr) return std::vector<int>();
    const absl::StatusOr<int> count = ours->PlatformT::DeviceCount();
    if (!count.ok()) return count.status();
    if (*count <= 0) return std::vector<int>();
    auto ordinals = ours->PlatformT::VisibleDevices(platform.type, *count);
    if (!ordinals.ok()) return ordinals;
    std::vector<bool> seen(static_cast<size_t>(*count));
    for (const int ordinal : *ordinals) {
      const bool is_valid = 0 <= ordinal && ordinal < *count;
      if (is_valid && !seen[static_cast<size_t>(ordinal)]) {
        seen[static_cast<size_t>(ordinal)] = true;
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("the visible devices contain ", ordinal,
                       is_valid ? " twice"
                                : absl::StrCat(", but ", platform.type, " has ",
                                               *count, " devices"),
                       ", so none is used; correct TFPLUG_VISIBLE_DEVICES, or "
                       "Platform::VisibleDevices"));
    }
    return ordinals;
  }

  // Creates a device, its allocator and the objects for synchronous copies, and
  // fills params.device.
  static absl::Status FillDevice(const capi::SP_Platform& platform,
                                 const capi::SE_CreateDeviceParams& params) {
    if (auto s = internal::CheckStruct(params); !s.ok()) return s;
    const auto ordinals = Ordinals(platform);
    if (!ordinals.ok()) return ordinals.status();
    const auto index = static_cast<size_t>(params.ordinal);
    if (index >= ordinals->size()) {
      return absl::FailedPreconditionError(absl::StrCat(
          platform.type, ":", params.ordinal, " is not one of the ",
          ordinals->size(),
          " devices of this process; the log has the reason if there is one"));
    }
    auto created = CreateDevice(ToPlatform(&platform), (*ordinals)[index]);
    if (!created.ok()) return created.status();
    DeviceOwner device(created->release());
    auto allocator = internal::Create<typename H::AllocatorT>(*device);
    if (!allocator.ok()) return allocator.status();
    State(*device).allocator = *std::move(allocator);
    Allocator& base = *State(*device).allocator;
    internal::Access::state(base).uses_bfc_allocator =
        platform.use_bfc_allocator;
    if (auto s = PrepareBlockingHooks(*device); !s.ok()) return s;

    capi::SP_Device ours = {};
    ours.struct_size = capi::StructInfo<capi::SP_Device>::kSize;
    ours.ext = State(*device).allocator.get();
    ours.ordinal = params.ordinal;
    ours.device_handle = device.get();
    ours.hardware_name =
        internal::InternString(device->DeviceT::HardwareName());
    ours.device_vendor = internal::InternString(device->DeviceT::Vendor());
    ours.pci_bus_id = internal::InternString(device->DeviceT::PciBusId());
    if (auto s = internal::FillStruct(params.device, ours); !s.ok()) return s;
    if constexpr (kHasDeviceTimes) {
      TimedDevices<DeviceT>::Add(params.ordinal, device.get());
    }
    device.release();
    return absl::OkStatus();
  }

  // Creates a Device from the Platform and the ordinal if it has such a
  // constructor, otherwise from the ordinal alone or without arguments.
  static absl::StatusOr<internal::Owned<DeviceT>> CreateDevice(
      PlatformT* platform, int ordinal) {
    if constexpr (std::is_constructible_v<DeviceT, PlatformT&, int>) {
      return internal::Create<DeviceT>(*platform, ordinal);
    } else {
      return internal::Create<DeviceT>(ordinal);
    }
  }

  // Creates the stream and the event for the defaults of the device's hooks
  // that block.
  static absl::Status PrepareBlockingHooks(DeviceT& device) {
    using Base = typename H::DeviceBase;
    if constexpr (internal::Overrides(&DeviceT::SynchronizeAllActivity,
                                      &Base::SynchronizeAllActivity) &&
                  internal::Overrides(&DeviceT::CopyHostToDeviceSync,
                                      &Base::CopyHostToDeviceSync) &&
                  internal::Overrides(&DeviceT::CopyDeviceToHostSync,
                                      &Base::CopyDeviceToHostSync) &&
                  internal::Overrides(&DeviceT::CopyDeviceToDeviceSync,
                                      &Base::CopyDeviceToDeviceSync)) {
      return absl::OkStatus();
    }
    auto stream = StreamSlots<DeviceT>::CreateStream(device, StreamOptions());
    if (!stream.ok()) return stream.status();
    auto event = internal::Create<typename H::EventT>(device);
    if (!event.ok()) return event.status();
    State(device).synchronous_stream = *std::move(stream);
    State(device).synchronous_event = *std::move(event);
    return absl::OkStatus();
  }

  // Fills the table that `params` points to, after validating both struct
  // sizes.
  template <class Params, class Table>
  static absl::Status FillTable(const Params& params, Table* Params::*to,
                                const Table& ours) {
    if (auto s = internal::CheckStruct(params); !s.ok()) return s;
    return internal::FillStruct(params.*to, ours);
  }
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_PLATFORM_TABLE_H_
