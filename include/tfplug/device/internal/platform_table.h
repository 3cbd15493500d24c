// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_PLATFORM_TABLE_H_
#define TFPLUG_DEVICE_INTERNAL_PLATFORM_TABLE_H_

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "tfplug/abi/se_create_device_fns_params.h"
#include "tfplug/abi/se_create_device_params.h"
#include "tfplug/abi/se_create_stream_executor_params.h"
#include "tfplug/abi/se_platform_registration_params.h"
#include "tfplug/abi/sp_device_fns.h"
#include "tfplug/abi/sp_platform.h"
#include "tfplug/abi/sp_platform_fns.h"
#include "tfplug/abi/sp_timer_fns.h"
#include "tfplug/base/internal/intern_string.h"
#include "tfplug/base/internal/struct_copy.h"
#include "tfplug/device/device.h"
#include "tfplug/device/internal/stream_executor_table.h"
#include "tfplug/device/platform.h"

namespace tfplug::internal {

// SP_TimerFns.
template <class DeviceT>
struct TimerFnsTable {
  using TimerT = typename DeviceT::Timer;

  static uint64_t nanoseconds(capi::SP_Timer timer) {
    uint64_t result = 0;
    GuardOrLog("nanoseconds", [&] {
      auto elapsed = Handles<DeviceT>::ToTimer(timer).TimerT::Nanoseconds();
      if (elapsed.ok()) result = *elapsed;
      return elapsed.status();
    });
    return result;
  }

  static capi::SP_TimerFns Make() {
    capi::SP_TimerFns table = {};
    table.struct_size = capi::StructInfo<capi::SP_TimerFns>::kSize;
    table.nanoseconds = &nanoseconds;
    return table;
  }
};

// SP_DeviceFns.
template <class DeviceT>
struct DeviceFnsTable {
  using Base =
      tfplug::Device<typename DeviceT::Stream, typename DeviceT::Allocator>;

  static DeviceT& ToDevice(const capi::SP_Device* device) {
    return Handles<DeviceT>::ToDevice(device);
  }

  static int32_t get_numa_node(const capi::SP_Device* device) {
    int32_t result = 0;
    GuardOrLog("get_numa_node", [&] {
      result = ToDevice(device).DeviceT::NumaNode();
      return absl::OkStatus();
    });
    return result;
  }

  static int64_t get_memory_bandwidth(const capi::SP_Device* device) {
    int64_t result = -1;
    GuardOrLog("get_memory_bandwidth", [&] {
      result = ToDevice(device).DeviceT::MemoryBandwidth();
      return absl::OkStatus();
    });
    return result;
  }

  static double get_gflops(const capi::SP_Device* device) {
    double result = -1;
    GuardOrLog("get_gflops", [&] {
      result = ToDevice(device).DeviceT::Gflops();
      return absl::OkStatus();
    });
    return result;
  }

  static capi::SP_DeviceFns Make() {
    capi::SP_DeviceFns table = {};
    table.struct_size = capi::StructInfo<capi::SP_DeviceFns>::kSize;
    table.get_numa_node = &get_numa_node;
    if constexpr (Overrides(&DeviceT::MemoryBandwidth,
                            &Base::MemoryBandwidth)) {
      table.get_memory_bandwidth = &get_memory_bandwidth;
    }
    if constexpr (Overrides(&DeviceT::Gflops, &Base::Gflops)) {
      table.get_gflops = &get_gflops;
    }
    return table;
  }
};

// SP_PlatformFns. SP_Platform::ext is the author's Platform; null when it could
// not be made: such a platform has no devices.
template <class PlatformT>
struct PlatformFnsTable {
  using DeviceT = typename PlatformT::Device;
  using DeviceBase =
      tfplug::Device<typename DeviceT::Stream, typename DeviceT::Allocator>;
  static_assert(std::is_base_of_v<DeviceBase, DeviceT>,
                "tfplug: the argument of tfplug::Platform must be derived from "
                "tfplug::Device<Stream, Allocator>");

  static PlatformT* ToPlatform(const capi::SP_Platform* platform) {
    return static_cast<PlatformT*>(platform->ext);
  }

  // An error here would end the process, so there are no devices then.
  static void get_device_count(const capi::SP_Platform* platform,
                               int* device_count, capi::TF_Status* status) {
    *device_count = 0;
    GuardOrLog("get_device_count", [&] {
      PlatformT* self = ToPlatform(platform);
      if (self == nullptr) return absl::OkStatus();
      auto count = self->PlatformT::DeviceCount();
      if (count.ok() && *count > 0) *device_count = *count;
      return count.status();
    });
    tensorflow.TF_SetStatus(status, capi::TF_OK, "");
  }

  static void create_device(const capi::SP_Platform* platform,
                            capi::SE_CreateDeviceParams* params,
                            capi::TF_Status* status) {
    Guard(status, "create_device", [&]() -> absl::Status {
      if (auto s = CheckStruct(*params); !s.ok()) return s;
      auto created = CreateDevice(platform, static_cast<int>(params->ordinal));
      if (!created.ok()) return created.status();
      std::unique_ptr<DeviceT, DeviceDeleter> device(created->release());
      DeviceBase& base = *device;
      auto allocator = Create<typename DeviceT::Allocator>(*device);
      if (!allocator.ok()) return allocator.status();
      base.allocator_ = *std::move(allocator);
      if (auto s = PrepareSynchronousCopies(*device); !s.ok()) return s;

      capi::SP_Device ours = {};
      ours.struct_size = capi::StructInfo<capi::SP_Device>::kSize;
      ours.ext = base.allocator_.get();
      ours.ordinal = params->ordinal;
      ours.device_handle = device.get();
      ours.hardware_name = InternString(device->DeviceT::HardwareName());
      ours.device_vendor = InternString(device->DeviceT::Vendor());
      ours.pci_bus_id = InternString(device->DeviceT::PciBusId());
      if (auto s = FillStruct(params->device, ours); !s.ok()) return s;
      device.release();
      return absl::OkStatus();
    });
  }

  static void destroy_device(const capi::SP_Platform*,
                             capi::SP_Device* device) {
    auto* self = static_cast<DeviceT*>(device->device_handle);
    device->device_handle = nullptr;
    if (self == nullptr) return;
    GuardOrLog("destroy_device", [&] {
      DeviceDeleter()(self);
      return absl::OkStatus();
    });
  }

  static void create_device_fns(const capi::SP_Platform*,
                                capi::SE_CreateDeviceFnsParams* params,
                                capi::TF_Status* status) {
    Guard(status, "create_device_fns", [&]() -> absl::Status {
      if (auto s = CheckStruct(*params); !s.ok()) return s;
      return FillStruct(params->device_fns, DeviceFnsTable<DeviceT>::Make());
    });
  }

  static void create_stream_executor(
      const capi::SP_Platform*, capi::SE_CreateStreamExecutorParams* params,
      capi::TF_Status* status) {
    Guard(status, "create_stream_executor", [&]() -> absl::Status {
      if (auto s = CheckStruct(*params); !s.ok()) return s;
      return FillStruct(params->stream_executor,
                        StreamExecutorTable<DeviceT>::Make());
    });
  }

  static void create_timer_fns(const capi::SP_Platform*,
                               capi::SP_TimerFns* timer_fns,
                               capi::TF_Status* status) {
    Guard(status, "create_timer_fns", [&] {
      return FillStruct(timer_fns, TimerFnsTable<DeviceT>::Make());
    });
  }

  // The tables own nothing.
  static void destroy_device_fns(const capi::SP_Platform*,
                                 capi::SP_DeviceFns*) {}
  static void destroy_stream_executor(const capi::SP_Platform*,
                                      capi::SP_StreamExecutor*) {}
  static void destroy_timer_fns(const capi::SP_Platform*, capi::SP_TimerFns*) {}
  static void destroy_platform_fns(capi::SP_PlatformFns*) {}

  static void destroy_platform(capi::SP_Platform* platform) {
    PlatformT* self = ToPlatform(platform);
    platform->ext = nullptr;
    Destroy("destroy_platform", self);
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
  // With the Platform too, where the Device has such a constructor: core asks
  // for devices only where there is one.
  static absl::StatusOr<Owned<DeviceT>> CreateDevice(
      const capi::SP_Platform* platform, int ordinal) {
    if constexpr (std::is_constructible_v<DeviceT, PlatformT&, int>) {
      if (ToPlatform(platform) == nullptr) {
        return absl::FailedPreconditionError("there is no platform");
      }
      return Create<DeviceT>(*ToPlatform(platform), ordinal);
    } else {
      return Create<DeviceT>(ordinal);
    }
  }

  // What the base holds for a device goes while the device is still whole.
  struct DeviceDeleter {
    void operator()(DeviceT* device) const {
      DeviceBase& base = *device;
      base.synchronous_event_.reset();
      base.synchronous_stream_.reset();
      base.allocator_.reset();
      Deleter<DeviceT>()(device);
    }
  };

  // What Device's default synchronous copies run on.
  static absl::Status PrepareSynchronousCopies(DeviceT& device) {
    if constexpr (Overrides(&DeviceT::CopyHostToDeviceSync,
                            &DeviceBase::CopyHostToDeviceSync) &&
                  Overrides(&DeviceT::CopyDeviceToHostSync,
                            &DeviceBase::CopyDeviceToHostSync) &&
                  Overrides(&DeviceT::CopyDeviceToDeviceSync,
                            &DeviceBase::CopyDeviceToDeviceSync)) {
      return absl::OkStatus();
    }
    auto stream = Handles<DeviceT>::CreateStream(device, StreamOptions());
    if (!stream.ok()) return stream.status();
    auto event = Create<typename DeviceT::Event>(device);
    if (!event.ok()) return event.status();
    auto& base = static_cast<DeviceBase&>(device);
    base.synchronous_stream_ = *std::move(stream);
    base.synchronous_event_ = *std::move(event);
    return absl::OkStatus();
  }
};

}  // namespace tfplug::internal

#endif  // TFPLUG_DEVICE_INTERNAL_PLATFORM_TABLE_H_
