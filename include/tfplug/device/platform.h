// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_PLATFORM_H_
#define TFPLUG_DEVICE_PLATFORM_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/visible_devices.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The settings in SP_Platform.
struct PlatformOptions {
  // Whether TensorFlow puts its BFC allocator on top of the device's allocator.
  // Otherwise, TensorFlow calls Allocator::Allocate for each tensor, which RFC
  // 257 calls a "custom allocator"; see CachingAllocator.
  bool use_bfc_allocator = true;
  // Whether the BFC allocator starts with small blocks and grows, instead of
  // allocating most of the device's memory at once. Overrides the user's
  // allow_growth. Since 2.9.
  bool force_memory_growth = false;
};

// All devices of one kind (SP_Platform, SP_PlatformFns). The template argument
// is the author's device class; the author's platform class defines two
// constants:
//
//   class Platform : public tfplug::Platform<Device> {
//    public:
//     static constexpr char kName[] = "MY_DEVICE";  // SP_Platform::name
//     static constexpr char kType[] = "MY_DEVICE";  // "/device:MY_DEVICE:0"
//     absl::StatusOr<int> DeviceCount() override { return 1; }
//   };
//   TFPLUG_REGISTER_DEVICE(Platform);
//
// Both must begin with a capital letter and contain only capital letters and
// underscores; kType must not contain "CPU".
//
// Constructed without arguments when TensorFlow loads the library. If the
// constructor throws, or Init fails because a driver or the hardware is
// missing, the platform has zero devices, the reason is logged, and TensorFlow
// runs without it; an error status would abort the process.
//
// Threads: load, except where a hook's comment names another.
template <class DeviceT>
class Platform {
 public:
  using Device = DeviceT;

  // Whether tfplug makes Python replace updates of variables for which the
  // device has no kernel by a read, a computation and an assignment:
  // v[1].assign(x) and, in TensorFlow 2.19 to 2.21, v.assign_add(x) (see
  // docs/guide/kernels.md, "Variables"). Define it as false in the derived
  // class to leave TensorFlow's Python functions unchanged.
  static constexpr bool kWrapsPythonUpdates = true;

  // Whether the library has a profiler, which adds the device's kernels, copies
  // and memory to TensorFlow's profiles (see docs/guide/profiler.md). Define it
  // as false in the derived class to leave it out. TFPLUG_REGISTER_PROFILER
  // replaces it.
  static constexpr bool kHasProfiler = true;

  // How many microseconds TensorFlow's event manager sleeps before it looks
  // again at events that are pending; 0 leaves its 10. While a step computes,
  // it looks all the time, which takes up to a sixth of the time of two
  // processors: a device that computes on the host's processors should say
  // about 200. Applies to all plug-ins of a Python process, except in sessions
  // of TensorFlow 1, whose ConfigProto has the same setting
  // (polling_active_delay_usecs).
  static constexpr int kPollMicroseconds = 0;

  virtual ~Platform() = default;

  // Is called once after construction.
  virtual absl::Status Init() { return absl::OkStatus(); }

  // ---- SP_Platform -------------------------------------------------------

  // use_bfc_allocator, force_memory_growth: called once, after Init. The third
  // setting, supports_unified_memory, is true if the allocator overrides
  // AllocateUnified and DeallocateUnified.
  virtual PlatformOptions Options() { return {}; }

  // ---- SP_PlatformFns ----------------------------------------------------

  // get_device_count: returns the number of devices, which must not change; a
  // failure is logged and counts as zero. Thread: any; called often.
  virtual absl::StatusOr<int> DeviceCount() = 0;

  // get_device_count, create_device: returns the ordinals, of 0 to `count` - 1,
  // of the devices that this process uses. TensorFlow numbers them anew: the
  // first one becomes "/device:MY_DEVICE:0"; Device is constructed with the
  // ordinal that is returned here. `type` is the registered device type. A
  // failure, an ordinal that is out of range and one that is named twice are
  // logged, and the process has no devices. Default: the devices that the
  // environment variable TFPLUG_VISIBLE_DEVICES names (see
  // docs/guide/distribute.md), or all. Thread: any; called after each
  // DeviceCount.
  virtual absl::StatusOr<std::vector<int>> VisibleDevices(
      absl::string_view type, int count) {
    return internal::ReadVisibleDevices(type, count);
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_PLATFORM_H_
