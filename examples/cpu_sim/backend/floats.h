// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_BACKEND_FLOATS_H_
#define CPU_SIM_BACKEND_FLOATS_H_

#include <tfplug/ir/view.h>
#include <tfplug/primitives/launcher.h>

#include <initializer_list>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

// The functions of simd.h compute with dense floats. Operands of other types,
// of other layouts (NCHW) and with other strides are converted.
namespace cpu_sim {

// Returns whether numbers of the type are computed in float.
bool IsComputedInFloat(tfplug::DataType type);

// Returns the elements of a view whose type is kFloat.
inline float* Floats(const tfplug::Operand& view) {
  return static_cast<float*>(view.data);
}

// Casts the elements of one view to those of another.
absl::Status Convert(tfplug::Launcher& launcher, const tfplug::Operand& from,
                     const tfplug::Operand& to);

// Returns the elements as dense floats: the view itself, or a copy.
absl::StatusOr<tfplug::Operand> ToFloats(tfplug::Launcher& launcher,
                                         const tfplug::Operand& view);

// Outputs that are computed as dense floats.
class FloatOutputs {
 public:
  explicit FloatOutputs(tfplug::Launcher& launcher) : launcher_(launcher) {}

  // Returns the memory in which to compute `view`: its own, or a temporary
  // array.
  absl::StatusOr<tfplug::Operand> Add(const tfplug::Operand& view);
  // Converts the temporary arrays.
  absl::Status Finish();

 private:
  struct Conversion {
    tfplug::Operand from, to;
  };
  tfplug::Launcher& launcher_;
  absl::InlinedVector<Conversion, 1> conversions_;
};

}  // namespace cpu_sim

#endif  // CPU_SIM_BACKEND_FLOATS_H_
