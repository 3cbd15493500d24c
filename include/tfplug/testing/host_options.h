// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_HOST_OPTIONS_H_
#define TFPLUG_TESTING_HOST_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "tfplug/testing/release.h"
#include "tfplug/testing/struct_sizes.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// One of several TensorFlow devices on a plug-in's device.
struct VirtualDevice {
  uint64_t memory_limit = 0;    // in bytes; TensorFlow has MiB
  std::optional<int> priority;  // of its streams
};
// The TensorFlow devices on each of the plug-in's devices, as in
// ConfigProto.pluggable_device_options.experimental.virtual_devices. A device
// without any is one of TensorFlow's, with all its memory; those beyond the end
// are not used. Nothing here selects all devices. Up to 2.21, TensorFlow ignores
// the setting; tf.config has it for no plug-in, in no release.
using VirtualDevices = std::vector<std::vector<VirtualDevice>>;

// Describes the TensorFlow that a Host fakes for a device plug-in.
struct HostOptions {
  HostOptions() : HostOptions(capi::kNewestRelease) {}
  explicit HostOptions(Release release) : release(release), sizes(release) {}

  // The release whose calls the host makes.
  Release release;
  // The sizes of TensorFlow's structs in a release, which tests may change.
  StructSizes sizes;
  // SE_MAJOR, SE_MINOR and SE_PATCH, which are the same in every release.
  int32_t major_version = 0;
  int32_t minor_version = 0;
  int32_t patch_version = 1;
  // If true, creates the four streams of each device, as TensorFlow does when
  // it first uses the device.
  bool create_streams = true;
  // If true, calls create_timer_fns, as TensorFlow does up to 2.13.
  bool create_timers = true;
  VirtualDevices virtual_devices;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_HOST_OPTIONS_H_
