// SPDX-License-Identifier: Apache-2.0
#include "backend/floats.h"

#include <tfplug/base/status_macros.h>
#include <tfplug/ir/opcodes.h>
#include <tfplug/ir/value.h>

namespace cpu_sim {
namespace {

using tfplug::DataType;
using tfplug::Operand;

absl::Span<const int64_t> DimsOf(const Operand& view) {
  return absl::MakeConstSpan(view.dims.data(), static_cast<size_t>(view.rank));
}

bool IsDenseFloat(const Operand& view) {
  if (view.type != DataType::kFloat || !view.has_memory()) return false;
  int64_t stride = 1;
  for (int d = view.rank; d-- > 0;) {
    if (view.dim(d) != 1 && view.stride(d) != stride) return false;
    stride *= view.dim(d);
  }
  return true;
}

}  // namespace

bool IsComputedInFloat(DataType type) {
  return tfplug::ComputeType(type) == DataType::kFloat;
}

absl::Status Convert(tfplug::Launcher& launcher, const Operand& from,
                     const Operand& to) {
  TFPLUG_ASSIGN_OR_RETURN(const tfplug::Expression cast,
                          tfplug::CastExpression(from.type, to.type));
  return launcher.Map(cast, {from}, {to});
}

absl::StatusOr<Operand> ToFloats(tfplug::Launcher& launcher,
                                 const Operand& view) {
  if (IsDenseFloat(view)) return view;
  TFPLUG_ASSIGN_OR_RETURN(const Operand floats,
                          launcher.Allocate(DataType::kFloat, DimsOf(view)));
  TFPLUG_RETURN_IF_ERROR(Convert(launcher, view, floats));
  return floats;
}

absl::StatusOr<Operand> FloatOutputs::Add(const Operand& view) {
  if (IsDenseFloat(view)) return view;
  TFPLUG_ASSIGN_OR_RETURN(const Operand floats,
                          launcher_.Allocate(DataType::kFloat, DimsOf(view)));
  conversions_.push_back({floats, view});
  return floats;
}

absl::Status FloatOutputs::Finish() {
  for (const Conversion& conversion : conversions_) {
    TFPLUG_RETURN_IF_ERROR(Convert(launcher_, conversion.from, conversion.to));
  }
  return absl::OkStatus();
}

}  // namespace cpu_sim
