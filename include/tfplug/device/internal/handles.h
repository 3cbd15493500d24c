// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_HANDLES_H_
#define TFPLUG_DEVICE_INTERNAL_HANDLES_H_

#include <type_traits>

#include "tfplug/abi/sp_device.h"
#include "tfplug/abi/sp_device_memory_base.h"
#include "tfplug/base/device_memory.h"
#include "tfplug/base/internal/override.h"
#include "tfplug/device/allocator.h"
#include "tfplug/device/device.h"
#include "tfplug/device/event.h"
#include "tfplug/device/stream.h"
#include "tfplug/device/timer.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// Converts TensorFlow's handles to the author's objects, which is the first
// step of each trampoline.
template <class DeviceT>
struct Handles {
  using AllocatorT = typename DeviceT::Allocator;
  using StreamT = typename DeviceT::Stream;
  using EventT = typename DeviceT::Event;
  using TimerT = typename DeviceT::Timer;
  using DeviceBase = tfplug::Device<StreamT, AllocatorT>;
  using StreamBase = tfplug::Stream<StreamT, EventT, TimerT>;

  static constexpr bool kHasUnifiedMemory = internal::Overrides(
      &AllocatorT::AllocateUnified, &Allocator::AllocateUnified);
  static constexpr bool kTakesStreamOptions =
      std::is_constructible_v<StreamT, DeviceT&, StreamOptions>;

  // Whether profiles have the device's own times.
  static constexpr bool kHasTimes =
      internal::Overrides(&TimerT::GetTimes, &tfplug::Timer::GetTimes);

  // SP_Device::device_handle is the Device, SP_Device::ext its Allocator.
  static DeviceT& ToDevice(const capi::SP_Device* device) {
    return *static_cast<DeviceT*>(device->device_handle);
  }
  static AllocatorT& ToAllocator(const capi::SP_Device* device) {
    return *static_cast<AllocatorT*>(device->ext);
  }
  static StreamT& ToStream(capi::SP_Stream stream) {
    return *reinterpret_cast<StreamT*>(stream);
  }
  static EventT& ToEvent(capi::SP_Event event) {
    return *reinterpret_cast<EventT*>(event);
  }
  static TimerT& ToTimer(capi::SP_Timer timer) {
    return *reinterpret_cast<TimerT*>(timer);
  }
  static DeviceMemory ToMemory(const capi::SP_DeviceMemoryBase* memory) {
    return DeviceMemory(memory->opaque, memory->size, memory->payload);
  }
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_HANDLES_H_
