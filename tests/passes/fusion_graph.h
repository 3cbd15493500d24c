// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_PASSES_FUSION_GRAPH_H_
#define TFPLUG_TESTS_PASSES_FUSION_GRAPH_H_

#include <set>
#include <string>

#include "runnable_graph.h"
#include "tfplug/op_kernels/activation.h"
#include "tfplug/op_kernels/convert.h"
#include "tfplug/op_kernels/fused_map.h"
#include "tfplug/op_kernels/math.h"
#include "tfplug/op_kernels/matmul.h"
#include "tfplug/op_kernels/reduction.h"
#include "tfplug/op_kernels/register.h"
#include "tfplug/passes/fuse_elementwise.h"
#include "tfplug/primitives/reference_backend.h"

namespace tfplug {

// The calls of the backend's primitives.
inline int num_maps = 0, num_reductions = 0, num_products = 0;

class CountedBackend : public ReferenceBackend<minimal::Stream> {
 public:
  absl::Status Map(minimal::Stream& stream, const Expression& expression,
                   Operands inputs, Operands outputs) override {
    ++num_maps;
    return ReferenceBackend::Map(stream, expression, inputs, outputs);
  }
  absl::Status Reduce(minimal::Stream& stream, const Reduction& reduction,
                      Operands inputs, Operands outputs) override {
    ++num_reductions;
    return ReferenceBackend::Reduce(stream, reduction, inputs, outputs);
  }
  absl::Status MatMulMap(minimal::Stream& stream, Launcher& launcher,
                         const Operand& a, const Operand& b,
                         const Expression& expression, Operands inputs,
                         Operands outputs) override {
    ++num_products;
    return ReferenceBackend::MatMulMap(stream, launcher, a, b, expression,
                                       inputs, outputs);
  }
};
TFPLUG_REGISTER_BACKEND(CountedBackend, ActivationOps, ConvertOps, FusedMapOps,
                        MathOps, MatMulOps, ReductionOps);

// A graph whose element-wise ops the pass fuses.
struct Fusion : RunnableGraph {
  // Returns the ops of the graph, except for those that compute nothing.
  std::string Ops() {
    std::multiset<std::string> ops;
    for (const Node node : graph.nodes()) {
      if (testing::BuiltinInputs(node.op()) < 0) ops.emplace(node.op());
    }
    return absl::StrJoin(ops, " ");
  }
  // Fuses the graph, and returns its ops.
  std::string Fuse() {
    Run<FuseElementwise>();
    return Ops();
  }
  // Does the same, and checks that the results stay the same. The calls of
  // primitives are those of one computation of the results.
  std::string FuseAndCompare() {
    const auto expected = Results();
    std::string ops = Fuse();
    num_maps = num_reductions = num_products = 0;
    CheckResults(expected);
    return ops;
  }
  std::string ExpressionOf(const std::string& node) {
    return graph.FindNode(node).GetAttr<std::string>("expression").value();
  }
  // Returns the shape of a node's first output, as later passes find it.
  std::string ShapeAfter(const std::string& node) {
    const auto outputs = context->properties().GetOutputs(node);
    return outputs.ok() ? (*outputs)[0].shape.ToString()
                        : std::string(outputs.status().message());
  }
};

}  // namespace tfplug

#endif  // TFPLUG_TESTS_PASSES_FUSION_GRAPH_H_
