// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_IO_ERROR_H_
#define TFPLUG_BASE_IO_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/status.h"

namespace tfplug {

// The failure that `error`, an errno, stands for, with TensorFlow's code for it
// and `context` before its words: IoError(errno, "weights.bin"). Only where
// TensorFlow is loaded.
inline absl::Status IoError(int error, const std::string& context) {
  OwnedStatus status;
  internal::tensorflow.TF_SetStatusFromIOError(status.get(), error,
                                               context.c_str());
  return status.ToStatus();
}

}  // namespace tfplug

#endif  // TFPLUG_BASE_IO_ERROR_H_
