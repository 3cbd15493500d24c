// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_FUSED_REDUCE_H_
#define TFPLUG_BACKEND_OPS_FUSED_REDUCE_H_

#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "tfplug/backend/internal/fused_program.h"
#include "tfplug/backend/internal/fused_shapes.h"
#include "tfplug/backend/op_run.h"
#include "tfplug/backend/ops/elementwise.h"
#include "tfplug/backend/ops/reduction.h"
#include "tfplug/kernel/fused_map.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// The op of a reduction and the element-wise ops before it: one Reduce.
class FusedReduceKernel final : public ReductionKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op,
                            construction.GetAttr<std::string>("reduce"));
    TFPLUG_RETURN_IF_ERROR(SetUp(construction, op));
    TFPLUG_ASSIGN_OR_RETURN(const FusedMap map, ReadFusedMap(construction));
    TFPLUG_ASSIGN_OR_RETURN(
        program_, FusedProgram::Make(map, map.results, reduction_.type()));
    reduction_.map = program_.expression;
    shapes_ = FusedShapes(map);
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    absl::InlinedVector<Operand, 8> views(shapes_.num_inputs());
    FusedShapes::Run shapes(shapes_);
    for (size_t i = 0; i < views.size(); ++i) {
      TFPLUG_ASSIGN_OR_RETURN(views[i], GetView(run, static_cast<int>(i)));
      shapes.SetInput(i, views[i]);
    }
    TFPLUG_RETURN_IF_ERROR(shapes.Infer());
    TFPLUG_ASSIGN_OR_RETURN(const Ints axes,
                            run.GetInts(static_cast<int>(views.size())));
    size_t n = 0;  // in place: the inputs that are used are in their order
    for (int i : program_.inputs) {
      views[n++] = BroadcastTo(views[static_cast<size_t>(i)], shapes.output(0));
    }
    return Reduce(run, axes, absl::MakeConstSpan(views).first(n));
  }

 private:
  FusedProgram program_;
  FusedShapes shapes_;
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_FUSED_REDUCE_H_
