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

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_HOOK_SIGNATURES_H_
