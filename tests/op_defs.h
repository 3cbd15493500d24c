// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_OP_DEFS_H_
#define TFPLUG_TESTS_OP_DEFS_H_

#include <doctest/doctest.h>
#include <tfplug/testing/grappler_item.h>
#include <tfplug/testing/op_spec.h>

#include <string>
#include <vector>

namespace tfplug {

// Makes an op known, from specifications such as "x: T" and "T: type".
inline void DefineOp(const std::string& name,
                     const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs,
                     const std::vector<std::string>& attrs = {"T: type"}) {
  const auto def = testing::OpDefFromSpecs(name, inputs, outputs, attrs);
  REQUIRE_MESSAGE(def.ok(), def.status().ToString());
  testing::KnownOpDefs()[name] = *def;
}

}  // namespace tfplug

#endif  // TFPLUG_TESTS_OP_DEFS_H_
