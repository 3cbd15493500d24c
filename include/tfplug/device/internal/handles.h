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

namespace tfplug::internal {

// Converts TensorFlow's handles to the author's objects, the first step of each
// trampoline. Validates at compile time the classes that a Device names.
template <class DeviceT>
struct Handles {
  using AllocatorT = typename DeviceT::Allocator;
  using StreamT = typename DeviceT::Stream;
  using EventT = typename DeviceT::Event;
  using TimerT = typename DeviceT::Timer;
  using DeviceBase = tfplug::Device<StreamT, AllocatorT>;
  using StreamBase = tfplug::Stream<StreamT, EventT, TimerT>;

  static_assert(std::is_base_of_v<DeviceBase, DeviceT>,
                "tfplug: the argument of tfplug::Platform must be derived from "
                "tfplug::Device<Stream, Allocator>");
  static_assert(std::is_base_of_v<StreamBase, StreamT>,
                "tfplug: derive the stream with `class MyStream : public "
                "tfplug::Stream<MyStream, MyEvent>`: the first argument must "
                "be the class itself");
  static_assert(std::is_base_of_v<tfplug::Event, EventT>,
                "tfplug: the second argument of tfplug::Stream must be derived "
                "from tfplug::Event");
  static_assert(std::is_base_of_v<tfplug::Timer, TimerT>,
                "tfplug: the third argument of tfplug::Stream must be derived "
                "from tfplug::Timer");
  static_assert(std::is_base_of_v<tfplug::Allocator, AllocatorT>,
                "tfplug: the second argument of tfplug::Device must be derived "
                "from tfplug::Allocator");

  static constexpr bool kHasUnifiedMemory =
      Overrides(&AllocatorT::AllocateUnified, &Allocator::AllocateUnified);
  static_assert(kHasUnifiedMemory == Overrides(&AllocatorT::DeallocateUnified,
                                               &Allocator::DeallocateUnified),
                "tfplug: override both AllocateUnified and DeallocateUnified, "
                "or neither");

  static_assert(std::is_base_of_v<HostTimer, TimerT> ||
                    (Overrides(&StreamT::StartTimer, &StreamBase::StartTimer) &&
                     Overrides(&StreamT::StopTimer, &StreamBase::StopTimer)),
                "tfplug: a stream whose timer is not a HostTimer must override "
                "StartTimer and StopTimer");

  static constexpr bool kTakesStreamOptions =
      std::is_constructible_v<StreamT, DeviceT&, StreamOptions>;

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

}  // namespace tfplug::internal

#endif  // TFPLUG_DEVICE_INTERNAL_HANDLES_H_
