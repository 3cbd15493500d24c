// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_BATCH_NORM_H_
#define TFPLUG_BACKEND_OPS_BATCH_NORM_H_

#include <limits>
#include <string>

#include "tfplug/backend/ops/matmul.h"
#include "tfplug/backend/registrar.h"

#pragma GCC visibility push(hidden)

// FusedBatchNorm, V2 and V3, and their gradients. Statistics are of float.
namespace tfplug {
namespace internal {

constexpr DataType kStatistic = DataType::kFloat;

class BatchNormKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    is_v3_ = op.back() == '3';
    TFPLUG_ASSIGN_OR_RETURN(channels_first_, HasChannelsFirst(construction));
    TFPLUG_ASSIGN_OR_RETURN(is_training_,
                            construction.GetAttr<bool>("is_training"));
    TFPLUG_ASSIGN_OR_RETURN(const float epsilon,
                            construction.GetAttr<float>("epsilon"));
    epsilon_ = epsilon;
    TFPLUG_ASSIGN_OR_RETURN(type_, construction.GetAttr<DataType>("T"));
    return absl::OkStatus();
  }

 protected:
  int ChannelOf(const Operand& x) const {
    return channels_first_ ? 1 : x.rank - 1;
  }
  // Returns `x` as [channel, all others...].
  Operand ByChannel(const Operand& x) const {
    const int channel = ChannelOf(x);
    Operand view = x;
    view.rank = 0;
    view.AddDim(x.dim(channel), x.stride(channel));
    for (int d = 0; d < x.rank; ++d) {
      if (d != channel) view.AddDim(x.dim(d), x.stride(d));
    }
    return view;
  }
  // Returns a vector with an element for each channel, repeated as ByChannel.
  static Operand Repeated(const Operand& vector, const Operand& by_channel) {
    Operand view = vector;
    for (int d = 1; d < by_channel.rank; ++d) view.AddDim(by_channel.dim(d), 0);
    return view;
  }
  absl::Status CheckVectors(OpRun& run, const Operand& x, int begin,
                            int end) const {
    if (x.rank != 4 && x.rank != 5) {
      return absl::InvalidArgumentError("input must be 4 or 5-dimensional: " +
                                        ShapeOf(x).ToString());
    }
    for (int i = begin; i < end; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand vector, GetView(run, i));
      const bool is_unused = is_training_ && vector.num_elements() == 0;
      if (vector.rank != 1 ||
          (vector.dim(0) != x.dim(ChannelOf(x)) && !is_unused)) {
        return absl::InvalidArgumentError(
            "input " + std::to_string(i) +
            " must be a vector with one element for each channel of " +
            ShapeOf(x).ToString() + ", not " + ShapeOf(vector).ToString());
      }
    }
    return absl::OkStatus();
  }

  bool is_v3_ = false;
  bool channels_first_ = false;
  bool is_training_ = false;
  double epsilon_ = 0;
  DataType type_{};
};

class BatchNorm final : public BatchNormKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_RETURN_IF_ERROR(BatchNormKernel::Init(construction));
    double factor = 1;
    if (construction.HasAttr("exponential_avg_factor")) {
      TFPLUG_ASSIGN_OR_RETURN(
          factor, construction.GetAttr<float>("exponential_avg_factor"));
    }
    updates_ = factor != 1;
    const auto divide = [](Value sum, Value count) { return sum / count; };
    TFPLUG_ASSIGN_OR_RETURN(mean_.map, CastExpression(type_, kStatistic));
    TFPLUG_ASSIGN_OR_RETURN(
        mean_.finish,
        MakeExpression({kStatistic, kStatistic}, {kStatistic}, divide));
    TFPLUG_ASSIGN_OR_RETURN(
        variance_.map,
        MakeExpression({type_, kStatistic}, {kStatistic},
                       [](Value x, Value mean) { return Square(x - mean); }));
    variance_.finish = mean_.finish;
    TFPLUG_ASSIGN_OR_RETURN(
        normalize_,
        MakeExpression(
            {type_, kStatistic, kStatistic, kStatistic, kStatistic}, {type_},
            [&](Value x, Value scale, Value offset, Value mean,
                Value variance) {
              return (x - mean) * (Rsqrt(variance + epsilon_) * scale) + offset;
            }));
    // The variance of the population, and both statistics as moving averages.
    TFPLUG_ASSIGN_OR_RETURN(
        publish_,
        MakeExpression(
            {kStatistic, kStatistic, kStatistic, kStatistic}, {kStatistic},
            [&](Value value, Value count, Value is_variance, Value old) {
              const Value corrected = value * Select(is_variance == 0, 1,
                                                     count / Max(count - 1, 1));
              return updates_ ? (1 - factor) * old + factor * corrected
                              : corrected;
            }));
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_RETURN_IF_ERROR(CheckVectors(run, x, 1, 5));
    TFPLUG_ASSIGN_OR_RETURN(const Operand scale, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand offset, GetView(run, 2));
    TFPLUG_ASSIGN_OR_RETURN(const Operand old_mean, GetView(run, 3));
    TFPLUG_ASSIGN_OR_RETURN(const Operand old_variance, GetView(run, 4));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    const int64_t channels = x.dim(ChannelOf(x));
    std::array<Operand, 5> out;
    for (size_t i = 1; i < 5; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(
          out[i], run.AllocateOutput(static_cast<int>(i), {channels}));
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
    Operand mean = old_mean, variance = old_variance;
    const Operand all = ByChannel(x);
    if (is_training_) {
      const double count =
          static_cast<double>(x.num_elements()) / static_cast<double>(channels);
      const Operand n = ScalarOf(kStatistic, count, all);
      mean = out[3];
      variance = out[4];
      TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(mean_, {all, n}, {mean}));
      TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(
          variance_, {all, Repeated(mean, all), n}, {variance}));
      const Operand per_channel = ScalarOf(kStatistic, count, mean);
      TFPLUG_RETURN_IF_ERROR(
          run.launcher().Map(publish_,
                             {mean, per_channel, ScalarOf(kStatistic, 0, mean),
                              updates_ ? old_mean : mean},
                             {out[1]}));
      TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
          publish_,
          {variance, per_channel, ScalarOf(kStatistic, 1, mean),
           updates_ ? old_variance : variance},
          {out[2]}));
    } else {
      for (size_t i : {size_t{1}, size_t{3}}) {
        TFPLUG_RETURN_IF_ERROR(Copy(run, old_mean, out[i]));
        TFPLUG_RETURN_IF_ERROR(Copy(run, old_variance, out[i + 1]));
      }
    }
    return run.launcher().Map(normalize_,
                              {all, Repeated(scale, all), Repeated(offset, all),
                               Repeated(mean, all), Repeated(variance, all)},
                              {ByChannel(y)});
  }

 private:
  bool updates_ = false;
  Reduction mean_, variance_;
  Expression normalize_, publish_;
};

class BatchNormGrad final : public BatchNormKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_RETURN_IF_ERROR(BatchNormKernel::Init(construction));
    TFPLUG_ASSIGN_OR_RETURN(sum_, MakeReduction(
                                      ReduceKind::kSum, {type_}, kStatistic,
                                      [](Value dy) { return dy; }, kStatistic));
    TFPLUG_ASSIGN_OR_RETURN(
        products_,
        MakeReduction(
            ReduceKind::kSum, {type_, type_, kStatistic}, kStatistic,
            [](Value dy, Value x, Value mean) { return dy * (x - mean); },
            kStatistic));
    TFPLUG_ASSIGN_OR_RETURN(
        products_.finish, MakeExpression({kStatistic, kStatistic}, {kStatistic},
                                         [&](Value sum, Value variance) {
                                           return sum *
                                                  Rsqrt(variance + epsilon_);
                                         }));
    const DataType s = kStatistic;
    TFPLUG_ASSIGN_OR_RETURN(
        gradient_,
        MakeExpression(
            {type_, type_, s, s, s, s, s, s}, {type_},
            [&](Value dy, Value x, Value scale, Value mean, Value variance,
                Value dscale, Value doffset, Value count) {
              const Value deviation = Rsqrt(variance + epsilon_);
              if (!is_training_) return dy * (scale * deviation);
              const Value rest =
                  doffset / count + (x - mean) * (deviation * dscale / count);
              return (dy - rest) * (scale * deviation);
            }));
    return absl::OkStatus();
  }

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
    TFPLUG_RETURN_IF_ERROR(CheckVectors(run, x, 2, 5));
    TFPLUG_ASSIGN_OR_RETURN(const Operand scale, GetView(run, 2));
    TFPLUG_ASSIGN_OR_RETURN(const Operand mean, GetView(run, 3));
    TFPLUG_ASSIGN_OR_RETURN(const Operand variance, GetView(run, 4));
    const int64_t channels = x.dim(ChannelOf(x));
    TFPLUG_ASSIGN_OR_RETURN(const Operand dx,
                            run.AllocateOutput(0, ShapeOf(x)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand dscale,
                            run.AllocateOutput(1, {channels}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand doffset,
                            run.AllocateOutput(2, {channels}));
    for (int i : {3, 4}) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand unused, run.AllocateOutput(i, {}));
      TFPLUG_RETURN_IF_ERROR(Fill(run, unused, 0));
    }
    if (x.num_elements() == 0) {
      TFPLUG_RETURN_IF_ERROR(Fill(run, dscale, 0));
      return Fill(run, doffset, 0);
    }
    const Operand dys = ByChannel(dy), xs = ByChannel(x);
    const Operand means = Repeated(mean, xs);
    TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(sum_, {dys}, {doffset}));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(
        products_, {dys, xs, means, Repeated(variance, xs)}, {dscale}));
    const double count =
        static_cast<double>(x.num_elements()) / static_cast<double>(channels);
    return run.launcher().Map(
        gradient_,
        {dys, xs, Repeated(scale, xs), means, Repeated(variance, xs),
         Repeated(dscale, xs), Repeated(doffset, xs),
         ScalarOf(kStatistic, count, xs)},
        {ByChannel(dx)});
  }

 private:
  Reduction sum_, products_;
  Expression gradient_;
};

}  // namespace internal

inline void BatchNormOps(const Registrar& registrar) {
  using namespace internal;  // NOLINT
  const uint64_t types =
      SetOf(DataType::kFloat, DataType::kHalf, DataType::kBfloat16);
  const uint64_t v1 = SetOf(DataType::kFloat);
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

#endif  // TFPLUG_BACKEND_OPS_BATCH_NORM_H_
