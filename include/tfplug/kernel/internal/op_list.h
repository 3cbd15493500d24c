// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_OP_LIST_H_
#define TFPLUG_KERNEL_INTERNAL_OP_LIST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/base/buffer.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/internal/wire.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// The ops that are registered with TensorFlow when this object is constructed,
// including those of other plug-ins.
class OpList {
 public:
  OpList() {
    if (tensorflow.TF_GetAllOpList != nullptr &&
        tensorflow.TF_GetBuffer != nullptr) {
      op_list_ = Buffer(tensorflow.TF_GetAllOpList());
    }
  }

  // False where TensorFlow does not export the list.
  bool is_known() const { return !op_list_.bytes().empty(); }

  bool Has(absl::string_view name) const { return !Find(name).empty(); }

  // Returns the names of an op's inputs and outputs; none if it is unknown.
  std::vector<std::string> GetArguments(absl::string_view name) const {
    std::vector<std::string> names;
    for (WireReader op(Find(name)); op.Next();) {
      if (op.number() != 2 && op.number() != 3) continue;
      WireReader argument(op.bytes());  // a tensorflow.OpDef.ArgDef
      if (argument.Next() && argument.number() == 1) {
        names.emplace_back(argument.bytes());
      }
    }
    return names;
  }

 private:
  // Returns the serialized tensorflow.OpDef, or "".
  absl::string_view Find(absl::string_view name) const {
    for (WireReader list(op_list_.bytes()); list.Next();) {
      if (list.number() != 1) continue;
      WireReader op(list.bytes());
      if (op.Next() && op.number() == 1 && op.bytes() == name) {
        return list.bytes();
      }
    }
    return {};
  }

  Buffer op_list_;  // A serialized tensorflow.OpList.
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_OP_LIST_H_
