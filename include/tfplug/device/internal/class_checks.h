// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_CLASS_CHECKS_H_
#define TFPLUG_DEVICE_INTERNAL_CLASS_CHECKS_H_

#include <cstdint>
#include <type_traits>

#include "tfplug/base/internal/device_type.h"
#include "tfplug/base/internal/is_defined.h"
#include "tfplug/base/internal/override.h"
#include "tfplug/device/allocator.h"
#include "tfplug/device/device.h"
#include "tfplug/device/event.h"
#include "tfplug/device/internal/hook_signatures.h"
#include "tfplug/device/platform.h"
#include "tfplug/device/stream.h"
#include "tfplug/device/timer.h"

#pragma GCC visibility push(hidden)

// Finds mistakes in an author's classes at compile time. TFPLUG_REGISTER_DEVICE
// asserts each of them itself, so that the compiler begins with the sentence
// and the line of the author's code. Code that uses the classes is compiled
// only if there is no mistake.

// Calls X(argument, identifier, text) for every mistake.
#define TFPLUG_INTERNAL_DEVICE_MISTAKES(X, argument)                         \
  TFPLUG_INTERNAL_ONLY_DECLARED(X, argument, Platform, "platform")           \
  TFPLUG_INTERNAL_ONLY_DECLARED(X, argument, Device, "device")               \
  TFPLUG_INTERNAL_ONLY_DECLARED(X, argument, Stream, "stream")               \
  TFPLUG_INTERNAL_ONLY_DECLARED(X, argument, Event, "event")                 \
  TFPLUG_INTERNAL_ONLY_DECLARED(X, argument, Timer, "timer")                 \
  TFPLUG_INTERNAL_ONLY_DECLARED(X, argument, Allocator, "allocator")         \
  X(argument, kNotAPlatform,                                                 \
    "tfplug: TFPLUG_REGISTER_DEVICE takes a class that is publicly derived " \
    "from tfplug::Platform<Device>")                                         \
  X(argument, kNoName,                                                       \
    "tfplug: the platform has no public `static constexpr char kName[]`, "   \
    "its name, such as \"MY_DEVICE\"")                                       \
  X(argument, kNoType,                                                       \
    "tfplug: the platform has no public `static constexpr char kType[]`, "   \
    "the type of its devices, such as \"MY_DEVICE\"")                        \
  X(argument, kBadName,                                                      \
    "tfplug: kName must begin with a capital letter and contain only "       \
    "capital letters and underscores; TensorFlow aborts on other names")     \
  X(argument, kBadType,                                                      \
    "tfplug: kType must begin with a capital letter and contain only "       \
    "capital letters and underscores; TensorFlow aborts on other types")     \
  X(argument, kTypeOfCpu,                                                    \
    "tfplug: kType must not contain \"CPU\": TensorFlow's graph optimizers " \
    "treat such a device as the CPU and move its ops")                       \
  X(argument, kNotADevice,                                                   \
    "tfplug: the argument of tfplug::Platform must be publicly derived "     \
    "from tfplug::Device<Stream, Allocator>")                                \
  X(argument, kNotAStream,                                                   \
    "tfplug: derive the stream with `class MyStream : public "               \
    "tfplug::Stream<MyStream, MyEvent>`: the first argument must be the "    \
    "class itself, and that of tfplug::Device is the stream")                \
  X(argument, kNotAnEvent,                                                   \
    "tfplug: the second argument of tfplug::Stream must be publicly "        \
    "derived from tfplug::Event")                                            \
  X(argument, kNotATimer,                                                    \
    "tfplug: the third argument of tfplug::Stream must be publicly derived " \
    "from tfplug::Timer")                                                    \
  X(argument, kNotAnAllocator,                                               \
    "tfplug: the second argument of tfplug::Device must be publicly "        \
    "derived from tfplug::Allocator")                                        \
  TFPLUG_INTERNAL_HOOK_MISTAKES(X, argument, Platform, "platform",           \
                                "MyPlatform()")                              \
  TFPLUG_INTERNAL_HOOK_MISTAKES(                                             \
      X, argument, Device, "device",                                         \
      "MyDevice(), MyDevice(int ordinal) or MyDevice(MyPlatform&, int)")     \
  TFPLUG_INTERNAL_HOOK_MISTAKES(                                             \
      X, argument, Stream, "stream",                                         \
      "MyStream(), MyStream(MyDevice&) or MyStream(MyDevice&, "              \
      "tfplug::StreamOptions)")                                              \
  TFPLUG_INTERNAL_HOOK_MISTAKES(X, argument, Event, "event",                 \
                                "MyEvent() or MyEvent(MyDevice&)")           \
  TFPLUG_INTERNAL_HOOK_MISTAKES(X, argument, Timer, "timer",                 \
                                "MyTimer() or MyTimer(MyDevice&)")           \
  TFPLUG_INTERNAL_HOOK_MISTAKES(X, argument, Allocator, "allocator",         \
                                "MyAllocator() or MyAllocator(MyDevice&)")   \
  TFPLUG_INTERNAL_NO_HOOK(X, argument, "platform", DeviceCount)              \
  TFPLUG_INTERNAL_NO_HOOK(X, argument, "stream", GetStatus)                  \
  TFPLUG_INTERNAL_NO_HOOK(X, argument, "stream", RecordEvent)                \
  TFPLUG_INTERNAL_NO_HOOK(X, argument, "stream", WaitForEvent)               \
  TFPLUG_INTERNAL_NO_HOOK(X, argument, "stream", CopyHostToDevice)           \
  TFPLUG_INTERNAL_NO_HOOK(X, argument, "stream", CopyDeviceToHost)           \
  TFPLUG_INTERNAL_NO_HOOK(X, argument, "stream", CopyDeviceToDevice)         \
  TFPLUG_INTERNAL_NO_HOOK(X, argument, "stream", Memset)                     \
  TFPLUG_INTERNAL_NO_HOOK(X, argument, "stream", RunOnHost)                  \
  TFPLUG_INTERNAL_NO_HOOK(X, argument, "event", Poll)                        \
  TFPLUG_INTERNAL_NO_HOOK(X, argument, "event", BlockHost)                   \
  TFPLUG_INTERNAL_NO_HOOK(X, argument, "timer", Nanoseconds)                 \
  TFPLUG_INTERNAL_NO_HOOK(X, argument, "allocator", Allocate)                \
  TFPLUG_INTERNAL_NO_HOOK(X, argument, "allocator", Deallocate)              \
  TFPLUG_INTERNAL_NO_HOOK(X, argument, "allocator", Usage)                   \
  X(argument, kHalfUnified,                                                  \
    "tfplug: override both AllocateUnified and DeallocateUnified, or "       \
    "neither")                                                               \
  X(argument, kNoTimer,                                                      \
    "tfplug: a stream whose timer is not a HostTimer must override "         \
    "StartTimer and StopTimer")                                              \
  X(argument, kNoClock,                                                      \
    "tfplug: override both Timer::GetTimes and Device::GetTime, or "         \
    "neither; a BufferStream's timer has the first, and calling the "        \
    "stream's GetTime is enough for the second")

#define TFPLUG_INTERNAL_ONLY_DECLARED(X, argument, Class, name)        \
  X(argument, kUndefined##Class,                                       \
    "tfplug: the " name                                                \
    " class is only declared here; define it, or include its header, " \
    "before TFPLUG_REGISTER_DEVICE")

#define TFPLUG_INTERNAL_HOOK_MISTAKES(X, argument, Class, name, forms)         \
  X(argument, kHidden##Class,                                                  \
    "tfplug: the hooks of the " name                                           \
    " class must be public and must not be overloaded; write `public:` above " \
    "them")                                                                    \
  X(argument, kOther##Class,                                                   \
    "tfplug: the arguments or the result of a hook of the " name               \
    " class differ from the base class's, so the hook overrides nothing; "     \
    "the next error shows its name and the right type")                        \
  X(argument, kNoConstructor##Class,                                           \
    "tfplug: the " name " class needs a public constructor: " forms            \
    "; see the comment above tfplug::" #Class " in tfplug/device/" name ".h")

#define TFPLUG_INTERNAL_NO_HOOK(X, argument, name, Hook)  \
  X(argument, kNo##Hook,                                  \
    "tfplug: the " name " class does not override " #Hook \
    "; copy its declaration from tfplug/device/" name ".h")

namespace tfplug::device_internal {

#define TFPLUG_INTERNAL_IDENTIFIER(argument, identifier, text) identifier,
enum Mistake {
  TFPLUG_INTERNAL_DEVICE_MISTAKES(TFPLUG_INTERNAL_IDENTIFIER, _) kMistakes
};
#undef TFPLUG_INTERNAL_IDENTIFIER
static_assert(kMistakes <= 64, "a mistake is a bit");

constexpr uint64_t If(bool is_made, Mistake mistake) {
  return is_made ? uint64_t{1} << mistake : 0;
}

// Whether T is a class that is publicly derived from Base.
template <class T, class Base>
inline constexpr bool kIsA = std::is_convertible_v<T*, Base*>;

// Not for an absl::string_view, or for characters that are no constant.
template <class T>
using NameOf = std::bool_constant<internal::IsDeviceType(T::kName)>;
template <class T>
using TypeOf = std::bool_constant<internal::IsDeviceType(T::kType)>;
template <class T>
using PartsOf = std::void_t<typename T::Stream, typename T::Event,
                            typename T::Timer, typename T::Allocator>;

// Whether Member<T> is there, and can be accessed.
template <template <class> class Member, class T, class = void>
inline constexpr bool kHas = false;
template <template <class> class Member, class T>
inline constexpr bool kHas<Member, T, std::void_t<Member<T>>> = true;

// Whether T is publicly derived from a Platform.
template <class T, class = void>
inline constexpr bool kIsPlatform = false;
template <class T>
inline constexpr bool kIsPlatform<T, std::void_t<typename T::Device>> =
    kIsA<T, tfplug::Platform<typename T::Device>>;

template <class PlatformT>
constexpr uint64_t NameMistakes() {
  if constexpr (!kHas<NameOf, PlatformT> || !kHas<TypeOf, PlatformT>) {
    return If(!kHas<NameOf, PlatformT>, kNoName) |
           If(!kHas<TypeOf, PlatformT>, kNoType);
  } else {
    return If(!internal::IsDeviceType(PlatformT::kName), kBadName) |
           If(!internal::IsDeviceType(PlatformT::kType), kBadType) |
           If(internal::IsTakenForCpu(PlatformT::kType), kTypeOfCpu);
  }
}

// Whether T has a constructor that takes the arguments, or none. That of an
// abstract class cannot be found.
template <class T, class... Arguments>
inline constexpr bool kIsConstructible =
    std::is_abstract_v<T> || std::is_default_constructible_v<T> ||
    std::is_constructible_v<T, Arguments...>;

// Returns the mistakes in the hooks and constructors of a class; `Hooks` is the
// result type of one of the functions in hook_signatures.h.
template <class Hooks>
constexpr uint64_t ClassMistakes(Mistake hidden, Mistake other,
                                 Mistake no_constructor,
                                 bool is_constructible) {
  if constexpr (std::is_void_v<Hooks>) {
    return If(true, hidden);
  } else {
    return If(!Hooks::kAreRight, other) | If(!is_constructible, no_constructor);
  }
}

// For a class T with the base class B, in a function that knows both.
#define TFPLUG_INTERNAL_MISSES(T, B, Hook)                              \
  If(std::is_abstract_v<T> && !internal::Overrides(&T::Hook, &B::Hook), \
     kNo##Hook)

template <class StreamT, class B>
constexpr uint64_t MissingStreamHooks() {
  return TFPLUG_INTERNAL_MISSES(StreamT, B, GetStatus) |
         TFPLUG_INTERNAL_MISSES(StreamT, B, RecordEvent) |
         TFPLUG_INTERNAL_MISSES(StreamT, B, WaitForEvent) |
         TFPLUG_INTERNAL_MISSES(StreamT, B, CopyHostToDevice) |
         TFPLUG_INTERNAL_MISSES(StreamT, B, CopyDeviceToHost) |
         TFPLUG_INTERNAL_MISSES(StreamT, B, CopyDeviceToDevice) |
         TFPLUG_INTERNAL_MISSES(StreamT, B, Memset) |
         TFPLUG_INTERNAL_MISSES(StreamT, B, RunOnHost);
}

template <class EventT, class TimerT, class AllocatorT>
constexpr uint64_t MissingHooks() {
  return TFPLUG_INTERNAL_MISSES(EventT, Event, Poll) |
         TFPLUG_INTERNAL_MISSES(EventT, Event, BlockHost) |
         TFPLUG_INTERNAL_MISSES(TimerT, Timer, Nanoseconds) |
         TFPLUG_INTERNAL_MISSES(AllocatorT, Allocator, Allocate) |
         TFPLUG_INTERNAL_MISSES(AllocatorT, Allocator, Deallocate) |
         TFPLUG_INTERNAL_MISSES(AllocatorT, Allocator, Usage);
}

// Returns the mistakes in the combination of hooks that are overridden.
template <class DeviceT, class StreamT, class TimerT, class AllocatorT>
constexpr uint64_t CombinationMistakes() {
  using DeviceBase = tfplug::Device<StreamT, AllocatorT>;
  using StreamBase = tfplug::Stream<StreamT, typename DeviceT::Event, TimerT>;
  constexpr bool kUnified = internal::Overrides(&AllocatorT::AllocateUnified,
                                                &Allocator::AllocateUnified);
  constexpr bool kFreesUnified = internal::Overrides(
      &AllocatorT::DeallocateUnified, &Allocator::DeallocateUnified);
  constexpr bool kStarts =
      internal::Overrides(&StreamT::StartTimer, &StreamBase::StartTimer) &&
      internal::Overrides(&StreamT::StopTimer, &StreamBase::StopTimer);
  constexpr bool kHasTimes =
      internal::Overrides(&TimerT::GetTimes, &Timer::GetTimes);
  constexpr bool kHasClock =
      internal::Overrides(&DeviceT::GetTime, &DeviceBase::GetTime);
  return If(kUnified != kFreesUnified, kHalfUnified) |
         If(!kStarts && !std::is_base_of_v<HostTimer, TimerT>, kNoTimer) |
         If(kHasTimes != kHasClock, kNoClock);
}

// Returns the mistakes in a Device and its stream, event, timer and allocator.
template <class PlatformT, class DeviceT>
constexpr uint64_t PartMistakes() {
  using AllocatorT = typename DeviceT::Allocator;
  using StreamT = typename DeviceT::Stream;
  using EventT = typename DeviceT::Event;
  using TimerT = typename DeviceT::Timer;
  using DeviceBase = tfplug::Device<StreamT, AllocatorT>;
  using StreamBase = tfplug::Stream<StreamT, EventT, TimerT>;
  constexpr uint64_t kBases = If(!kIsA<DeviceT, DeviceBase>, kNotADevice) |
                              If(!kIsA<StreamT, StreamBase>, kNotAStream) |
                              If(!kIsA<EventT, Event>, kNotAnEvent) |
                              If(!kIsA<TimerT, Timer>, kNotATimer) |
                              If(!kIsA<AllocatorT, Allocator>, kNotAnAllocator);
  if constexpr (kBases != 0) {
    return kBases;
  } else {
    constexpr uint64_t kClasses =
        ClassMistakes<decltype(DeviceHooks<DeviceT, DeviceBase>(0))>(
            kHiddenDevice, kOtherDevice, kNoConstructorDevice,
            kIsConstructible<DeviceT, int> ||
                std::is_constructible_v<DeviceT, PlatformT&, int>) |
        ClassMistakes<decltype(StreamHooks<StreamT, StreamBase>(0))>(
            kHiddenStream, kOtherStream, kNoConstructorStream,
            kIsConstructible<StreamT, DeviceT&> ||
                std::is_constructible_v<StreamT, DeviceT&, StreamOptions>) |
        ClassMistakes<decltype(EventHooks<EventT, Event>(0))>(
            kHiddenEvent, kOtherEvent, kNoConstructorEvent,
            kIsConstructible<EventT, DeviceT&>) |
        ClassMistakes<decltype(TimerHooks<TimerT, Timer>(0))>(
            kHiddenTimer, kOtherTimer, kNoConstructorTimer,
            kIsConstructible<TimerT, DeviceT&>) |
        ClassMistakes<decltype(AllocatorHooks<AllocatorT, Allocator>(0))>(
            kHiddenAllocator, kOtherAllocator, kNoConstructorAllocator,
            kIsConstructible<AllocatorT, DeviceT&>);
    if constexpr (kClasses != 0) {
      return kClasses;
    } else {
      return MissingStreamHooks<StreamT, StreamBase>() |
             MissingHooks<EventT, TimerT, AllocatorT>() |
             CombinationMistakes<DeviceT, StreamT, TimerT, AllocatorT>();
    }
  }
}

template <class DeviceT>
constexpr uint64_t UndefinedParts() {
  return If(!internal::kIsDefined<typename DeviceT::Stream>, kUndefinedStream) |
         If(!internal::kIsDefined<typename DeviceT::Event>, kUndefinedEvent) |
         If(!internal::kIsDefined<typename DeviceT::Timer>, kUndefinedTimer) |
         If(!internal::kIsDefined<typename DeviceT::Allocator>,
            kUndefinedAllocator);
}

template <class PlatformT, class DeviceT>
constexpr uint64_t DeviceMistakes() {
  if constexpr (!internal::kIsDefined<DeviceT>) {
    return If(true, kUndefinedDevice);
  } else if constexpr (!kHas<PartsOf, DeviceT>) {
    return If(true, kNotADevice);
  } else if constexpr (UndefinedParts<DeviceT>() != 0) {
    return UndefinedParts<DeviceT>();
  } else {
    return PartMistakes<PlatformT, DeviceT>();
  }
}

template <class PlatformT>
constexpr uint64_t PlatformMistakes() {
  if constexpr (!internal::kIsDefined<PlatformT>) {
    return If(true, kUndefinedPlatform);
  } else if constexpr (!kIsPlatform<PlatformT>) {
    return If(true, kNotAPlatform);
  } else {
    using Base = tfplug::Platform<typename PlatformT::Device>;
    constexpr uint64_t kClass =
        ClassMistakes<decltype(PlatformHooks<PlatformT, Base>(0))>(
            kHiddenPlatform, kOtherPlatform, kNoConstructorPlatform,
            kIsConstructible<PlatformT>);
    uint64_t mistakes = kClass | NameMistakes<PlatformT>() |
                        DeviceMistakes<PlatformT, typename PlatformT::Device>();
    if constexpr (kClass == 0) {
      mistakes |= TFPLUG_INTERNAL_MISSES(PlatformT, Base, DeviceCount);
    }
    return mistakes;
  }
}
#undef TFPLUG_INTERNAL_MISSES

inline constexpr uint64_t kOtherHooks =
    If(true, kOtherPlatform) | If(true, kOtherDevice) | If(true, kOtherStream) |
    If(true, kOtherEvent) | If(true, kOtherTimer) | If(true, kOtherAllocator);

// Has the compiler name a hook that overrides nothing, with its right type.
template <class PlatformT, uint64_t kMistakes>
void RequireHook() {
  constexpr auto kMade = [](Mistake mistake) {
    return (kMistakes & If(true, mistake)) != 0;
  };
  using DeviceT = typename PlatformT::Device;
  if constexpr (kMade(kOtherPlatform)) {
    using Base = tfplug::Platform<DeviceT>;
    decltype(PlatformHooks<PlatformT, Base>(0))::FindWrong().Require();
  } else if constexpr (kMade(kOtherDevice)) {
    using Base =
        tfplug::Device<typename DeviceT::Stream, typename DeviceT::Allocator>;
    decltype(DeviceHooks<DeviceT, Base>(0))::FindWrong().Require();
  } else if constexpr (kMade(kOtherStream)) {
    using StreamT = typename DeviceT::Stream;
    using Base = tfplug::Stream<StreamT, typename DeviceT::Event,
                                typename DeviceT::Timer>;
    decltype(StreamHooks<StreamT, Base>(0))::FindWrong().Require();
  } else if constexpr (kMade(kOtherEvent)) {
    using EventT = typename DeviceT::Event;
    decltype(EventHooks<EventT, Event>(0))::FindWrong().Require();
  } else if constexpr (kMade(kOtherTimer)) {
    using TimerT = typename DeviceT::Timer;
    decltype(TimerHooks<TimerT, Timer>(0))::FindWrong().Require();
  } else if constexpr (kMade(kOtherAllocator)) {
    using AllocatorT = typename DeviceT::Allocator;
    decltype(AllocatorHooks<AllocatorT, Allocator>(0))::FindWrong().Require();
  }
}

// A bit for each Mistake in the classes of an author's platform.
template <class PlatformT>
inline constexpr uint64_t kMistakesOf = PlatformMistakes<PlatformT>();

template <class PlatformT, Mistake kMistake>
inline constexpr bool kIsFree = (kMistakesOf<PlatformT> >> kMistake & 1) == 0;

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_CLASS_CHECKS_H_
