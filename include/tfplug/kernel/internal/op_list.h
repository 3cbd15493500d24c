// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_OP_LIST_H_
#define TFPLUG_KERNEL_INTERNAL_OP_LIST_H_

#include <algorithm>
#include <string>
#include <utility>
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
    for (WireReader list(op_list_.bytes()); list.Next();) {
      if (list.number() != 1) continue;
      WireReader op(list.bytes());
      if (op.Next() && op.number() == 1) {
        ops_.emplace_back(op.bytes(), list.bytes());
      }
    }
    std::sort(ops_.begin(), ops_.end());
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
    const auto op = std::lower_bound(ops_.begin(), ops_.end(),
                                     std::make_pair(name, absl::string_view()));
    return op != ops_.end() && op->first == name ? op->second
                                                 : absl::string_view();
  }

  Buffer op_list_;  // A serialized tensorflow.OpList.
  // The name of each op and its serialized tensorflow.OpDef, by name.
  std::vector<std::pair<absl::string_view, absl::string_view>> ops_;
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_OP_LIST_H_
