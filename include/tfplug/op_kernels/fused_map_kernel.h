// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_FUSED_MAP_KERNEL_H_
#define TFPLUG_OP_KERNELS_FUSED_MAP_KERNEL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tfplug/ir/compose.h"
#include "tfplug/kernel/fused_map_ops.h"
#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/internal/fused_attrs.h"
#include "tfplug/op_kernels/internal/fused_shapes.h"
#include "tfplug/op_kernels/op_run.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// The op of a cluster of element-wise ops: one Map, or, if the outputs turn out
// to have different shapes, one for each of them.
class FusedMapKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_RETURN_IF_ERROR(SetUp(construction, kFusedMapAttrs, {}));
    const std::vector<DataType>& inputs = expression_.inputs();
    for (size_t k = 0; k < candidates_.size(); ++k) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] == expression_.outputs()[k].type) {
          candidates_[k].push_back(static_cast<int>(i));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    Views inputs(shapes_.num_inputs());
    FusedShapes::Run shapes(shapes_);
    for (size_t i = 0; i < inputs.size(); ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Tensor x,
                              run.GetInput(static_cast<int>(i)));
      TFPLUG_ASSIGN_OR_RETURN(inputs[i], ViewOf(x));
      shapes.SetInput(i, inputs[i]);
    }
    TFPLUG_RETURN_IF_ERROR(shapes.Infer());
    return RunMap(run, inputs, shapes);
  }

 protected:
  using Views = absl::InlinedVector<Operand, 8>;

  // Reads the cluster, whose first input may be none of the op's, but have the
  // type `first`.
  absl::Status SetUp(KernelConstruction& construction,
                     const FusedMapAttrs& names, std::vector<DataType> first) {
    TFPLUG_ASSIGN_OR_RETURN(
        const auto types, construction.GetAttr<std::vector<DataType>>("Tout"));
    TFPLUG_ASSIGN_OR_RETURN(
        ClusterAttrs cluster,
        ClusterAttrs::Read(construction, names, std::move(first), types));
    expression_ = std::move(cluster.expression);
    shapes_ = std::move(cluster.shapes);
    candidates_.resize(types.size());
    if (types.size() == 1) return absl::OkStatus();
    for (const Expression::Output& output : expression_.outputs()) {
      TFPLUG_ASSIGN_OR_RETURN(ir::OutputExpression one,
                              ir::ExpressionOf(output, expression_));
      apart_.push_back(std::move(one));
    }
    return absl::OkStatus();
  }

  // Returns whether all outputs have this shape.
  bool HaveShape(const FusedShapes::Run& shapes, const Shape& shape) const {
    for (size_t k = 0; k < candidates_.size(); ++k) {
      if (shapes.output(k) != shape) return false;
    }
    return true;
  }

  // Computes the outputs from views of all inputs, which it changes.
  absl::Status RunMap(OpRun& run, Views& inputs,
                      const FusedShapes::Run& shapes) const {
    const Shape& shape = shapes.output(0);
    if (!HaveShape(shapes, shape)) return RunApart(run, inputs, shapes);
    Views outputs(candidates_.size());
    for (size_t k = 0; k < outputs.size(); ++k) {
      TFPLUG_ASSIGN_OR_RETURN(
          outputs[k], run.ForwardOrAllocateOutput(static_cast<int>(k),
                                                  candidates_[k], shape));
    }
    return MapTensors(run.launcher(), expression_, shape,
                      absl::MakeSpan(inputs), absl::MakeSpan(outputs));
  }

  size_t num_outputs() const { return candidates_.size(); }

  Expression expression_;
  FusedShapes shapes_;

 private:
  absl::Status RunApart(OpRun& run, const Views& all,
                        const FusedShapes::Run& shapes) const {
    for (size_t k = 0; k < apart_.size(); ++k) {
      const Shape& shape = shapes.output(k);
      TFPLUG_ASSIGN_OR_RETURN(Operand y,
                              run.AllocateOutput(static_cast<int>(k), shape));
      Views inputs;
      for (int i : apart_[k].inputs) {
        inputs.push_back(BroadcastTo(all[static_cast<size_t>(i)], shape));
      }
      TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
          apart_[k].expression, absl::MakeSpan(inputs), absl::MakeSpan(&y, 1)));
    }
    return absl::OkStatus();
  }

  std::vector<ir::OutputExpression> apart_;  // one for each output, if several
  // The inputs whose memory each output may take.
  std::vector<std::vector<int>> candidates_;
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_FUSED_MAP_KERNEL_H_
