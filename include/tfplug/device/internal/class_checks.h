// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_CLASS_CHECKS_H_
#define TFPLUG_DEVICE_INTERNAL_CLASS_CHECKS_H_

#include <type_traits>

#include "absl/status/status.h"
#include "tfplug/base/internal/override.h"
#include "tfplug/device/allocator.h"
#include "tfplug/device/device.h"
#include "tfplug/device/event.h"
#include "tfplug/device/platform.h"
#include "tfplug/device/stream.h"
#include "tfplug/device/timer.h"

#pragma GCC visibility push(hidden)

// Validates an author's classes at compile time, with one message for each
// mistake. Code that uses the classes is compiled only if ClassesAreValid
// returns true.
namespace tfplug::device_internal {

// Evaluates every check, so that the compiler reports all mistakes at once.
template <class... Checks>
constexpr bool AllOf(Checks... checks) {
  return (checks && ...);
}

template <class Function>
struct Signature;
template <class Result, class Class, class... Arguments>
struct Signature<Result (Class::*)(Arguments...)> {
  using Type = Result(Arguments...);
};
template <class Result, class Class, class... Arguments>
struct Signature<Result (Class::*)(Arguments...) noexcept> {
  using Type = Result(Arguments...);
};
template <class Result, class Class, class... Arguments>
struct Signature<Result (Class::*)(Arguments...) const> {
  using Type = Result(Arguments...) const;
};

template <class A, class B>
inline constexpr bool kSameSignature =
    std::is_same_v<typename Signature<A>::Type, typename Signature<B>::Type>;

// There is one function for each base class B. Its result type is a
// bool_constant, which is true if every hook of T has the signature that it has
// in B. If a hook in T is private or overloaded, overload resolution selects
// the function that returns void.
#define TFPLUG_INTERNAL_SAME(name) \
  kSameSignature<decltype(&T::name), decltype(&B::name)>
template <class T, class B>
auto PlatformHooks(int)
    -> std::bool_constant<TFPLUG_INTERNAL_SAME(Init) &&
                          TFPLUG_INTERNAL_SAME(Options) &&
                          TFPLUG_INTERNAL_SAME(DeviceCount)>;
template <class T, class B>
void PlatformHooks(...);

template <class T, class B>
auto DeviceHooks(int) -> std::bool_constant<
    TFPLUG_INTERNAL_SAME(Init) && TFPLUG_INTERNAL_SAME(HardwareName) &&
    TFPLUG_INTERNAL_SAME(Vendor) && TFPLUG_INTERNAL_SAME(PciBusId) &&
    TFPLUG_INTERNAL_SAME(NumaNode) && TFPLUG_INTERNAL_SAME(MemoryBandwidth) &&
    TFPLUG_INTERNAL_SAME(Gflops) &&
    TFPLUG_INTERNAL_SAME(SynchronizeAllActivity) &&
    TFPLUG_INTERNAL_SAME(CopyHostToDeviceSync) &&
    TFPLUG_INTERNAL_SAME(CopyDeviceToHostSync) &&
    TFPLUG_INTERNAL_SAME(CopyDeviceToDeviceSync) &&
    TFPLUG_INTERNAL_SAME(GetTime)>;
template <class T, class B>
void DeviceHooks(...);

template <class T, class B>
auto StreamHooks(int) -> std::bool_constant<
    TFPLUG_INTERNAL_SAME(Init) && TFPLUG_INTERNAL_SAME(GetStatus) &&
    TFPLUG_INTERNAL_SAME(WaitForStream) && TFPLUG_INTERNAL_SAME(RecordEvent) &&
    TFPLUG_INTERNAL_SAME(WaitForEvent) &&
    TFPLUG_INTERNAL_SAME(CopyHostToDevice) &&
    TFPLUG_INTERNAL_SAME(CopyDeviceToHost) &&
    TFPLUG_INTERNAL_SAME(CopyDeviceToDevice) && TFPLUG_INTERNAL_SAME(MemZero) &&
    TFPLUG_INTERNAL_SAME(Memset) && TFPLUG_INTERNAL_SAME(Memset32) &&
    TFPLUG_INTERNAL_SAME(RunOnHost) &&
    TFPLUG_INTERNAL_SAME(BlockHostUntilDone) &&
    TFPLUG_INTERNAL_SAME(StartTimer) && TFPLUG_INTERNAL_SAME(StopTimer)>;
template <class T, class B>
void StreamHooks(...);

template <class T, class B>
auto EventHooks(int) -> std::bool_constant<TFPLUG_INTERNAL_SAME(Init) &&
                                           TFPLUG_INTERNAL_SAME(Poll) &&
                                           TFPLUG_INTERNAL_SAME(BlockHost)>;
template <class T, class B>
void EventHooks(...);

template <class T, class B>
auto TimerHooks(int) -> std::bool_constant<TFPLUG_INTERNAL_SAME(Init) &&
                                           TFPLUG_INTERNAL_SAME(Nanoseconds) &&
                                           TFPLUG_INTERNAL_SAME(GetTimes)>;
template <class T, class B>
void TimerHooks(...);

template <class T, class B>
auto AllocatorHooks(int) -> std::bool_constant<
    TFPLUG_INTERNAL_SAME(Init) && TFPLUG_INTERNAL_SAME(Allocate) &&
    TFPLUG_INTERNAL_SAME(Deallocate) && TFPLUG_INTERNAL_SAME(AllocateHost) &&
    TFPLUG_INTERNAL_SAME(DeallocateHost) &&
    TFPLUG_INTERNAL_SAME(AllocateUnified) &&
    TFPLUG_INTERNAL_SAME(DeallocateUnified) && TFPLUG_INTERNAL_SAME(Stats) &&
    TFPLUG_INTERNAL_SAME(Usage)>;
template <class T, class B>
void AllocatorHooks(...);
#undef TFPLUG_INTERNAL_SAME

// Returns whether `Result`, the result type of one of these functions for T,
// means that the hooks of T are valid.
template <class T, class Result>
constexpr bool HooksAreValid() {
  static_assert(!std::is_void_v<Result>,
                "tfplug: the hooks of this class must be public and must not "
                "be overloaded; write `public:` above them");
  if constexpr (std::is_void_v<Result>) {
    return false;
  } else {
    static_assert(
        Result::value,
        "tfplug: the arguments or the result of a hook of this class "
        "differ from the base class's, so the hook overrides nothing; "
        "mark every hook `override`, and the compiler names it");
    return Result::value;
  }
}

// Validates a Device and its stream, event, timer and allocator classes.
template <class DeviceT>
struct DeviceChecks {
  using AllocatorT = typename DeviceT::Allocator;
  using StreamT = typename DeviceT::Stream;
  using EventT = typename DeviceT::Event;
  using TimerT = typename DeviceT::Timer;
  using DeviceBase = tfplug::Device<StreamT, AllocatorT>;
  using StreamBase = tfplug::Stream<StreamT, EventT, TimerT>;

  static constexpr bool kAreDerived =
      std::is_base_of_v<DeviceBase, DeviceT> &&
      std::is_base_of_v<StreamBase, StreamT> &&
      std::is_base_of_v<tfplug::Event, EventT> &&
      std::is_base_of_v<tfplug::Timer, TimerT> &&
      std::is_base_of_v<tfplug::Allocator, AllocatorT>;

  // The assertions are in a function: after an assertion that fails in a class,
  // clang would still instantiate the code behind `if constexpr`.
  static constexpr bool AreValid() {
    static_assert(
        std::is_base_of_v<DeviceBase, DeviceT>,
        "tfplug: the argument of tfplug::Platform must be derived from "
        "tfplug::Device<Stream, Allocator>");
    static_assert(std::is_base_of_v<StreamBase, StreamT>,
                  "tfplug: derive the stream with `class MyStream : public "
                  "tfplug::Stream<MyStream, MyEvent>`: the first argument must "
                  "be the class itself");
    static_assert(
        std::is_base_of_v<tfplug::Event, EventT>,
        "tfplug: the second argument of tfplug::Stream must be derived "
        "from tfplug::Event");
    static_assert(
        std::is_base_of_v<tfplug::Timer, TimerT>,
        "tfplug: the third argument of tfplug::Stream must be derived "
        "from tfplug::Timer");
    static_assert(
        std::is_base_of_v<tfplug::Allocator, AllocatorT>,
        "tfplug: the second argument of tfplug::Device must be derived "
        "from tfplug::Allocator");
    if constexpr (!kAreDerived) {
      return false;
    } else if constexpr (
        AllOf(HooksAreValid<DeviceT,
                            decltype(DeviceHooks<DeviceT, DeviceBase>(0))>(),
              HooksAreValid<StreamT,
                            decltype(StreamHooks<StreamT, StreamBase>(0))>(),
              HooksAreValid<EventT, decltype(EventHooks<EventT, Event>(0))>(),
              HooksAreValid<TimerT, decltype(TimerHooks<TimerT, Timer>(0))>(),
              HooksAreValid<AllocatorT,
                            decltype(AllocatorHooks<AllocatorT, Allocator>(
                                0))>())) {
      constexpr bool kAllocatesUnified = internal::Overrides(
          &AllocatorT::AllocateUnified, &Allocator::AllocateUnified);
      constexpr bool kDeallocatesUnified = internal::Overrides(
          &AllocatorT::DeallocateUnified, &Allocator::DeallocateUnified);
      static_assert(kAllocatesUnified == kDeallocatesUnified,
                    "tfplug: override both AllocateUnified and "
                    "DeallocateUnified, or neither");
      constexpr bool kHasTimer =
          std::is_base_of_v<HostTimer, TimerT> ||
          (internal::Overrides(&StreamT::StartTimer, &StreamBase::StartTimer) &&
           internal::Overrides(&StreamT::StopTimer, &StreamBase::StopTimer));
      static_assert(kHasTimer,
                    "tfplug: a stream whose timer is not a HostTimer must "
                    "override StartTimer and StopTimer");
      constexpr bool kTimesHaveClock =
          internal::Overrides(&TimerT::GetTimes, &Timer::GetTimes) ==
          internal::Overrides(&DeviceT::GetTime, &DeviceBase::GetTime);
      static_assert(kTimesHaveClock,
                    "tfplug: override both Timer::GetTimes and "
                    "Device::GetTime, or neither");
      return kAllocatesUnified == kDeallocatesUnified && kHasTimer &&
             kTimesHaveClock;
    } else {
      return false;
    }
  }
};

template <class PlatformT>
constexpr bool ClassesAreValid() {
  using DeviceT = typename PlatformT::Device;
  using Base = tfplug::Platform<DeviceT>;
  static_assert(std::is_base_of_v<Base, PlatformT>,
                "tfplug: TFPLUG_REGISTER_DEVICE takes a class derived from "
                "tfplug::Platform<Device>");
  if constexpr (!std::is_base_of_v<Base, PlatformT>) {
    return false;
  } else {
    return AllOf(
        HooksAreValid<PlatformT, decltype(PlatformHooks<PlatformT, Base>(0))>(),
        DeviceChecks<DeviceT>::AreValid());
  }
}

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_CLASS_CHECKS_H_
