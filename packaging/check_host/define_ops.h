// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_CHECK_DEFINE_OPS_H_
#define TFPLUG_CHECK_DEFINE_OPS_H_

#include <fstream>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/testing/grappler_item.h"
#include "tfplug/testing/op_registry.h"

namespace tfplug::check {

// Makes the ops of a file known, a serialized OpList.
inline absl::Status DefineOps(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError("there is no file " + path);
  std::string& bytes = testing::KnownOpList();
  bytes.assign(std::istreambuf_iterator<char>(file), {});
  for (internal::WireReader list(bytes); list.Next();) {
    const auto name = internal::MessageField(list.bytes(), 1);
    testing::KnownOpDefs()[std::string(name.value_or(""))] =
        std::string(list.bytes());
  }
  return absl::OkStatus();
}

// Returns whether TensorFlow or a plug-in defines an op. TensorFlow registers
// kernels for any name.
inline bool IsDefined(const std::string& op) {
  if (testing::KnownOpDefs().count(op) > 0) return true;
  for (const auto& defined : testing::RegisteredOps()) {
    if (defined->name == op) return true;
  }
  return false;
}

}  // namespace tfplug::check

#endif  // TFPLUG_CHECK_DEFINE_OPS_H_
