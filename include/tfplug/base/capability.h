// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_CAPABILITY_H_
#define TFPLUG_BASE_CAPABILITY_H_

#include <string>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "tfplug/abi/function_info.h"
#include "tfplug/base/internal/tensorflow.h"

#pragma GCC visibility push(hidden)

// One binary runs on every release of TensorFlow, but releases export different
// functions. Check for a function that some releases lack before calling it:
//
//   if (tfplug::Has(&tfplug::CApi::TF_AssignVariable)) ...
namespace tfplug {

// The table of C API functions.
using CApi = capi::Functions;

// Returns whether the TensorFlow in this process exports the function; false
// until TensorFlow has loaded the plug-in.
template <class Function>
bool Has(Function CApi::*function) {
  return internal::tensorflow.*function != nullptr;
}

namespace internal {

[[gnu::cold, gnu::noinline]] inline absl::Status LacksFunction(
    const capi::FunctionInfo& info) {
  const auto name = [](capi::Release release) {
    return std::to_string(release.major) + "." + std::to_string(release.minor);
  };
  std::string message = "this TensorFlow", running;
  if (tensorflow.TF_Version != nullptr) {
    running = tensorflow.TF_Version();
    message.append(" (").append(running).append(")");
  }
  message.append(" lacks ").append(info.name);
  const capi::FunctionReleases& releases = info.releases;
  if (releases.gap_since.major != 0) {
    // No function was dropped twice, so the newest release has this one.
    capi::Release before = releases.gap_since, after = releases.gap_last;
    --before.minor;
    ++after.minor;
    message.append("; releases " + name(releases.since) + " to " +
                   name(before) + " and from " + name(after) + " on have it");
    // An early build.
    if (running.rfind(name(after) + ".", 0) == 0) {
      message.append(", but not this build of " + name(after));
    }
  } else if (releases.last.major == 0) {
    message.append("; releases from " + name(releases.since) + " on have it");
  } else {
    message.append("; releases " + name(releases.since) + " to " +
                   name(releases.last) + " have it");
  }
  return absl::UnimplementedError(message);
}

}  // namespace internal

// Returns OK if the function is present, otherwise UNIMPLEMENTED with the name
// of the function and the releases that export it.
template <class Function>
absl::Status Require(Function CApi::*function) {
  if (ABSL_PREDICT_TRUE(Has(function))) return absl::OkStatus();
  return internal::LacksFunction(capi::DescribeFunction(function));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_CAPABILITY_H_
