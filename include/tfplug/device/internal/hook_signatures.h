// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_HOOK_SIGNATURES_H_
#define TFPLUG_DEVICE_INTERNAL_HOOK_SIGNATURES_H_

#include <type_traits>

#pragma GCC visibility push(hidden)

// Compares the hooks of an author's class with those of its base class.
namespace tfplug::device_internal {

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

// A hook of an author's class, and the type that it must have. `Name` is not
// &T::Memset, which would have g++ compile the function.
template <class Name, class Found, class Expected>
struct Hook {
  static constexpr bool kIsRight =
      std::is_same_v<typename Signature<Found>::Type,
                     typename Signature<Expected>::Type>;

  // Has the compiler show the arguments of this template if the hook is wrong.
  static void Require() {
    static_assert(kIsRight,
                  "tfplug: this hook overrides nothing: behind its name, "
                  "the compiler shows the type that it has, and the type with "
                  "the arguments and the result that it must have");
  }
};

template <class First, class... Rest>
struct Hooks {
  static constexpr bool kAreRight = (First::kIsRight && ... && Rest::kIsRight);

  // Returns the first wrong one, of which there must be one.
  static auto FindWrong() {
    if constexpr (First::kIsRight) {
      return Hooks<Rest...>::FindWrong();
    } else {
      return First();
    }
  }
};

// There is one function for each base class B. Its result type is the Hooks of
// T. If a hook in T is private or overloaded, overload resolution selects the
// function that returns void.
#define TFPLUG_INTERNAL_HOOK(name) \
  Hook<struct name##Hook, decltype(&T::name), decltype(&B::name)>
template <class T, class B>
auto PlatformHooks(int)
    -> Hooks<TFPLUG_INTERNAL_HOOK(Init), TFPLUG_INTERNAL_HOOK(Options),
             TFPLUG_INTERNAL_HOOK(DeviceCount)>;
template <class T, class B>
void PlatformHooks(...);

template <class T, class B>
auto DeviceHooks(int) -> Hooks<
    TFPLUG_INTERNAL_HOOK(Init), TFPLUG_INTERNAL_HOOK(HardwareName),
    TFPLUG_INTERNAL_HOOK(Vendor), TFPLUG_INTERNAL_HOOK(PciBusId),
    TFPLUG_INTERNAL_HOOK(NumaNode), TFPLUG_INTERNAL_HOOK(MemoryBandwidth),
    TFPLUG_INTERNAL_HOOK(Gflops), TFPLUG_INTERNAL_HOOK(SynchronizeAllActivity),
    TFPLUG_INTERNAL_HOOK(CopyHostToDeviceSync),
    TFPLUG_INTERNAL_HOOK(CopyDeviceToHostSync),
    TFPLUG_INTERNAL_HOOK(CopyDeviceToDeviceSync),
    TFPLUG_INTERNAL_HOOK(GetTime)>;
template <class T, class B>
void DeviceHooks(...);

template <class T, class B>
auto StreamHooks(int) -> Hooks<
    TFPLUG_INTERNAL_HOOK(Init), TFPLUG_INTERNAL_HOOK(GetStatus),
    TFPLUG_INTERNAL_HOOK(WaitForStream), TFPLUG_INTERNAL_HOOK(RecordEvent),
    TFPLUG_INTERNAL_HOOK(WaitForEvent), TFPLUG_INTERNAL_HOOK(CopyHostToDevice),
    TFPLUG_INTERNAL_HOOK(CopyDeviceToHost),
    TFPLUG_INTERNAL_HOOK(CopyDeviceToDevice), TFPLUG_INTERNAL_HOOK(MemZero),
    TFPLUG_INTERNAL_HOOK(Memset), TFPLUG_INTERNAL_HOOK(Memset32),
    TFPLUG_INTERNAL_HOOK(RunOnHost), TFPLUG_INTERNAL_HOOK(BlockHostUntilDone),
    TFPLUG_INTERNAL_HOOK(StartTimer), TFPLUG_INTERNAL_HOOK(StopTimer)>;
template <class T, class B>
void StreamHooks(...);

template <class T, class B>
auto EventHooks(int)
    -> Hooks<TFPLUG_INTERNAL_HOOK(Init), TFPLUG_INTERNAL_HOOK(Poll),
             TFPLUG_INTERNAL_HOOK(BlockHost)>;
template <class T, class B>
void EventHooks(...);

template <class T, class B>
auto TimerHooks(int)
    -> Hooks<TFPLUG_INTERNAL_HOOK(Init), TFPLUG_INTERNAL_HOOK(Nanoseconds),
             TFPLUG_INTERNAL_HOOK(GetTimes)>;
template <class T, class B>
void TimerHooks(...);

template <class T, class B>
auto AllocatorHooks(int) -> Hooks<
    TFPLUG_INTERNAL_HOOK(Init), TFPLUG_INTERNAL_HOOK(Allocate),
    TFPLUG_INTERNAL_HOOK(Deallocate), TFPLUG_INTERNAL_HOOK(AllocateHost),
    TFPLUG_INTERNAL_HOOK(DeallocateHost), TFPLUG_INTERNAL_HOOK(AllocateUnified),
    TFPLUG_INTERNAL_HOOK(DeallocateUnified), TFPLUG_INTERNAL_HOOK(Stats),
    TFPLUG_INTERNAL_HOOK(Usage)>;
template <class T, class B>
void AllocatorHooks(...);
#undef TFPLUG_INTERNAL_HOOK

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_HOOK_SIGNATURES_H_
