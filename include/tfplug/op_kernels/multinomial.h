// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_MULTINOMIAL_H_
#define TFPLUG_OP_KERNELS_MULTINOMIAL_H_

#include <mutex>
#include <random>
#include <string>

#include "tfplug/op_kernels/random.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace op_kernels_internal {

// Multinomial and StatelessMultinomial: draws classes with the probabilities
// softmax(logits). A class is the number of cumulative probabilities that are
// not above a uniform number, of double as on TensorFlow's CPU.
class MultinomialKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    is_stateless_ = op == "StatelessMultinomial";
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    TFPLUG_ASSIGN_OR_RETURN(const auto output,
                            construction.GetAttr<DataType>("output_dtype"));
    if (!is_stateless_) {
      TFPLUG_ASSIGN_OR_RETURN(state_, InitialState(construction));
    }
    const auto is_finite = [](Value x) { return Abs(x) < Infinity(x); };
    TFPLUG_ASSIGN_OR_RETURN(largest_, primitives::MakeReduction(
                                          ReduceKind::kMax, {type}, kDouble,
                                          [&](Value x) {
                                            const Value wide = Cast(x, kDouble);
                                            return Select(is_finite(wide), wide,
                                                          -Infinity(wide));
                                          },
                                          kDouble));
    TFPLUG_ASSIGN_OR_RETURN(
        weight_,
        MakeExpression({type, kDouble}, {kDouble}, [&](Value x, Value largest) {
          const Value wide = Cast(x, kDouble);
          return Select(is_finite(wide), Exp(wide - largest), 0);
        }));
    // The uniform number of a sample: a half of a block of random words.
    TFPLUG_ASSIGN_OR_RETURN(
        number_,
        MakeExpression(
            {kUint64, kUint64, kUint64, kUint64, kDouble}, {kDouble},
            [](Value key, Value low, Value high, Value sample, Value total) {
              const Words w = PhiloxWords(key, low, high, sample / 2);
              return Select(sample % 2 == 0, UniformOf(kDouble, w[0], w[1]),
                            UniformOf(kDouble, w[2], w[3])) *
                     total;
            }));
    TFPLUG_ASSIGN_OR_RETURN(
        class_, primitives::MakeReduction(
                    ReduceKind::kSum, {kDouble, kDouble}, DataType::kInt64,
                    [](Value cumulative, Value number) {
                      return Cast(cumulative <= number, DataType::kInt64);
                    },
                    output));
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand logits, GetView(run, 0));
    if (logits.rank != 2) {
      return absl::InvalidArgumentError(
          "logits should be a matrix, got shape " + ShapeOf(logits).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(
        const int64_t samples,
        run.GetScalar(1, "num_samples should be a scalar, got shape "));
    if (samples < 0) {
      return absl::InvalidArgumentError(
          "num_samples should be nonnegative, got " + std::to_string(samples));
    }
    const int64_t batch = logits.dim(0), classes = logits.dim(1);
    if (classes == 0 && batch > 0 && samples > 0) {
      return absl::InvalidArgumentError(
          "num_classes should be positive, got 0");
    }
    PhiloxState state;
    if (is_stateless_) {
      TFPLUG_ASSIGN_OR_RETURN(state, GetSeed(run, 2));
    } else {
      const std::lock_guard<std::mutex> lock(mutex_);
      state = state_;
      // Every sample takes half a block.
      Skip(state_, static_cast<uint64_t>(batch * ((samples + 1) / 2)));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, {batch, samples}));
    if (y.num_elements() == 0) return absl::OkStatus();
    Launcher& launcher = run.launcher();
    TFPLUG_ASSIGN_OR_RETURN(const Operand largest,
                            launcher.Allocate(kDouble, {batch}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand weights,
                            launcher.Allocate(kDouble, {batch, classes}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand sums,
                            launcher.Allocate(kDouble, {batch, classes}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand numbers,
                            launcher.Allocate(kDouble, {batch, samples}));
    TFPLUG_RETURN_IF_ERROR(launcher.Reduce(largest_, {logits}, {largest}));
    TFPLUG_RETURN_IF_ERROR(launcher.Map(
        weight_, {logits, ir::WithDim(largest, 1, classes)}, {weights}));
    TFPLUG_RETURN_IF_ERROR(launcher.Scan(ReduceKind::kSum, weights, sums));
    const auto word = [&](uint64_t value) {
      return Uint64Scalar(value).AddDim(batch, 0).AddDim(samples, 0);
    };
    Operand total = ir::Range(sums, 1, classes - 1, classes);
    total.dim(1) = samples;
    total.stride(1) = 0;
    TFPLUG_RETURN_IF_ERROR(launcher.Map(
        number_,
        {word(state.key), word(state.low), word(state.high),
         Operand::Index(0, kUint64).AddDim(batch, samples).AddDim(samples, 1),
         total},
        {numbers}));
    return launcher.Reduce(
        class_,
        {ir::WithDim(sums, 1, samples), ir::WithDim(numbers, 2, classes)}, {y});
  }

 private:
  static constexpr DataType kDouble = DataType::kDouble,
                            kUint64 = DataType::kUint64;

  bool is_stateless_ = false;
  Expression weight_, number_;
  Reduction largest_, class_;
  std::mutex mutex_;
  PhiloxState state_;
};

}  // namespace op_kernels_internal

inline void MultinomialOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  if (registrar.Supported(kernel::SetOf(DataType::kDouble)).empty()) return;
  const auto def = [](const char* op) {
    return KernelDef(op)
        .TypeConstraint<int32_t, int64_t>("output_dtype")
        .HostMemory("num_samples");
  };
  registrar.Add<MultinomialKernel>(def("Multinomial"), "T", kFloatTypes);
  registrar.Add<MultinomialKernel>(
      def("StatelessMultinomial").HostMemory("seed"), "T", kFloatTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_MULTINOMIAL_H_
