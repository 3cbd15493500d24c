// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_PASSES_PASSES_FIXTURE_H_
#define TFPLUG_TESTS_PASSES_PASSES_FIXTURE_H_

#include <tfplug/kernel/kernel.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/internal.h>
#include <tfplug/ops/nn.h>

#include <string>
#include <vector>

#include "patterns/rules_fixture.h"

namespace tfplug {

// A registered kernel that never runs.
class NoKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};
TFPLUG_REGISTER_KERNEL(NoKernel,
                       ops::InternalFusedMatMul().T<float>().Device("SIM"));
TFPLUG_REGISTER_KERNEL(NoKernel,
                       ops::InternalFusedConv2D().T<float>().Device("SIM"));
TFPLUG_REGISTER_KERNEL(NoKernel, ops::Conv2D().T<float>().Device("SIM"));
TFPLUG_REGISTER_KERNEL(NoKernel, ops::BiasAdd().T<float>().Device("SIM"));
TFPLUG_REGISTER_KERNEL(NoKernel,
                       ops::DepthwiseConv2dNative().T<float>().Device("SIM"));
TFPLUG_REGISTER_KERNEL(
    NoKernel,
    ops::InternalFusedDepthwiseConv2dNative().T<float>().Device("SIM"));

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

// TensorFlow's definitions of the ops that the passes add, and helpers that add
// nodes to fuse.
struct PassesFixture : RulesFixture {
  PassesFixture() {
    DefineOp("_FusedMatMul",
             {"T: type", "transpose_a: bool", "transpose_b: bool",
              "num_args: int", "fused_ops: list(string)", "epsilon: float",
              "leakyrelu_alpha: float"});
    const std::vector<std::string> conv = {
        "T: type", "strides: list(int)", "padding: string",
        "data_format: string", "dilations: list(int)"};
    auto with = [&conv](std::vector<std::string> more) {
      more.insert(more.end(), conv.begin(), conv.end());
      return more;
    };
    DefineOp("Conv2D",
             with({"explicit_paddings: list(int)", "use_cudnn_on_gpu: bool"}));
    DefineOp("DepthwiseConv2dNative", with({"explicit_paddings: list(int)"}));
    const std::vector<std::string> fused = {
        "num_args: int", "fused_ops: list(string)", "epsilon: float",
        "leakyrelu_alpha: float"};
    std::vector<std::string> all = with(fused);
    DefineOp("_FusedDepthwiseConv2dNative", all);
    all.insert(all.end(), {"explicit_paddings: list(int)",
                           "use_cudnn_on_gpu: bool", "TArgs: list(type)"});
    DefineOp("_FusedConv2D", all);
    DefineOp("BiasAdd", {"T: type", "data_format: string"});
    Add("x, w, b, v = Placeholder()");
  }

  // Adds `conv` or another op on two inputs, "x, w".
  Node AddConv(const std::string& op, const std::string& inputs) {
    return Add("conv = " + op + "(" + inputs + R"() {
        strides=[1, 2, 2, 1], dilations=[1, 1, 1, 1], padding="VALID",
        data_format="NHWC", explicit_paddings=[]})");
  }
  Node AddBias(const std::string& name, const std::string& value) {
    return Add(name + " = BiasAdd(" + value + R"(, b) {data_format="NHWC"})");
  }
  Node AddNorm(const std::string& value, const std::string& format = "NHWC") {
    return Add("norm = FusedBatchNormV3(" + value +
               ", scale, offset, mean, variance) {U=float, is_training=false, "
               "epsilon=0.25, data_format=\"" +
               format + "\"}");
  }
  void State(const std::string& node, const Shape& shape) {
    context().properties().SetOutputs(node, {{DataType::kFloat, shape}});
  }
};

}  // namespace tfplug

#endif  // TFPLUG_TESTS_PASSES_PASSES_FIXTURE_H_
