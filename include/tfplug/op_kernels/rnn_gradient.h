// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_RNN_GRADIENT_H_
#define TFPLUG_OP_KERNELS_RNN_GRADIENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tfplug/op_kernels/rnn_kernel.h"

#pragma GCC visibility push(hidden)

// The kernel of the gradients of recurrent layers. A step is a Map and a MatMul;
// those of the parameters are products of all steps.
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
    TFPLUG_RETURN_IF_ERROR(Copy(run, AtIndex(dh, p), past));
    if (cell.has_cell()) {
      TFPLUG_ASSIGN_OR_RETURN(of_cell, Allocate(run, matrix));
      TFPLUG_RETURN_IF_ERROR(Copy(run, AtIndex(dc, p), of_cell));
    }
    for (int64_t k = 0; k < sizes.time; ++k) {
      const int64_t t = is_reverse ? k : sizes.time - 1 - k;
      const int64_t from = is_reverse ? t + 1 : t, to = is_reverse ? t : t + 1;
      std::vector<Operand> in = {AtIndex(dy, t), product, past}, out;
      if (cell.has_cell()) in.push_back(of_cell);
      AddParts(AtIndex(arrays.stored, t), cell.stored, in);
      if (cell.needs_old()) in.push_back(AtIndex(arrays.h, from));
      if (cell.needs_new()) in.push_back(AtIndex(arrays.h, to));
      if (cell.has_cell()) {
        in.push_back(AtIndex(arrays.c, from));
        in.push_back(AtIndex(arrays.c, to));
      }
      in.push_back(sizes.ForUnits(AtIndex(args.valid, t)));
      AddParts(AtIndex(of_x, t), cell.gates, out);
      if (cell.has_candidate()) AddParts(AtIndex(of_h, t), cell.gates, out);
      out.push_back(past);
      if (cell.has_cell()) out.push_back(of_cell);
      TFPLUG_RETURN_IF_ERROR(run.launcher().Map(gradient_, absl::MakeSpan(in),
                                                absl::MakeSpan(out)));
      TFPLUG_RETURN_IF_ERROR(
          run.launcher().MatMul(AtIndex(of_h, t), weights.of_state, product));
    }
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().Map(add_, {product, past}, {AtIndex(first_dh, p)}));
    if (cell.has_cell()) {
      TFPLUG_RETURN_IF_ERROR(Copy(run, of_cell, AtIndex(first_dc, p)));
    }
    TFPLUG_RETURN_IF_ERROR(AddInputGradient(
        run, AsRows(of_x), weights, AsRows(below), p % sizes.directions > 0));
    const int64_t begin = is_reverse ? 1 : 0;
    return SetWeights(run, AsRows(of_x), AsRows(of_h), AsRows(x),
                      AsRows(ir::Range(arrays.h, 0, begin, begin + sizes.time)),
                      sizes.WeightsOf(dparams, p));
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
