// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_BACKEND_BACKEND_H_
#define CPU_SIM_BACKEND_BACKEND_H_

#include <tfplug/backend/backend.h>

#include "cpu_sim.h"

namespace cpu_sim {

// The primitives, from which tfplug makes the kernels of most ops. Each
// enqueues a task on the stream, with the private addresses of its operands.
class Backend final : public tfplug::Backend<cpu_sim::Stream> {
 public:
  using Stream = cpu_sim::Stream;

  absl::Status Map(Stream& stream, const tfplug::Expression& expression,
                   tfplug::Operands inputs, tfplug::Operands outputs) override;
  absl::Status Reduce(Stream& stream, const tfplug::Reduction& reduction,
                      tfplug::Operands inputs,
                      tfplug::Operands outputs) override;
  absl::Status MatMul(Stream& stream, tfplug::Launcher& launcher,
                      const tfplug::Operand& a, const tfplug::Operand& b,
                      const tfplug::Operand& c) override;
  absl::Status Scatter(Stream& stream, tfplug::Launcher& launcher,
                       tfplug::ScatterKind kind, const tfplug::Operand& indices,
                       const tfplug::Operand& updates,
                       const tfplug::Operand& output) override;
  absl::Status Scan(Stream& stream, tfplug::Launcher& launcher,
                    tfplug::ReduceKind kind, const tfplug::Operand& input,
                    const tfplug::Operand& output) override;
  absl::Status Sort(Stream& stream, tfplug::Launcher& launcher,
                    const tfplug::Operand& input, const tfplug::Operand& values,
                    const tfplug::Operand& indices) override;
};

}  // namespace cpu_sim

#endif  // CPU_SIM_BACKEND_BACKEND_H_
