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
#include "tfplug/kernel/fused_map.h"
#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/internal/fused_program.h"
#include "tfplug/op_kernels/internal/fused_shapes.h"
#include "tfplug/op_kernels/op_run.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// The op of a cluster of element-wise ops: one Map, or, if the outputs turn out
// to have different shapes, one for each of them.
class FusedMapKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const FusedMap map, ReadFusedMap(construction));
    TFPLUG_RETURN_IF_ERROR(SetUp(construction, map));
    for (size_t k = 0; k < candidates_.size(); ++k) {
      for (size_t i = 0; i < map.inputs.size(); ++i) {
        if (map.inputs[i] == together_.expression.outputs()[k].type) {
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

  absl::Status SetUp(KernelConstruction& construction, const FusedMap& map) {
    TFPLUG_ASSIGN_OR_RETURN(together_, FusedProgram::Make(map, map.results));
    TFPLUG_ASSIGN_OR_RETURN(
        const auto output_types,
        construction.GetAttr<std::vector<DataType>>("Tout"));
    std::vector<DataType> computed;
    for (const Expression::Output& output : together_.expression.outputs()) {
      computed.push_back(output.type);
    }
    if (output_types != computed) {
      return absl::InvalidArgumentError(
          "the attribute Tout of the fused op differs from the types of its "
          "results");
    }
    if (map.results.size() > 1) {
      for (int result : map.results) {
        TFPLUG_ASSIGN_OR_RETURN(FusedProgram one,
                                FusedProgram::Make(map, {result}));
        apart_.push_back(std::move(one));
      }
    }
    shapes_ = FusedShapes(map);
    candidates_.resize(map.results.size());
    return absl::OkStatus();
  }

  // Whether the outputs depend on input 0.
  bool UsesFirst() const {
    return !together_.inputs.empty() && together_.inputs[0] == 0;
  }
  // Whether all outputs have this shape.
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
    size_t n = 0;  // in place: the inputs that are used are in their order
    for (int i : together_.inputs) {
      const auto from = static_cast<size_t>(i);
      if (from != n) inputs[n] = inputs[from];
      ++n;
    }
    return MapTensors(run.launcher(), together_.expression, shape,
                      absl::MakeSpan(inputs).first(n), absl::MakeSpan(outputs));
  }

  size_t num_outputs() const { return candidates_.size(); }

  FusedProgram together_;
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

  std::vector<FusedProgram> apart_;  // one for each output, if several
  // The inputs whose memory each output may take.
  std::vector<std::vector<int>> candidates_;
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_FUSED_MAP_KERNEL_H_
