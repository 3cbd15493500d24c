// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_RNN_KERNEL_H_
#define TFPLUG_OP_KERNELS_RNN_KERNEL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/op_kernels/op_run.h"
#include "tfplug/op_kernels/rnn_layout.h"
#include "tfplug/primitives/elements.h"

#pragma GCC visibility push(hidden)

// The base of the kernels of recurrent layers and of their gradients.
namespace tfplug::op_kernels_internal {

class RnnKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    has_lengths_ = op.back() == '3';
    has_host_reserved_ = has_lengths_ || op.back() == '2';
    TFPLUG_ASSIGN_OR_RETURN(layout_, RnnLayout::Make(construction));
    TFPLUG_ASSIGN_OR_RETURN(const float dropout,
                            construction.GetAttr<float>("dropout"));
    has_dropout_ = dropout != 0;
    TFPLUG_ASSIGN_OR_RETURN(type_, GetType(construction));
    if (has_lengths_) {
      TFPLUG_ASSIGN_OR_RETURN(layout_.time_major,
                              construction.GetAttr<bool>("time_major"));
    }
    constexpr DataType kIndex = DataType::kInt64;
    TFPLUG_ASSIGN_OR_RETURN(
        is_valid_, MakeExpression({kIndex, kIndex}, {DataType::kBool},
                                  [](Value t, Value n) { return t < n; }));
    ExpressionBuilder copy;
    for (int i = 0; i < kAtOnce; ++i) copy.Output(copy.Input(kIndex), kIndex);
    TFPLUG_ASSIGN_OR_RETURN(copy_, std::move(copy).Build());
    TFPLUG_ASSIGN_OR_RETURN(keep_valid_,
                            MakeExpression({type_, DataType::kBool}, {type_},
                                           [](Value x, Value valid) {
                                             return Select(valid, x, x.Like(0));
                                           }));
    TFPLUG_ASSIGN_OR_RETURN(
        add_, MakeExpression({type_, type_}, {type_},
                             [](Value a, Value b) { return a + b; }));
    return absl::OkStatus();
  }

 protected:
  // The inputs of both directions of the computation.
  struct Arguments {
    RnnSizes sizes;
    Operand x;       // [time, batch, input], dense
    Operand h, c;    // [layers * directions, batch, units]
    Operand params;  // see RnnLayout
    Operand valid;   // [time, batch]: whether a step is one of the sequence
  };

  absl::StatusOr<Arguments> Read(OpRun& run) {
    Arguments args;
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand h, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(args.params, GetView(run, 3));
    TFPLUG_ASSIGN_OR_RETURN(args.sizes, layout_.SizesOf(x, h, args.params));
    const RnnSizes& sizes = args.sizes;
    if (has_dropout_ && sizes.layers > 1) {
      return absl::UnimplementedError(
          "dropout between the layers of an RNN is not supported; use one op "
          "for each layer and Dropout between them");
    }
    args.h = layout_.TimeMajor(h);
    if (layout_.cell.has_cell()) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand c, GetView(run, 2));
      if (ShapeOf(c) != ShapeOf(h)) {
        return absl::InvalidArgumentError(
            "input_c must have the shape of input_h: " + ShapeOf(c).ToString() +
            " vs. " + ShapeOf(h).ToString());
      }
      args.c = layout_.TimeMajor(c);
    }
    TFPLUG_ASSIGN_OR_RETURN(args.x, ToDense(run, layout_.TimeMajor(x)));
    TFPLUG_ASSIGN_OR_RETURN(args.valid, FindValid(run, sizes));
    return args;
  }

  // Returns the view as a dense array: itself or a copy.
  absl::StatusOr<Operand> ToDense(OpRun& run, const Operand& view) const {
    const Operand dense = Operand::Dense(view.data, type_, ir::DimsOf(view));
    if (view.strides == dense.strides) return view;
    TFPLUG_ASSIGN_OR_RETURN(const Operand copy,
                            Allocate(run, ir::DimsOf(view)));
    TFPLUG_RETURN_IF_ERROR(Copy(run, view, copy));
    return copy;
  }
  absl::StatusOr<Operand> Allocate(OpRun& run,
                                   absl::Span<const int64_t> dims) const {
    return run.launcher().Allocate(type_, dims);
  }

  // Runs the primitive Recur for operands whose steps are in the order of time, or
  // from the last one to the first. Does nothing if there are none.
  static absl::Status Recur(OpRun& run, bool is_reverse, Operand a,
                            const Operand& b, const Operand& c,
                            const Expression& expression,
                            std::vector<Operand> inputs,
                            std::vector<Operand> outputs) {
    if (a.dim(0) == 0 || c.num_elements() == 0) return absl::OkStatus();
    if (is_reverse) {
      a = Reversed(a);
      for (std::vector<Operand>* views : {&inputs, &outputs}) {
        for (Operand& view : *views) view = Reversed(view);
      }
    }
    return run.launcher().Recur(a, b, c, expression, inputs, outputs);
  }

  RnnLayout layout_;
  DataType type_{};
  bool has_lengths_ = false, has_host_reserved_ = false, has_dropout_ = false;
  Expression is_valid_, copy_, keep_valid_, add_;

 private:
  static constexpr int kAtOnce = 8;  // lengths

  // The lengths of the sequences are in host memory.
  absl::StatusOr<Operand> FindValid(OpRun& run, const RnnSizes& sizes) const {
    const Operand all =
        Operand::Dense(nullptr, DataType::kBool, {sizes.time, sizes.batch});
    if (!has_lengths_) return ir::ScalarOf(DataType::kBool, 1, all);
    TFPLUG_ASSIGN_OR_RETURN(Ints lengths, run.GetVector(4));
    bool are_full = true;
    for (const int64_t length : lengths) {
      if (length < 0 || length > sizes.time) {
        return absl::InvalidArgumentError(
            absl::StrCat("sequence_lengths must be between 0 and the ",
                         sizes.time, " steps of the input, got ", length));
      }
      are_full = are_full && length == sizes.time;
    }
    if (static_cast<int64_t>(lengths.size()) != sizes.batch) {
      return absl::InvalidArgumentError(
          absl::StrCat("sequence_lengths must have an element for each of the ",
                       sizes.batch, " sequences, got ", lengths.size()));
    }
    if (are_full) return ir::ScalarOf(DataType::kBool, 1, all);
    TFPLUG_ASSIGN_OR_RETURN(const Operand on_device,
                            CopyToDevice(run, std::move(lengths)));
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand valid,
        run.launcher().Allocate(DataType::kBool, {sizes.time, sizes.batch}));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        is_valid_,
        {ir::IndexOf(valid, 0),
         ir::WithDim(ir::Range(on_device, 0, 0, sizes.batch), 0, sizes.time)},
        {valid}));
    return valid;
  }

  // Returns an array on the device, with up to kAtOnce - 1 more elements.
  absl::StatusOr<Operand> CopyToDevice(OpRun& run, Ints values) const {
    while (values.size() % kAtOnce != 0) values.push_back(0);
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand array,
        run.launcher().Allocate(DataType::kInt64,
                                {static_cast<int64_t>(values.size())}));
    std::vector<Operand> in, out;
    for (size_t i = 0; i < values.size(); ++i) {
      out.push_back(ir::Range(array, 0, static_cast<int64_t>(i),
                              static_cast<int64_t>(i) + 1));
      in.push_back(
          Operand::Scalar(DataType::kInt64, static_cast<uint64_t>(values[i])));
      in.back().AddDim(1, 0);
      if (in.size() < kAtOnce) continue;
      TFPLUG_RETURN_IF_ERROR(
          run.launcher().Map(copy_, absl::MakeSpan(in), absl::MakeSpan(out)));
      in.clear();
      out.clear();
    }
    return array;
  }
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_RNN_KERNEL_H_
