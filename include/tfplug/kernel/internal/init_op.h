// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_INIT_OP_H_
#define TFPLUG_KERNEL_INTERNAL_INIT_OP_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/kernel/internal/op_def_parser.h"
#include "tfplug/kernel/op_def.h"

namespace tfplug::internal {

// All ops of this library, from all of its files.
__attribute__((visibility("hidden"))) inline std::vector<OpDef>&
OpRegistrations() {
  static auto* const registrations = new std::vector<OpDef>;
  return *registrations;
}

struct OpBuilderDeleter {
  void operator()(capi::TF_OpDefinitionBuilder* builder) const {
    tensorflow.TF_DeleteOpDefinitionBuilder(builder);
  }
};

inline absl::Status Register(const OpDef& def) {
  const OwnedStatus status;
  std::unique_ptr<capi::TF_OpDefinitionBuilder, OpBuilderDeleter> owned(
      tensorflow.TF_NewOpDefinitionBuilder(def.name().c_str()));
  capi::TF_OpDefinitionBuilder* const builder = owned.get();
  if (builder == nullptr) {
    return absl::ResourceExhaustedError("core made no op builder");
  }
  for (const std::string& spec : def.attrs()) {
    tensorflow.TF_OpDefinitionBuilderAddAttr(builder, spec.c_str());
  }
  for (const std::string& spec : def.inputs()) {
    tensorflow.TF_OpDefinitionBuilderAddInput(builder, spec.c_str());
  }
  for (const std::string& spec : def.outputs()) {
    tensorflow.TF_OpDefinitionBuilderAddOutput(builder, spec.c_str());
  }
  // Core sets these whatever the argument says, so only what is true is told.
  if (def.is_commutative()) {
    tensorflow.TF_OpDefinitionBuilderSetIsCommutative(builder, true);
  }
  if (def.is_aggregate()) {
    tensorflow.TF_OpDefinitionBuilderSetIsAggregate(builder, true);
  }
  if (def.is_stateful()) {
    tensorflow.TF_OpDefinitionBuilderSetIsStateful(builder, true);
  }
  if (def.allows_uninitialized_input()) {
    tensorflow.TF_OpDefinitionBuilderSetAllowsUninitializedInput(builder, true);
  }
  if (def.deprecated_since() != 0) {
    tensorflow.TF_OpDefinitionBuilderDeprecated(builder, def.deprecated_since(),
                                                def.deprecation().c_str());
  }
  // Core takes an op without one only if its shapes are asked for nowhere.
  tensorflow.TF_OpDefinitionBuilderSetShapeInferenceFunction(
      builder, def.shape_fn() != nullptr
                   ? def.shape_fn()
                   : tensorflow.TF_ShapeInferenceContextSetUnknownShape);
  // Core owns the builder from here on.
  tensorflow.TF_RegisterOpDefinition(owned.release(), status.get());
  return status.ToStatus();
}

// An op that cannot be registered is left out, with a line in the log.
inline void InitOps() {
  if (OpRegistrations().empty() || !LoadTensorFlow()) return;
  std::set<std::string> known = KnownOps();
  for (const OpDef& def : OpRegistrations()) {
    GuardOrLog("TF_InitKernel", [&] {
      absl::Status status = OpDefChecker::Check(def);
      if (status.ok() && !known.insert(def.name()).second) {
        status = absl::AlreadyExistsError("there is an op of this name");
      }
      if (status.ok()) status = Register(def);
      return status.ok() ? status
                         : Annotate(status, ("op " + def.name()).c_str());
    });
  }
}

}  // namespace tfplug::internal

#endif  // TFPLUG_KERNEL_INTERNAL_INIT_OP_H_
