// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_INIT_OP_H_
#define TFPLUG_KERNEL_INTERNAL_INIT_OP_H_

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/status.h"
#include "tfplug/kernel/internal/init_kernel.h"
#include "tfplug/kernel/internal/op_def_validator.h"
#include "tfplug/kernel/internal/op_list.h"
#include "tfplug/kernel/op_def.h"

#pragma GCC visibility push(hidden)

namespace tfplug::kernel_internal {

// Returns all ops of this library, from all of its files.
inline std::vector<OpDef>& RegisteredOpDefs() {
  static auto* const defs = new std::vector<OpDef>;
  return *defs;
}

struct OpBuilderDeleter {
  void operator()(capi::TF_OpDefinitionBuilder* builder) const {
    internal::tensorflow.TF_DeleteOpDefinitionBuilder(builder);
  }
};

// Returns the number of outputs of a valid `def`; the largest int if one of
// them is a list.
inline int CountOutputs(const OpDef& def) {
  const auto name_of = [](absl::string_view spec) {
    return absl::StripAsciiWhitespace(spec.substr(0, spec.find(':')));
  };
  for (const std::string& output : def.outputs()) {
    const absl::string_view type = absl::StripAsciiWhitespace(
        absl::string_view(output).substr(output.find(':') + 1));
    bool is_list = type.find('*') != type.npos;
    for (const std::string& attr : def.attrs()) {
      is_list = is_list || (name_of(attr) == type &&
                            attr.find("list(") != std::string::npos);
    }
    if (is_list) return std::numeric_limits<int>::max();
  }
  return static_cast<int>(def.outputs().size());
}

// Sets the number of outputs that the shape function of `def` accepts. If
// several ops share the function, it is the largest number of their outputs.
// `declared` holds the functions whose number is already set.
inline void DeclareOutputs(const OpDef& def, std::set<const int*>& declared) {
  int* const limit = internal::Access::declared_outputs(def);
  if (limit == nullptr) return;
  const int count = CountOutputs(def);
  const bool is_first = declared.insert(limit).second;
  *limit = is_first ? count : std::max(*limit, count);
}

inline absl::Status Register(const OpDef& def) {
  const OwnedStatus status;
  std::unique_ptr<capi::TF_OpDefinitionBuilder, OpBuilderDeleter> owned(
      internal::tensorflow.TF_NewOpDefinitionBuilder(def.name().c_str()));
  capi::TF_OpDefinitionBuilder* const builder = owned.get();
  if (builder == nullptr) {
    return absl::ResourceExhaustedError(
        "TensorFlow returned no TF_OpDefinitionBuilder");
  }
  for (const std::string& spec : def.attrs()) {
    internal::tensorflow.TF_OpDefinitionBuilderAddAttr(builder, spec.c_str());
  }
  for (const std::string& spec : def.inputs()) {
    internal::tensorflow.TF_OpDefinitionBuilderAddInput(builder, spec.c_str());
  }
  for (const std::string& spec : def.outputs()) {
    internal::tensorflow.TF_OpDefinitionBuilderAddOutput(builder, spec.c_str());
  }
  // TensorFlow ignores the argument and sets the flag, so only true is passed.
  if (def.is_commutative()) {
    internal::tensorflow.TF_OpDefinitionBuilderSetIsCommutative(builder, true);
  }
  if (def.is_aggregate()) {
    internal::tensorflow.TF_OpDefinitionBuilderSetIsAggregate(builder, true);
  }
  if (def.is_stateful()) {
    internal::tensorflow.TF_OpDefinitionBuilderSetIsStateful(builder, true);
  }
  if (def.allows_uninitialized_input()) {
    internal::tensorflow.TF_OpDefinitionBuilderSetAllowsUninitializedInput(
        builder, true);
  }
  if (def.deprecated_since() != 0) {
    internal::tensorflow.TF_OpDefinitionBuilderDeprecated(
        builder, def.deprecated_since(), def.deprecation().c_str());
  }
  // An op without a shape function fails as soon as its shapes are inferred.
  internal::tensorflow.TF_OpDefinitionBuilderSetShapeInferenceFunction(
      builder,
      def.shape_fn() != nullptr
          ? def.shape_fn()
          : internal::tensorflow.TF_ShapeInferenceContextSetUnknownShape);
  // Ownership of the builder passes to TensorFlow.
  internal::tensorflow.TF_RegisterOpDefinition(owned.release(), status.get());
  return status.ToStatus();
}

// Registers the library's ops. An op that cannot be registered is skipped and
// logged.
inline void InitOps() {
  if (RegisteredOpDefs().empty() || !internal::LoadTensorFlow()) return;
  const OpList registered;
  std::vector<std::string> names;
  std::set<const int*> declared;
  for (const OpDef& def : RegisteredOpDefs()) {
    internal::GuardOrLog("TF_InitKernel", [&] {
      absl::Status status = OpDefValidator::Validate(def);
      if (status.ok() &&
          (registered.Has(def.name()) || !AddName(names, def.name()))) {
        if (def.allows_existing()) return status;
        status = absl::AlreadyExistsError(
            "TensorFlow already has an op of this name; choose another");
      }
      if (status.ok()) {
        DeclareOutputs(def, declared);
        status = Register(def);
      }
      return status.ok()
                 ? status
                 : internal::Annotate(status, ("op " + def.name()).c_str());
    });
  }
}

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_INIT_OP_H_
