// SPDX-License-Identifier: Apache-2.0
#include <tfplug/kernel/register_op.h>
#include <tfplug/op_kernels/elementwise.h>
#include <tfplug/op_kernels/register.h>
#include <tfplug/passes/transformer_ops.h>

#include "backend/backend.h"

// The activations that tfplug's rules for transformers create.
namespace cpu_sim {
namespace {

TFPLUG_REGISTER_OP(tfplug::GeluOp());
TFPLUG_REGISTER_OP(tfplug::GeluTanhOp());
TFPLUG_REGISTER_OP(tfplug::SiluOp());
TFPLUG_REGISTER_OP(tfplug::SwigluOp());

using tfplug::Value;

void FusedActivations(const tfplug::Registrar& registrar) {
  constexpr uint64_t kTypes = tfplug::kFloatTypes;
  tfplug::AddElementwiseOps(
      registrar,
      {{"TfplugGelu", kTypes,
        [](Value x) { return 0.5 * x * Erfc(x * -0.70710678118654752); },
        nullptr, tfplug::Shapes::kBroadcast},
       {"TfplugGeluTanh", kTypes,
        [](Value x) {
          const Value inner = 0.79788456080286536 * (x + 0.044715 * x * x * x);
          return 0.5 * x * (1 + Tanh(inner));
        },
        nullptr, tfplug::Shapes::kBroadcast},
       {"TfplugSilu", kTypes, [](Value x) { return x / (1 + Exp(-x)); },
        nullptr, tfplug::Shapes::kBroadcast},
       {"TfplugSwiglu", kTypes,
        [](Value gate, Value x) { return x * gate / (1 + Exp(-gate)); },
        nullptr, tfplug::Shapes::kBroadcast}});
}

TFPLUG_REGISTER_BACKEND(cpu_sim::Backend, FusedActivations);

}  // namespace
}  // namespace cpu_sim
