// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_DESCRIBE_OP_H_
#define TFPLUG_TESTS_DESCRIBE_OP_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/testing.h"

namespace tfplug {

// Makes TF_LookUpOpDef find an op: Describe("Sum", "input:T axes:Tidx",
// "output:T"). A capital letter begins the attribute with an argument's type.
inline void Describe(const std::string& op, const std::string& inputs,
                     const std::string& outputs, bool is_stateful = false) {
  std::string bytes;
  internal::AppendField(bytes, 1, op);
  for (const auto& [field, args] : {std::make_pair(2, inputs), {3, outputs}}) {
    for (absl::string_view arg : absl::StrSplit(args, ' ', absl::SkipEmpty())) {
      const std::vector<std::string> parts = absl::StrSplit(arg, ':');
      std::string def;
      internal::AppendField(def, 1, parts[0]);
      if (parts[1] == "bool") {
        internal::AppendField(def, 3, static_cast<uint64_t>(DataType::kBool));
      } else {
        internal::AppendField(def, 4, parts[1]);
      }
      internal::AppendField(bytes, field, def);
    }
  }
  if (is_stateful) internal::AppendField(bytes, 17, uint64_t{1});
  testing::KnownOpDefs()[op] = bytes;
}

}  // namespace tfplug

#endif  // TFPLUG_TESTS_DESCRIBE_OP_H_
