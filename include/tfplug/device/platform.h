// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_PLATFORM_H_
#define TFPLUG_DEVICE_PLATFORM_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tfplug {

// The settings of SP_Platform.
struct PlatformOptions {
  // Core's BFC allocator on top of ours. Without it each tensor goes straight
  // to Device::Allocator: RFC 257's custom allocator; see CachingAllocator.
  bool use_bfc_allocator = true;
  // Let that allocator grow from small blocks instead of taking most of the
  // device's memory at once; overrides the user's allow_growth. Since 2.9.
  bool force_memory_growth = false;
};

// All devices of one kind (SP_Platform, SP_PlatformFns). The author's class
// names its device, and says in two constants what TensorFlow calls them:
//
//   class Platform : public tfplug::Platform<Device> {
//    public:
//     static constexpr char kName[] = "MY_DEVICE";  // SP_Platform::name
//     static constexpr char kType[] = "MY_DEVICE";  // "/device:MY_DEVICE:0"
//     absl::StatusOr<int> DeviceCount() override { return 1; }
//   };
//   TFPLUG_REGISTER_DEVICE(Platform);
//
// Both begin with a capital letter and hold capital letters and underscores;
// kType holds no "CPU".
// Made with nothing when TensorFlow loads the library. A platform that cannot
// be made (a constructor that throws, an Init or DeviceCount that fails: no
// driver, no hardware) has zero devices, and the log says why; TensorFlow runs
// on without it. An error would kill the process.
template <class DeviceT>
class Platform {
 public:
  using Device = DeviceT;

  virtual ~Platform() = default;

  // Called once after construction.
  virtual absl::Status Init() { return absl::OkStatus(); }

  // ---- SP_Platform -------------------------------------------------------

  // use_bfc_allocator, force_memory_growth; asked once. The third,
  // supports_unified_memory, follows from Allocator::AllocateUnified.
  virtual PlatformOptions Options() { return {}; }

  // ---- SP_PlatformFns ----------------------------------------------------

  // get_device_count: how many devices there are; may be asked often, from any
  // thread, and must answer the same.
  virtual absl::StatusOr<int> DeviceCount() = 0;
};

}  // namespace tfplug

#endif  // TFPLUG_DEVICE_PLATFORM_H_
