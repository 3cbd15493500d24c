// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_OP_REGISTRY_H_
#define TFPLUG_TESTING_OP_REGISTRY_H_

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/testing/internal/buffer_functions.h"

#pragma GCC visibility push(hidden)

namespace tfplug::capi {

// An op as a plug-in defines it.
struct TF_OpDefinitionBuilder : testing::Counted<TF_OpDefinitionBuilder> {
  std::string name;
  std::vector<std::string> attrs, inputs, outputs;
  // Descriptions: "commutative", "deprecated since 7: use another", …
  std::vector<std::string> flags;
  void (*shape_function)(TF_ShapeInferenceContext*, TF_Status*) = nullptr;
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_OpDefinitionBuilder;
using capi::TF_ShapeInferenceContext;

// Returns the ops that plug-ins have defined in this process, in order.
// The destructor of ScopedFakeTensorFlow clears the list.
inline std::vector<std::unique_ptr<TF_OpDefinitionBuilder>>& RegisteredOps() {
  static auto* const ops =
      new std::vector<std::unique_ptr<TF_OpDefinitionBuilder>>;
  return *ops;
}

// Returns the op of this name that a plug-in has defined, or null.
inline const TF_OpDefinitionBuilder* FindRegisteredOp(const std::string& name) {
  for (const auto& op : RegisteredOps()) {
    if (op->name == name) return op.get();
  }
  return nullptr;
}

TFPLUG_FAKE_FUNCTION TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(
    const char* name) {
  if (Fault::Hits("TF_NewOpDefinitionBuilder")) return nullptr;
  auto* const builder = new TF_OpDefinitionBuilder;
  builder->name = name;
  return builder;
}
TFPLUG_FAKE_FUNCTION void TF_DeleteOpDefinitionBuilder(
    TF_OpDefinitionBuilder* builder) {
  delete builder;
}
TFPLUG_FAKE_FUNCTION void TF_RegisterOpDefinition(
    TF_OpDefinitionBuilder* builder, TF_Status* status) {
  std::unique_ptr<TF_OpDefinitionBuilder> owned(builder);
  if (Fault::Hits("TF_RegisterOpDefinition", status)) return;
  RegisteredOps().push_back(std::move(owned));
  SetOk(status);
}
TFPLUG_FAKE_FUNCTION void TF_OpDefinitionBuilderAddAttr(
    TF_OpDefinitionBuilder* builder, const char* spec) {
  builder->attrs.emplace_back(spec);
}
TFPLUG_FAKE_FUNCTION void TF_OpDefinitionBuilderAddInput(
    TF_OpDefinitionBuilder* builder, const char* spec) {
  builder->inputs.emplace_back(spec);
}
TFPLUG_FAKE_FUNCTION void TF_OpDefinitionBuilderAddOutput(
    TF_OpDefinitionBuilder* builder, const char* spec) {
  builder->outputs.emplace_back(spec);
}
TFPLUG_FAKE_FUNCTION void TF_OpDefinitionBuilderDeprecated(
    TF_OpDefinitionBuilder* builder, int version, const char* explanation) {
  builder->flags.push_back("deprecated since " + std::to_string(version) +
                           ": " + explanation);
}
// TensorFlow ignores the bool argument of the following four functions.
TFPLUG_FAKE_FUNCTION void TF_OpDefinitionBuilderSetIsCommutative(
    TF_OpDefinitionBuilder* builder, bool) {
  builder->flags.push_back("commutative");
}
TFPLUG_FAKE_FUNCTION void TF_OpDefinitionBuilderSetIsAggregate(
    TF_OpDefinitionBuilder* builder, bool) {
  builder->flags.push_back("aggregate");
}
TFPLUG_FAKE_FUNCTION void TF_OpDefinitionBuilderSetIsStateful(
    TF_OpDefinitionBuilder* builder, bool) {
  builder->flags.push_back("stateful");
}
TFPLUG_FAKE_FUNCTION void TF_OpDefinitionBuilderSetAllowsUninitializedInput(
    TF_OpDefinitionBuilder* builder, bool) {
  builder->flags.push_back("allows uninitialized input");
}
TFPLUG_FAKE_FUNCTION void TF_OpDefinitionBuilderSetShapeInferenceFunction(
    TF_OpDefinitionBuilder* builder,
    void (*function)(TF_ShapeInferenceContext*, TF_Status*)) {
  builder->shape_function = function;
}
// Returns TensorFlow's own ops, which a test may set: the name, and perhaps the
// names of inputs, and of type attributes with the numbers of the allowed types,
// if not all are: "MatMul a b T=1,2 U=". While there are none, TF_GetAllOpList
// returns null.
inline std::vector<std::string>& KnownOps() {
  static std::vector<std::string> ops;
  return ops;
}
// Returns a serialized OpList that TF_GetAllOpList returns besides.
inline std::string& KnownOpList() {
  static auto* const list = new std::string;
  return *list;
}
TFPLUG_FAKE_FUNCTION TF_Buffer* TF_GetAllOpList() {
  const bool is_empty = KnownOps().empty() && KnownOpList().empty();
  if (is_empty || Fault::Hits("TF_GetAllOpList")) return nullptr;
  const auto field = [](char tag, const std::string& bytes) {
    std::string result{tag};
    size_t size = bytes.size();
    for (; size >= 128; size /= 128) {
      result += static_cast<char>(size % 128 + 128);
    }
    return result + static_cast<char>(size) + bytes;
  };
  std::string op_list = KnownOpList();
  int number = 0;
  for (const std::string& known : KnownOps()) {
    std::istringstream words(known);
    std::string word;
    words >> word;
    std::string op = field('\x0a', word);
    while (words >> word) {
      const size_t equals = word.find('=');
      const std::string name = field('\x0a', word.substr(0, equals));
      if (equals == std::string::npos) {
        op += field('\x12', name);
        continue;
      }
      std::istringstream numbers(word.substr(equals));
      std::string types;
      for (char c; numbers >> c >> number;) types += static_cast<char>(number);
      const std::string list = field('\x0a', field('\x32', types));
      op += field('\x22', types.empty() ? name : name + field('\x3a', list));
    }
    op_list += field('\x0a', op);
  }
  // Adds the ops of plug-ins, with the names of their attributes and arguments.
  for (const auto& defined : RegisteredOps()) {
    std::string op = field('\x0a', defined->name);
    const auto add = [&](char tag, const std::vector<std::string>& specs) {
      for (const std::string& spec : specs) {
        op += field(tag, field('\x0a', spec.substr(0, spec.find(':'))));
      }
    };
    add('\x12', defined->inputs);
    add('\x1a', defined->outputs);
    add('\x22', defined->attrs);
    op_list += field('\x0a', op);
  }
  return MakeBuffer(op_list);
}

inline void InstallOpDefinitionFunctions(capi::Functions& functions) {
  TFPLUG_FAKE_INSTALL(TF_NewOpDefinitionBuilder);
  TFPLUG_FAKE_INSTALL(TF_DeleteOpDefinitionBuilder);
  TFPLUG_FAKE_INSTALL(TF_RegisterOpDefinition);
  TFPLUG_FAKE_INSTALL(TF_OpDefinitionBuilderAddAttr);
  TFPLUG_FAKE_INSTALL(TF_OpDefinitionBuilderAddInput);
  TFPLUG_FAKE_INSTALL(TF_OpDefinitionBuilderAddOutput);
  TFPLUG_FAKE_INSTALL(TF_OpDefinitionBuilderDeprecated);
  TFPLUG_FAKE_INSTALL(TF_OpDefinitionBuilderSetIsCommutative);
  TFPLUG_FAKE_INSTALL(TF_OpDefinitionBuilderSetIsAggregate);
  TFPLUG_FAKE_INSTALL(TF_OpDefinitionBuilderSetIsStateful);
  TFPLUG_FAKE_INSTALL(TF_OpDefinitionBuilderSetAllowsUninitializedInput);
  TFPLUG_FAKE_INSTALL(TF_OpDefinitionBuilderSetShapeInferenceFunction);
  TFPLUG_FAKE_INSTALL(TF_GetAllOpList);
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_OP_REGISTRY_H_
