// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_OP_LIST_H_
#define TFPLUG_KERNEL_INTERNAL_OP_LIST_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/base/buffer.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/internal/wire.h"

#pragma GCC visibility push(hidden)

namespace tfplug::kernel_internal {

// The ops that are registered with TensorFlow when this object is constructed,
// including those of other plug-ins.
class OpList {
 public:
  OpList() {
    if (internal::tensorflow.TF_GetAllOpList != nullptr &&
        internal::tensorflow.TF_GetBuffer != nullptr) {
      op_list_ = Buffer(internal::tensorflow.TF_GetAllOpList());
    }
    for (internal::WireReader list(op_list_.bytes()); list.Next();) {
      if (list.number() != 1) continue;
      internal::WireReader op(list.bytes());
      if (op.Next() && op.number() == 1) {
        ops_.emplace_back(op.bytes(), list.bytes());
      }
    }
    std::sort(ops_.begin(), ops_.end());
  }

  // Returns false where TensorFlow does not export the list.
  bool is_known() const { return !op_list_.bytes().empty(); }

  bool Has(absl::string_view name) const { return !Find(name).empty(); }

  // Returns the types that an op allows for its attribute `attr`; nullopt if it
  // restricts none, or is unknown.
  std::optional<std::vector<DataType>> GetAllowedTypes(
      absl::string_view name, absl::string_view attr) const {
    for (internal::WireReader op(Find(name)); op.Next();) {
      if (op.number() != 4) continue;
      internal::WireReader field(op.bytes());  // a tensorflow.OpDef.AttrDef
      if (!field.Next() || field.number() != 1 || field.bytes() != attr) {
        continue;
      }
      while (field.Next()) {
        if (field.number() == 7) return ReadTypes(field.bytes());
      }
    }
    return std::nullopt;
  }

  // Returns the names of an op's inputs and outputs; none if it is unknown.
  std::vector<std::string> GetArguments(absl::string_view name) const {
    return GetNames(name, {2, 3});
  }
  std::vector<std::string> GetAttributes(absl::string_view name) const {
    return GetNames(name, {4});
  }

 private:
  // Returns the names of the parts (tensorflow.OpDef.ArgDef or AttrDef) that
  // are in these fields.
  std::vector<std::string> GetNames(absl::string_view name,
                                    std::initializer_list<int> fields) const {
    std::vector<std::string> names;
    for (internal::WireReader op(Find(name)); op.Next();) {
      if (std::count(fields.begin(), fields.end(), op.number()) == 0) continue;
      internal::WireReader part(op.bytes());
      if (part.Next() && part.number() == 1) names.emplace_back(part.bytes());
    }
    return names;
  }

  // Returns the serialized tensorflow.OpDef, or "".
  absl::string_view Find(absl::string_view name) const {
    const auto op = std::lower_bound(ops_.begin(), ops_.end(),
                                     std::make_pair(name, absl::string_view()));
    return op != ops_.end() && op->first == name ? op->second
                                                 : absl::string_view();
  }

  // Reads the types in the list of a tensorflow.AttrValue.
  static std::vector<DataType> ReadTypes(absl::string_view value) {
    std::vector<DataType> types;
    const std::string bytes = internal::MessageField(value, 1).value_or("");
    for (internal::WireReader list(bytes); list.Next();) {
      if (list.number() != 6) continue;
      const absl::string_view packed = list.bytes();
      const char* const end = packed.data() + packed.size();
      uint64_t type = 0;
      for (const char* p = packed.data(); p != nullptr && p != end;) {
        p = internal::ReadVarint(p, end, &type);
        if (p != nullptr) types.push_back(static_cast<DataType>(type));
      }
    }
    return types;
  }

  Buffer op_list_;  // A serialized tensorflow.OpList.
  // The name of each op and its serialized tensorflow.OpDef, by name.
  std::vector<std::pair<absl::string_view, absl::string_view>> ops_;
};

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_OP_LIST_H_
