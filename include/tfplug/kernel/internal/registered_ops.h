// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_REGISTERED_OPS_H_
#define TFPLUG_KERNEL_INTERNAL_REGISTERED_OPS_H_

#include <set>
#include <string>

#include "tfplug/base/buffer.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/internal/wire.h"

namespace tfplug::internal {

// Returns the names of all ops registered so far, including those of other
// plug-ins. Empty where TensorFlow does not export the list.
inline std::set<std::string> GetRegisteredOpNames() {
  std::set<std::string> names;
  if (tensorflow.TF_GetAllOpList == nullptr ||
      tensorflow.TF_GetBuffer == nullptr) {
    return names;
  }
  const Buffer op_list(tensorflow.TF_GetAllOpList());
  for (WireReader list(op_list.bytes()); list.Next();) {
    WireReader op(list.bytes());
    if (list.number() == 1 && op.Next() && op.number() == 1) {
      names.emplace(op.bytes());
    }
  }
  return names;
}

}  // namespace tfplug::internal

#endif  // TFPLUG_KERNEL_INTERNAL_REGISTERED_OPS_H_
