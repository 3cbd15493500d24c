// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_RNN_GRADIENT_H_
#define TFPLUG_OP_KERNELS_RNN_GRADIENT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/op_kernels/rnn_kernel.h"

#pragma GCC visibility push(hidden)

// The kernel of the gradients of recurrent layers. The steps are a Recur; the
// gradients of the parameters are products of all steps.
namespace tfplug::op_kernels_internal {

class RnnGradient final : public RnnKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_RETURN_IF_ERROR(RnnKernel::Init(construction));
    TFPLUG_ASSIGN_OR_RETURN(gradient_, layout_.cell.Gradient(type_));
    TFPLUG_ASSIGN_OR_RETURN(sum_, primitives::MakeSum(type_));
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Arguments args, Read(run));
    const RnnSizes& sizes = args.sizes;
    const int first = has_lengths_ ? 8 : 7;  // output_backprop
    const auto read = [&](int i,
                          const Shape& shape) -> absl::StatusOr<Operand> {
      TFPLUG_ASSIGN_OR_RETURN(const Operand view, GetView(run, first + i));
      if (ShapeOf(view) == shape) return view;
      return absl::InvalidArgumentError(
          "input " + std::to_string(first + i) + " must have the shape " +
          shape.ToString() + ", not " + ShapeOf(view).ToString());
    };
    TFPLUG_ASSIGN_OR_RETURN(const Operand dy,
                            read(0, layout_.OutputShape(sizes)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand dh,
                            read(1, layout_.StateShape(sizes)));
    Operand dc;
    if (layout_.cell.has_cell()) {
      TFPLUG_ASSIGN_OR_RETURN(dc, read(2, layout_.StateShape(sizes)));
      dc = layout_.TimeMajor(dc);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand reserve, read(3, {sizes.reserve()}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand dx,
                            run.AllocateOutput(0, ShapeOf(x)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand first_dh,
                            run.AllocateOutput(1, layout_.StateShape(sizes)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand c, GetView(run, 2));
    TFPLUG_ASSIGN_OR_RETURN(const Operand first_dc,
                            run.AllocateOutput(2, ShapeOf(c)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand dparams,
                            run.AllocateOutput(3, ShapeOf(args.params)));
    Operand states_dc;
    if (layout_.cell.has_cell()) {
      states_dc = layout_.TimeMajor(first_dc);
    } else {
      TFPLUG_RETURN_IF_ERROR(Fill(run, first_dc, 0));
    }
    if (sizes.time * sizes.batch == 0) {
      TFPLUG_RETURN_IF_ERROR(Copy(run, dh, first_dh));
      if (layout_.cell.has_cell()) {
        TFPLUG_RETURN_IF_ERROR(Copy(run, dc, states_dc));
      }
      return Fill(run, dparams, 0);
    }
    Operand of_layer = layout_.TimeMajor(dy);
    for (int64_t layer = sizes.layers; layer-- > 0;) {
      const Operand input =
          layer == 0 ? args.x : sizes.LayerOutput(reserve, layer - 1);
      TFPLUG_ASSIGN_OR_RETURN(const Operand below,
                              Allocate(run, ir::DimsOf(input)));
      for (int64_t d = 0; d < sizes.directions; ++d) {
        const Operand of_output =
            ir::Range(of_layer, 2, d * sizes.units, (d + 1) * sizes.units);
        TFPLUG_RETURN_IF_ERROR(
            RunOne(run, args, layer * sizes.directions + d, input, of_output,
                   layout_.TimeMajor(dh), dc, reserve, below,
                   layout_.TimeMajor(first_dh), states_dc, dparams));
      }
      of_layer = below;
    }
    return Copy(run, of_layer, layout_.TimeMajor(dx));
  }

 private:
  // Computes the gradients of one direction of a layer. That of the layer's input
  // is added to `below` if an earlier direction has set it.
  absl::Status RunOne(OpRun& run, const Arguments& args, int64_t p,
                      const Operand& x, const Operand& dy, const Operand& dh,
                      const Operand& dc, const Operand& reserve,
                      const Operand& below, const Operand& first_dh,
                      const Operand& first_dc, const Operand& dparams) const {
    const RnnSizes& sizes = args.sizes;
    const RnnCell& cell = layout_.cell;
    const bool is_reverse = sizes.IsReverse(p);
    const RnnReserve arrays = sizes.ReserveOf(reserve, p);
    const RnnWeights weights = sizes.WeightsOf(args.params, p);
    const Ints matrix = {sizes.batch, sizes.units};
    const Ints all = {sizes.time, sizes.batch, sizes.width()};
    TFPLUG_ASSIGN_OR_RETURN(const Operand product, Allocate(run, matrix));
    TFPLUG_ASSIGN_OR_RETURN(const Operand past, Allocate(run, matrix));
    TFPLUG_ASSIGN_OR_RETURN(const Operand of_x, Allocate(run, all));
    Operand of_h = of_x, of_cell;
    if (cell.has_candidate()) {
      TFPLUG_ASSIGN_OR_RETURN(of_h, Allocate(run, all));
    }
    TFPLUG_RETURN_IF_ERROR(Fill(run, product, 0));
    TFPLUG_RETURN_IF_ERROR(Copy(run, ir::AtIndex(dh, p), past));
    if (cell.has_cell()) {
      TFPLUG_ASSIGN_OR_RETURN(of_cell, Allocate(run, matrix));
      TFPLUG_RETURN_IF_ERROR(Copy(run, ir::AtIndex(dc, p), of_cell));
    }
    const auto from = [&](const Operand& states) {
      return sizes.StatesOf(states, is_reverse);
    };
    const auto to = [&](const Operand& states) {
      return sizes.StatesOf(states, !is_reverse);
    };
    std::vector<Operand> in = {dy, sizes.ForSteps(product),
                               sizes.ForSteps(past)};
    std::vector<Operand> out;
    if (cell.has_cell()) in.push_back(sizes.ForSteps(of_cell));
    AddParts(arrays.stored, cell.stored, in);
    if (cell.needs_old()) in.push_back(from(arrays.h));
    if (cell.needs_new()) in.push_back(to(arrays.h));
    if (cell.has_cell()) {
      in.push_back(from(arrays.c));
      in.push_back(to(arrays.c));
    }
    in.push_back(sizes.ForUnits(args.valid));
    AddParts(of_x, cell.gates, out);
    if (cell.has_candidate()) AddParts(of_h, cell.gates, out);
    out.push_back(sizes.ForSteps(past));
    if (cell.has_cell()) out.push_back(sizes.ForSteps(of_cell));
    TFPLUG_RETURN_IF_ERROR(RunSteps(run, !is_reverse, of_h, weights, product,
                                    std::move(in), std::move(out)));
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().Map(add_, {product, past}, {ir::AtIndex(first_dh, p)}));
    if (cell.has_cell()) {
      TFPLUG_RETURN_IF_ERROR(Copy(run, of_cell, ir::AtIndex(first_dc, p)));
    }
    TFPLUG_RETURN_IF_ERROR(AddInputGradient(
        run, AsRows(of_x), weights, AsRows(below), p % sizes.directions > 0));
    const int64_t begin = is_reverse ? 1 : 0;
    return SetWeights(run, AsRows(of_x), AsRows(of_h), AsRows(x),
                      AsRows(ir::Range(arrays.h, 0, begin, begin + sizes.time)),
                      sizes.WeightsOf(dparams, p));
  }

  // Runs the steps, of which each follows the product of the one before.
  absl::Status RunSteps(OpRun& run, bool is_reverse, const Operand& of_h,
                        const RnnWeights& weights, const Operand& product,
                        std::vector<Operand> in,
                        std::vector<Operand> out) const {
    const int64_t steps = of_h.dim(0), first = is_reverse ? steps - 1 : 0;
    std::vector<Operand> first_in, first_out;
    for (const Operand& view : in) first_in.push_back(ir::AtIndex(view, first));
    for (const Operand& view : out) {
      first_out.push_back(ir::AtIndex(view, first));
    }
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        gradient_, absl::MakeSpan(first_in), absl::MakeSpan(first_out)));
    const auto others = [&](const Operand& view) {
      return ir::Range(view, 0, !is_reverse, steps - is_reverse);
    };
    for (std::vector<Operand>* views : {&in, &out}) {
      for (Operand& view : *views) view = others(view);
    }
    TFPLUG_RETURN_IF_ERROR(Recur(
        run, is_reverse, ir::Range(of_h, 0, is_reverse, steps - !is_reverse),
        weights.of_state, product, gradient_, std::move(in), std::move(out)));
    return run.launcher().MatMul(ir::AtIndex(of_h, steps - 1 - first),
                                 weights.of_state, product);
  }

  absl::Status AddInputGradient(OpRun& run, const Operand& of_x,
                                const RnnWeights& weights, const Operand& below,
                                bool is_set) const {
    if (!is_set) return run.launcher().MatMul(of_x, weights.of_input, below);
    TFPLUG_ASSIGN_OR_RETURN(const Operand other,
                            Allocate(run, ir::DimsOf(below)));
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().MatMul(of_x, weights.of_input, other));
    return run.launcher().Map(add_, {below, other}, {below});
  }

  absl::Status SetWeights(OpRun& run, const Operand& of_x, const Operand& of_h,
                          const Operand& x, const Operand& h,
                          const RnnWeights& to) const {
    const Operand by_gate = ir::Transposed(of_x),
                  by_state = ir::Transposed(of_h);
    TFPLUG_RETURN_IF_ERROR(run.launcher().MatMul(by_gate, x, to.of_input));
    TFPLUG_RETURN_IF_ERROR(run.launcher().MatMul(by_state, h, to.of_state));
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().Reduce(sum_, {by_gate}, {to.input_bias}));
    return of_h.data == of_x.data
               ? Copy(run, to.input_bias, to.state_bias)
               : run.launcher().Reduce(sum_, {by_state}, {to.state_bias});
  }

  Expression gradient_;
  Reduction sum_;
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_RNN_GRADIENT_H_
