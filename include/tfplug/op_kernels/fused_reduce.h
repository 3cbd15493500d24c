// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_FUSED_REDUCE_H_
#define TFPLUG_OP_KERNELS_FUSED_REDUCE_H_

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tfplug/kernel/fused_map.h"
#include "tfplug/op_kernels/fused_map_kernel.h"
#include "tfplug/op_kernels/internal/fused_program.h"
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
    const absl::string_view ops[] = {"Sum", "Mean", "Prod", "Max",
                                     "Min", "All",  "Any"};
    if (std::find(std::begin(ops), std::end(ops), op) == std::end(ops)) {
      return absl::InvalidArgumentError(
          "the attribute reduce of the fused op names no reduction");
    }
    TFPLUG_ASSIGN_OR_RETURN(type_, construction.GetAttr<DataType>("T"));
    TFPLUG_RETURN_IF_ERROR(reducer_.Init(construction, op));
    TFPLUG_ASSIGN_OR_RETURN(const FusedMap before, ReadFusedMap(construction));
    if (before.results.size() != 1) {
      return absl::InvalidArgumentError(
          "a fused reduction must reduce one value");
    }
    shapes_before_ = FusedShapes(before);
    alone_ = reducer_.reduction();
    TFPLUG_ASSIGN_OR_RETURN(
        before_, FusedProgram::Make(before, before.results, alone_.type()));
    alone_.map = before_.expression;
    TFPLUG_ASSIGN_OR_RETURN(
        const FusedMap after,
        ReadFusedMap(construction, kAfterReduceAttrs, type_));
    fused_ = alone_;
    TFPLUG_ASSIGN_OR_RETURN(
        const FusedProgram finish,
        FusedProgram::Make(after, after.results, DataType(0),
                           [this](ExpressionBuilder& builder) {
                             return reducer_.AddResult(builder);
                           }));
    fused_.finish = finish.expression;
    return SetUp(construction, after);
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
    size_t n = 0;  // in place: the inputs that are used are in their order
    for (int i : before_.inputs) {
      views[n++] = BroadcastTo(views[static_cast<size_t>(i)], shapes.output(0));
    }
    TFPLUG_ASSIGN_OR_RETURN(
        Reducer::Run reduce,
        reducer_.Arrange(axes, absl::MakeConstSpan(views).first(n)));

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
    if (HaveShape(shapes_after, reduce.shape) && UsesFirst()) {
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
  absl::Status RunFused(OpRun& run, Reducer::Run& reduce,
                        const Views& after) const {
    Views outputs(num_outputs());
    for (size_t k = 0; k < outputs.size(); ++k) {
      TFPLUG_ASSIGN_OR_RETURN(
          const Operand output,
          run.AllocateOutput(static_cast<int>(k), reduce.shape));
      outputs[k] = reduce.ToOutput(output);
    }
    for (int i : absl::MakeConstSpan(together_.inputs).subspan(1)) {
      reduce.inputs.push_back(reduce.ToInput(
          BroadcastTo(after[static_cast<size_t>(i)], reduce.shape)));
    }
    return run.launcher().Reduce(fused_, absl::MakeSpan(reduce.inputs),
                                 absl::MakeSpan(outputs));
  }

  DataType type_{};
  Reducer reducer_;
  FusedProgram before_;
  FusedShapes shapes_before_;
  Reduction alone_, fused_;  // without and with the ops after it
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_FUSED_REDUCE_H_
