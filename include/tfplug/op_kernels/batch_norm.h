// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_BATCH_NORM_H_
#define TFPLUG_OP_KERNELS_BATCH_NORM_H_

#include <array>
#include <limits>
#include <string>

#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/window.h"

#pragma GCC visibility push(hidden)

// FusedBatchNorm, V2 and V3, and their gradients. Statistics are of float.
namespace tfplug {
namespace op_kernels_internal {

class BatchNormKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    is_v3_ = op.back() == '3';
    TFPLUG_ASSIGN_OR_RETURN(channels_first_, HasChannelsFirst(construction));
    TFPLUG_ASSIGN_OR_RETURN(norm_.is_training,
                            construction.GetAttr<bool>("is_training"));
    TFPLUG_ASSIGN_OR_RETURN(const float epsilon,
                            construction.GetAttr<float>("epsilon"));
    norm_.epsilon = epsilon;
    if (construction.HasAttr("exponential_avg_factor")) {
      TFPLUG_ASSIGN_OR_RETURN(
          const float factor,
          construction.GetAttr<float>("exponential_avg_factor"));
      norm_.average_factor = factor;
    }
    return absl::OkStatus();
  }

 protected:
  // Returns an image with its channels last.
  Operand Image(const Operand& view) const {
    return ChannelsLast(view, channels_first_);
  }
  int64_t ChannelsOf(const Operand& x) const {
    return x.dim(channels_first_ ? 1 : x.rank - 1);
  }
  absl::Status CheckImage(const Operand& x) const {
    if (x.rank == 4 || x.rank == 5) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "input must be 4-dimensional or 5-dimensional: " +
        ShapeOf(x).ToString());
  }
  // Returns input `i`, a vector with an element for each channel of x, or, with
  // `may_be_empty`, none.
  absl::StatusOr<Operand> GetVector(OpRun& run, int i, const Operand& x,
                                    bool may_be_empty = false) const {
    TFPLUG_ASSIGN_OR_RETURN(const Operand vector, GetView(run, i));
    if (vector.rank == 1 && (vector.dim(0) == ChannelsOf(x) ||
                             (may_be_empty && vector.dim(0) == 0))) {
      return vector;
    }
    if (vector.rank != 1) {
      // The forward op has these names; its gradient has others at 3 and 4.
      const char* const names[] = {"scale", "offset", "estimated_mean",
                                   "estimated_variance"};
      const bool is_named = i >= 1 && i <= 4;
      return absl::InvalidArgumentError(
          (is_named ? names[i - 1] : "a vector of channels") +
          std::string(" must be 1-dimensional") + ShapeOf(vector).ToString());
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "input ", i, " must be a vector with one element for each channel of ",
        ShapeOf(x).ToString(), ", not ", ShapeOf(vector).ToString()));
  }

  bool is_v3_ = false;
  bool channels_first_ = false;
  BatchNormalization norm_;
};

class BatchNorm final : public BatchNormKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_RETURN_IF_ERROR(CheckImage(x));
    std::array<Operand, 5> in;
    // The moving statistics, inputs 3 and 4, may be absent.
    const bool ignores_old = norm_.is_training && norm_.average_factor == 1;
    for (int i = 1; i < 5; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(in[static_cast<size_t>(i)],
                              GetVector(run, i, x, i > 2 && ignores_old));
    }
    const auto& [unused, scale, offset, mean, variance] = in;
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    std::array<Operand, 5> out;
    for (int i = 1; i < 5; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(out[static_cast<size_t>(i)],
                              run.AllocateOutput(i, {ChannelsOf(x)}));
    }
    if (is_v3_) {
      TFPLUG_RETURN_IF_ERROR(run.AllocateOutput(5, {0}).status());
    }
    if (x.num_elements() == 0) {
      for (size_t i = 1; i < 5; ++i) {
        TFPLUG_RETURN_IF_ERROR(
            Fill(run, out[i], std::numeric_limits<double>::quiet_NaN()));
      }
      return absl::OkStatus();
    }
    if (norm_.is_training) {
      return run.launcher().BatchNormTraining(
          norm_, {Image(x), scale, offset, mean, variance, Image(y), out[1],
                  out[2], out[3], out[4]});
    }
    for (size_t i : {size_t{1}, size_t{3}}) {
      TFPLUG_RETURN_IF_ERROR(Copy(run, mean, out[i]));
      TFPLUG_RETURN_IF_ERROR(Copy(run, variance, out[i + 1]));
    }
    return run.launcher().BatchNormInference(
        norm_, {Image(x), scale, offset, mean, variance, Image(y)});
  }
};

class BatchNormGrad final : public BatchNormKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand dy, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 1));
    if (ShapeOf(dy) != ShapeOf(x)) {
      return absl::InvalidArgumentError(
          "x and y_backprop must have same shape, "
          "but x has shape " +
          ShapeOf(x).ToString() + " and y_backprop has shape " +
          ShapeOf(dy).ToString());
    }
    TFPLUG_RETURN_IF_ERROR(CheckImage(x));
    TFPLUG_ASSIGN_OR_RETURN(const Operand scale, GetVector(run, 2, x));
    TFPLUG_ASSIGN_OR_RETURN(const Operand mean, GetVector(run, 3, x));
    TFPLUG_ASSIGN_OR_RETURN(const Operand variance, GetVector(run, 4, x));
    TFPLUG_ASSIGN_OR_RETURN(const Operand dx,
                            run.AllocateOutput(0, ShapeOf(x)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand dscale,
                            run.AllocateOutput(1, {ChannelsOf(x)}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand doffset,
                            run.AllocateOutput(2, {ChannelsOf(x)}));
    // The moving statistics have no gradient.
    for (int i : {3, 4}) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand unused, run.AllocateOutput(i, {}));
      TFPLUG_RETURN_IF_ERROR(Fill(run, unused, 0));
    }
    if (x.num_elements() == 0) {
      TFPLUG_RETURN_IF_ERROR(Fill(run, dscale, 0));
      return Fill(run, doffset, 0);
    }
    return run.launcher().BatchNormGradient(
        norm_, {Image(dy), Image(x), scale, mean, variance, Image(dx), dscale,
                doffset});
  }
};

}  // namespace op_kernels_internal

inline void BatchNormOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  const uint64_t types =
      kernel::SetOf(DataType::kFloat, DataType::kHalf, DataType::kBfloat16);
  const uint64_t v1 = kernel::SetOf(DataType::kFloat);
  registrar.Add<BatchNorm>(KernelDef("FusedBatchNorm"), "T", v1);
  registrar.Add<BatchNormGrad>(KernelDef("FusedBatchNormGrad"), "T", v1);
  for (const char* op : {"FusedBatchNormV2", "FusedBatchNormV3"}) {
    registrar.Add<BatchNorm>(KernelDef(op).TypeConstraint<float>("U"), "T",
                             types);
  }
  for (const char* op : {"FusedBatchNormGradV2", "FusedBatchNormGradV3"}) {
    registrar.Add<BatchNormGrad>(KernelDef(op).TypeConstraint<float>("U"), "T",
                                 types);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_BATCH_NORM_H_
