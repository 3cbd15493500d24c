// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/graph_pass.h>
#include <tfplug/kernel/register_op.h>
#include <tfplug/plugin.h>

#include <string>
#include <utility>

#include "minimal_device.h"

// Compiled twice without tfplug's compiler flags, as two plug-ins with the same
// classes. They differ in TYPE and FACTOR.

class Platform : public minimal::PlatformOf<minimal::Device> {
 public:
  static constexpr char kName[] = TYPE;
  static constexpr char kType[] = TYPE;
};
TFPLUG_REGISTER_DEVICE(Platform);

absl::Status ScaleShape(tfplug::ShapeInference& inference) {
  TFPLUG_ASSIGN_OR_RETURN(const tfplug::ShapeHandle shape,
                          inference.MakeShape(tfplug::Shape{FACTOR}));
  return inference.SetOutput(FACTOR - 1, shape);
}
TFPLUG_REGISTER_OP([] {
  // One output for each unit of the factor.
  tfplug::OpDef op = tfplug::OpDef("Scale").Input("x: float");
  for (int i = 0; i < FACTOR; ++i) {
    op = std::move(op).Output("y" + std::to_string(i) + ": float");
  }
  return std::move(op).SetShapeFn<&ScaleShape>();
}());

class Scale : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(0, x.shape()));
    y.flat<float>()[0] = FACTOR * x.flat<float>()[0];
    return absl::OkStatus();
  }
};
TFPLUG_REGISTER_KERNEL(Scale, tfplug::KernelDef("Scale"));

class AddNoOp : public tfplug::GraphPass {
 public:
  absl::Status Run(tfplug::Graph& graph, const tfplug::PassContext&) override {
    return graph.AddNode(TYPE, "NoOp").status();
  }
};
TFPLUG_REGISTER_GRAPH_PASSES(TYPE, AddNoOp);
