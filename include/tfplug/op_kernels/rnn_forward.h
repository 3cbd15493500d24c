// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_RNN_FORWARD_H_
#define TFPLUG_OP_KERNELS_RNN_FORWARD_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "tfplug/op_kernels/rnn_kernel.h"

#pragma GCC visibility push(hidden)

// The kernel of recurrent layers. The products of all inputs of a layer are one
// MatMul, the steps are a Recur.
namespace tfplug::op_kernels_internal {

class RnnForward final : public RnnKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_RETURN_IF_ERROR(RnnKernel::Init(construction));
    TFPLUG_ASSIGN_OR_RETURN(is_training_,
                            construction.GetAttr<bool>("is_training"));
    TFPLUG_ASSIGN_OR_RETURN(step_, layout_.cell.Step(type_, is_training_));
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Arguments args, Read(run));
    const RnnSizes& sizes = args.sizes;
    TFPLUG_ASSIGN_OR_RETURN(const Operand output,
                            run.AllocateOutput(0, layout_.OutputShape(sizes)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand last_h,
                            run.AllocateOutput(1, layout_.StateShape(sizes)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand last_c,
                            run.AllocateOutput(2, layout_.CellShape(sizes)));
    const int64_t size = sizes.reserve();
    TFPLUG_ASSIGN_OR_RETURN(Operand reserve,
                            run.AllocateOutput(3, {is_training_ ? size : 0}));
    if (!is_training_) {
      TFPLUG_ASSIGN_OR_RETURN(reserve, Allocate(run, {size}));
    }
    if (has_host_reserved_) {
      TFPLUG_RETURN_IF_ERROR(run.AllocateOutput(4, {0}).status());
    }
    if (!layout_.cell.has_cell()) TFPLUG_RETURN_IF_ERROR(Fill(run, last_c, 0));
    Operand x = args.x;
    for (int64_t layer = 0; layer < sizes.layers; ++layer) {
      const Operand y = layer + 1 == sizes.layers
                            ? layout_.TimeMajor(output)
                            : sizes.LayerOutput(reserve, layer);
      for (int64_t d = 0; d < sizes.directions; ++d) {
        const int64_t p = layer * sizes.directions + d;
        TFPLUG_RETURN_IF_ERROR(RunOne(
            run, args, p, x,
            ir::Range(y, 2, d * sizes.units, (d + 1) * sizes.units), reserve,
            layout_.TimeMajor(last_h),
            layout_.cell.has_cell() ? layout_.TimeMajor(last_c) : Operand()));
      }
      x = y;
    }
    return absl::OkStatus();
  }

 private:
  // Runs one direction of a layer.
  absl::Status RunOne(OpRun& run, const Arguments& args, int64_t p,
                      const Operand& x, const Operand& y,
                      const Operand& reserve, const Operand& last_h,
                      const Operand& last_c) const {
    const RnnSizes& sizes = args.sizes;
    const RnnCell& cell = layout_.cell;
    const bool is_reverse = sizes.IsReverse(p);
    const RnnWeights weights = sizes.WeightsOf(args.params, p);
    const RnnReserve arrays = sizes.ReserveOf(reserve, p);
    const int64_t first = is_reverse ? sizes.time : 0;
    const int64_t last = sizes.time - first;
    TFPLUG_RETURN_IF_ERROR(
        Copy(run, ir::AtIndex(args.h, p), ir::AtIndex(arrays.h, first)));
    if (cell.has_cell()) {
      TFPLUG_RETURN_IF_ERROR(
          Copy(run, ir::AtIndex(args.c, p), ir::AtIndex(arrays.c, first)));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand of_x,
                            Products(run, sizes, x, weights));
    TFPLUG_ASSIGN_OR_RETURN(const Operand of_h,
                            Allocate(run, {sizes.batch, sizes.width()}));
    const auto from = [&](const Operand& states) {
      return sizes.StatesOf(states, is_reverse);
    };
    const auto to = [&](const Operand& states) {
      return sizes.StatesOf(states, !is_reverse);
    };
    std::vector<Operand> in, out;
    AddParts(of_x, cell.gates, in);
    AddParts(sizes.ForSteps(of_h), cell.gates, in);
    if (cell.has_candidate()) in.push_back(sizes.CandidateBias(weights));
    in.push_back(from(arrays.h));
    out.push_back(to(arrays.h));
    if (cell.has_cell()) {
      in.push_back(from(arrays.c));
      out.push_back(to(arrays.c));
    }
    in.push_back(sizes.ForUnits(args.valid));
    if (is_training_) AddParts(arrays.stored, cell.stored, out);
    TFPLUG_RETURN_IF_ERROR(Recur(run, is_reverse, from(arrays.h),
                                 ir::Transposed(weights.of_state), of_h, step_,
                                 std::move(in), std::move(out)));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        keep_valid_, {to(arrays.h), sizes.ForUnits(args.valid)}, {y}));
    TFPLUG_RETURN_IF_ERROR(
        Copy(run, ir::AtIndex(arrays.h, last), ir::AtIndex(last_h, p)));
    return cell.has_cell()
               ? Copy(run, ir::AtIndex(arrays.c, last), ir::AtIndex(last_c, p))
               : absl::OkStatus();
  }

  // Returns the products of all inputs plus the biases, [time, batch, width].
  absl::StatusOr<Operand> Products(OpRun& run, const RnnSizes& sizes,
                                   const Operand& x,
                                   const RnnWeights& weights) const {
    const int64_t width = sizes.width();
    TFPLUG_ASSIGN_OR_RETURN(const Operand bias, Allocate(run, {width}));
    // The candidate's bias of the state is added in the step.
    const int64_t both =
        layout_.cell.has_candidate() ? width - sizes.units : width;
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().Map(add_,
                           {ir::Range(weights.input_bias, 0, 0, both),
                            ir::Range(weights.state_bias, 0, 0, both)},
                           {ir::Range(bias, 0, 0, both)}));
    TFPLUG_RETURN_IF_ERROR(Copy(run,
                                ir::Range(weights.input_bias, 0, both, width),
                                ir::Range(bias, 0, both, width)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand products,
                            Allocate(run, {sizes.time, sizes.batch, width}));
    if (products.num_elements() == 0) return products;
    const Operand matrix = AsRows(products);
    TFPLUG_RETURN_IF_ERROR(run.launcher().MatMulMap(
        AsRows(x), ir::Transposed(weights.of_input), add_,
        {ir::WithDim(bias, 0, matrix.dim(0))}, {matrix}));
    return products;
  }

  bool is_training_ = false;
  Expression step_;
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_RNN_FORWARD_H_
