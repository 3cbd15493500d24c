// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_FUSED_MAP_H_
#define TFPLUG_BACKEND_OPS_FUSED_MAP_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tfplug/backend/internal/fused_program.h"
#include "tfplug/backend/internal/fused_shapes.h"
#include "tfplug/backend/op_run.h"
#include "tfplug/backend/ops/elementwise.h"
#include "tfplug/backend/ops/fused_reduce.h"
#include "tfplug/backend/registrar.h"
#include "tfplug/kernel/fused_map.h"
#include "tfplug/kernel/register_op.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace internal {

// The op of a cluster of element-wise ops: one Map, or, if the outputs turn out
// to have different shapes, one for each of them.
class FusedMapKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const FusedMap map, ReadFusedMap(construction));
    TFPLUG_ASSIGN_OR_RETURN(
        const auto output_types,
        construction.GetAttr<std::vector<DataType>>("Tout"));
    TFPLUG_ASSIGN_OR_RETURN(together_, FusedProgram::Make(map, map.results));
    if (map.results.size() > 1) {
      for (int result : map.results) {
        TFPLUG_ASSIGN_OR_RETURN(FusedProgram one,
                                FusedProgram::Make(map, {result}));
        apart_.push_back(std::move(one));
      }
    }
    shapes_ = FusedShapes(map);
    for (DataType type : output_types) {
      std::vector<int> candidates;
      for (size_t i = 0; i < map.inputs.size(); ++i) {
        if (map.inputs[i] == type) candidates.push_back(static_cast<int>(i));
      }
      candidates_.push_back(std::move(candidates));
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
    const Shape& shape = shapes.output(0);
    bool is_one = true;
    for (size_t k = 1; k < candidates_.size(); ++k) {
      is_one = is_one && shapes.output(k) == shape;
    }
    if (!is_one) return RunApart(run, inputs, shapes);

    Views outputs(candidates_.size());
    for (size_t k = 0; k < outputs.size(); ++k) {
      TFPLUG_ASSIGN_OR_RETURN(
          outputs[k], run.ForwardOrAllocateOutput(static_cast<int>(k),
                                                  candidates_[k], shape));
    }
    size_t n = 0;  // in place: the inputs that are used are in their order
    for (int i : together_.inputs) {
      inputs[n++] = BroadcastTo(inputs[static_cast<size_t>(i)], shape);
    }
    return run.launcher().Map(together_.expression,
                              absl::MakeSpan(inputs).first(n),
                              absl::MakeSpan(outputs));
  }

 private:
  using Views = absl::InlinedVector<Operand, 8>;

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

  FusedProgram together_;
  std::vector<FusedProgram> apart_;  // one for each output, if several
  FusedShapes shapes_;
  // The inputs whose memory each output may take.
  std::vector<std::vector<int>> candidates_;
};

}  // namespace internal

// Registers the ops of FuseElementwise (passes/fuse_elementwise.h) and their
// kernels: with this family in the list, the device's graphs are fused.
inline void FusedMapOps(const Registrar& registrar) {
  RegisterOp(FusedMapOp());
  registrar.Add<internal::FusedMapKernel>(KernelDef(kFusedMapOp));
  RegisterOp(FusedReduceOp());
  registrar.Add<internal::FusedReduceKernel>(
      KernelDef(kFusedReduceOp).HostMemory("axes"));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_FUSED_MAP_H_
