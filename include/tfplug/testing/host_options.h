// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_HOST_OPTIONS_H_
#define TFPLUG_TESTING_HOST_OPTIONS_H_

#include <cstdint>

#include "tfplug/testing/release.h"
#include "tfplug/testing/struct_sizes.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

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
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_HOST_OPTIONS_H_
