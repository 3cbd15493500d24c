// SPDX-License-Identifier: Apache-2.0
#include "backend/epilogue.h"

#include "backend/backend.h"
#include "backend/device_views.h"
#include "backend/floats.h"
#include "kernels/parallel.h"

namespace cpu_sim {

using tfplug::Operand;

std::optional<tfplug::Epilogue> FindFastEpilogue(
    const tfplug::Expression& expression, tfplug::Operands inputs) {
  if (!IsComputedInFloat(expression.inputs()[0])) return std::nullopt;
  auto epilogue = FindEpilogue(expression, inputs);
  const bool has_shift = !epilogue || !epilogue->scale || epilogue->shift;
  return has_shift ? epilogue : std::nullopt;
}

absl::StatusOr<Epilogue> EpilogueForDevice(Stream& stream,
                                           tfplug::Launcher& launcher,
                                           const tfplug::Epilogue& epilogue) {
  Epilogue result{nullptr, nullptr, epilogue.activation,
                  static_cast<float>(epilogue.alpha)};
  const auto convert = [&](const std::optional<Operand>& vector,
                           const float*& to) -> absl::Status {
    if (!vector.has_value()) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Operand floats, ToFloats(launcher, *vector));
    TFPLUG_RETURN_IF_ERROR(MakePrivate(stream, floats));
    to = static_cast<const float*>(floats.data);
    return absl::OkStatus();
  };
  TFPLUG_RETURN_IF_ERROR(convert(epilogue.scale, result.scale));
  TFPLUG_RETURN_IF_ERROR(convert(epilogue.shift, result.shift));
  return result;
}

absl::Status Backend::MatMulMap(Stream& stream, tfplug::Launcher& launcher,
                                const Operand& a, const Operand& b,
                                const tfplug::Expression& expression,
                                tfplug::Operands inputs,
                                tfplug::Operands outputs) {
  const auto epilogue = FindFastEpilogue(expression, inputs);
  if (!epilogue.has_value()) {
    return tfplug::Backend<Stream>::MatMulMap(stream, launcher, a, b,
                                              expression, inputs, outputs);
  }
  FloatOutputs float_outputs(launcher);
  TFPLUG_ASSIGN_OR_RETURN(Operand y, float_outputs.Add(outputs[0]));
  TFPLUG_ASSIGN_OR_RETURN(const Epilogue on_device,
                          EpilogueForDevice(stream, launcher, *epilogue));
  TFPLUG_RETURN_IF_ERROR(MatMul(stream, launcher, a, b, y));
  TFPLUG_RETURN_IF_ERROR(MakePrivate(stream, y));
  TFPLUG_RETURN_IF_ERROR(stream.LaunchTask([on_device, y] {
    auto* const elements = static_cast<float*>(y.data);
    const int64_t columns = y.dim(y.rank - 1);
    ForEachPiece(y.num_elements() / columns, PieceOf(columns),
                 [&](int64_t begin, int64_t end, int64_t) {
                   float* const rows = elements + begin * columns;
                   Simd().apply(on_device, end - begin, columns, rows, rows);
                 });
  }));
  return float_outputs.Finish();
}

}  // namespace cpu_sim
