// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_CAPABILITY_H_
#define TFPLUG_BASE_CAPABILITY_H_

#include <string>

#include "absl/status/status.h"
#include "tfplug/abi/function_info.h"
#include "tfplug/base/internal/tensorflow.h"

// One binary runs in every release, and releases differ in the functions that
// they export. What may be missing is asked for by name:
//
//   if (tfplug::Has(&tfplug::CApi::TF_AssignVariable)) ...
namespace tfplug {

// The C API as a table of functions.
using CApi = capi::Functions;

// Whether the TensorFlow of this process has the function. False before
// TensorFlow has loaded the plug-in.
template <class Function>
bool Has(Function CApi::*function) {
  return internal::tensorflow.*function != nullptr;
}

// OK if it has; else UNIMPLEMENTED in words that name the function and the
// releases that have it.
template <class Function>
absl::Status Require(Function CApi::*function) {
  if (Has(function)) return absl::OkStatus();
  const capi::FunctionInfo info = capi::DescribeFunction(function);
  const auto name = [](capi::Release release) {
    return std::to_string(release.major) + "." + std::to_string(release.minor);
  };
  std::string message = std::string("this TensorFlow");
  if (internal::tensorflow.TF_Version != nullptr) {
    message.append(" (").append(internal::tensorflow.TF_Version()).append(")");
  }
  message.append(" lacks ").append(info.name);
  if (info.releases.last.major == 0) {
    message.append("; releases from " + name(info.releases.since) +
                   " on have it");
  } else {
    message.append("; releases " + name(info.releases.since) + " to " +
                   name(info.releases.last) + " have it");
  }
  return absl::UnimplementedError(message);
}

}  // namespace tfplug

#endif  // TFPLUG_BASE_CAPABILITY_H_
