// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_FUSED_REDUCE_H_
#define TFPLUG_OP_KERNELS_FUSED_REDUCE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tfplug/ir/compose.h"
#include "tfplug/kernel/fused_map_ops.h"
#include "tfplug/op_kernels/fused_map_kernel.h"
#include "tfplug/op_kernels/internal/fused_attrs.h"
#include "tfplug/op_kernels/internal/fused_shapes.h"
#include "tfplug/op_kernels/op_run.h"
#include "tfplug/op_kernels/reduction.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// The op of a reduction and the element-wise ops before and after it: one
// Reduce, or, if the outputs turn out to have other shapes than the result of
// the reduction, a Reduce and the Maps of FusedMapKernel.
class FusedReduceKernel final : public FusedMapKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op,
                            construction.GetAttr<std::string>("reduce"));
    TFPLUG_ASSIGN_OR_RETURN(type_, GetType(construction));
    if (!Supports(op, type_)) {
      return MalformedFusedOp("no reduction " + op + " has this type");
    }
    TFPLUG_RETURN_IF_ERROR(reducer_.Init(construction, op));
    TFPLUG_ASSIGN_OR_RETURN(
        const ClusterAttrs before,
        ClusterAttrs::Read(construction, kFusedMapAttrs, {}, {type_}));
    shapes_before_ = before.shapes;
    TFPLUG_RETURN_IF_ERROR(SetUp(construction, kAfterReduceAttrs, {type_}));
    alone_ = reducer_.reduction();
    TFPLUG_ASSIGN_OR_RETURN(alone_.map,
                            MakeMap(before.expression, alone_.type()));
    fused_ = alone_;
    TFPLUG_ASSIGN_OR_RETURN(fused_.finish, MakeFinish());
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    Views views(shapes_before_.num_inputs());
    FusedShapes::Run shapes(shapes_before_);
    for (size_t i = 0; i < views.size(); ++i) {
      TFPLUG_ASSIGN_OR_RETURN(views[i], GetView(run, static_cast<int>(i)));
      shapes.SetInput(i, views[i]);
    }
    TFPLUG_RETURN_IF_ERROR(shapes.Infer());
    const int num_views = static_cast<int>(views.size());
    TFPLUG_ASSIGN_OR_RETURN(const Ints axes, run.GetInts(num_views));
    for (Operand& view : views) view = BroadcastTo(view, shapes.output(0));
    TFPLUG_ASSIGN_OR_RETURN(Reducer::Run reduce, reducer_.Arrange(axes, views));

    Views after(shapes_.num_inputs());
    after[0] = Operand::Dense(nullptr, type_, reduce.shape.dims());
    FusedShapes::Run shapes_after(shapes_);
    shapes_after.SetInput(0, after[0]);
    for (size_t i = 1; i < after.size(); ++i) {
      TFPLUG_ASSIGN_OR_RETURN(after[i],
                              GetView(run, num_views + static_cast<int>(i)));
      shapes_after.SetInput(i, after[i]);
    }
    TFPLUG_RETURN_IF_ERROR(shapes_after.Infer());
    if (HaveShape(shapes_after, reduce.shape)) {
      return RunFused(run, reduce, after);
    }
    TFPLUG_ASSIGN_OR_RETURN(
        after[0], run.launcher().Allocate(type_, reduce.shape.dims()));
    Operand result = reduce.ToOutput(after[0]);
    TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(
        alone_, absl::MakeSpan(reduce.inputs), absl::MakeSpan(&result, 1)));
    return RunMap(run, after, shapes_after);
  }

 private:
  static bool Supports(const std::string& reduce, DataType type) {
    if (reduce == "All" || reduce == "Any") return type == DataType::kBool;
    return (reduce == "Sum" || reduce == "Mean" || reduce == "Prod" ||
            reduce == "Max" || reduce == "Min") &&
           type != DataType::kBool && ComputeType(type) != DataType(0);
  }
  // Returns the expression with its output in the type that is combined.
  static absl::StatusOr<Expression> MakeMap(const Expression& before,
                                            DataType combined) {
    ExpressionBuilder builder;
    std::vector<Value> x;
    for (DataType type : before.inputs()) x.push_back(builder.Input(type));
    const Value y =
        ir::Inline(before, before.outputs()[0].value, builder,
                   [&](int32_t i) { return x[static_cast<size_t>(i)]; });
    builder.Output(Cast(y, ComputeType(combined)), combined);
    return std::move(builder).Build();
  }
  // Returns the ops after the reduction, of the value that was combined.
  absl::StatusOr<Expression> MakeFinish() const {
    ExpressionBuilder builder;
    std::vector<Value> x = {Cast(reducer_.AddResult(builder), type_)};
    for (size_t i = 1; i < expression_.inputs().size(); ++i) {
      x.push_back(builder.Input(expression_.inputs()[i]));
    }
    for (const Expression::Output& output : expression_.outputs()) {
      builder.Output(
          ir::Inline(expression_, output.value, builder,
                     [&](int32_t i) { return x[static_cast<size_t>(i)]; }),
          output.type);
    }
    return std::move(builder).Build();
  }

  absl::Status RunFused(OpRun& run, Reducer::Run& reduce,
                        const Views& after) const {
    Views outputs(num_outputs());
    for (size_t k = 0; k < outputs.size(); ++k) {
      TFPLUG_ASSIGN_OR_RETURN(
          const Operand output,
          run.AllocateOutput(static_cast<int>(k), reduce.shape));
      outputs[k] = reduce.ToOutput(output);
    }
    for (const Operand& input : absl::MakeConstSpan(after).subspan(1)) {
      reduce.inputs.push_back(reduce.ToInput(BroadcastTo(input, reduce.shape)));
    }
    return run.launcher().Reduce(fused_, absl::MakeSpan(reduce.inputs),
                                 absl::MakeSpan(outputs));
  }

  DataType type_{};
  Reducer reducer_;
  FusedShapes shapes_before_;
  Reduction alone_, fused_;  // without and with the ops after it
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_FUSED_REDUCE_H_
