// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_FUSED_PRODUCTS_H_
#define TFPLUG_OP_KERNELS_FUSED_PRODUCTS_H_

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "tfplug/op_kernels/conv.h"
#include "tfplug/op_kernels/matmul.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/primitives/epilogue.h"

#pragma GCC visibility push(hidden)

// _FusedConv2D, _FusedDepthwiseConv2dNative and _FusedMatMul, which only graph
// passes create (passes/fusion_rules.h).
namespace tfplug {
namespace op_kernels_internal {

// The attribute fused_ops: an optional BiasAdd or (inference) FusedBatchNorm,
// followed by an optional activation.
class FusedOpsAttr {
 public:
  absl::Status Init(KernelConstruction& construction) {
    TFPLUG_ASSIGN_OR_RETURN(
        const auto names,
        construction.GetAttr<std::vector<std::string>>("fused_ops"));
    TFPLUG_ASSIGN_OR_RETURN(const int64_t num_args,
                            construction.GetAttr<int32_t>("num_args"));
    // Some of these ops lack them in older releases.
    double alpha = 0.2;
    TFPLUG_RETURN_IF_ERROR(GetIfPresent(construction, "epsilon", epsilon_));
    TFPLUG_RETURN_IF_ERROR(
        GetIfPresent(construction, "leakyrelu_alpha", alpha));
    ActivationKind activation = ActivationKind::kNone;
    auto name = names.begin();
    if (name != names.end()) {
      has_bias_ = *name == "BiasAdd";
      normalizes_ = *name == "FusedBatchNorm";
      if (has_bias_ || normalizes_) ++name;
    }
    if (name != names.end() && FindActivation(*name, activation)) ++name;
    std::string all;
    for (const std::string& each : names) {
      all += (all.empty() ? "" : ",") + each;
    }
    if (name != names.end()) {
      return absl::UnimplementedError(
          "this device does not implement the fused_ops [" + all + "]");
    }
    const int64_t want = has_bias_ ? 1 : normalizes_ ? 4 : 0;
    if (num_args != want) {
      return absl::InvalidArgumentError(
          "num_args must be " + std::to_string(want) + " for the fused_ops [" +
          all + "], not " + std::to_string(num_args));
    }
    constexpr DataType s = DataType::kFloat;
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    computed_ = ComputeType(type);
    TFPLUG_ASSIGN_OR_RETURN(
        expression_, MakeEpilogue(type, normalizes_ ? computed_ : DataType(0),
                                  has_bias_     ? type
                                  : normalizes_ ? computed_
                                                : DataType(0),
                                  activation, alpha));
    TFPLUG_ASSIGN_OR_RETURN(
        fold_,
        MakeExpression(
            {type, type, type, type, s}, {computed_, computed_},
            [](Value scale, Value offset, Value mean, Value variance,
               Value epsilon) {
              const Value factor =
                  Rsqrt(variance + Cast(epsilon, variance.type())) * scale;
              return std::array<Value, 2>{factor, offset - mean * factor};
            }));
    return absl::OkStatus();
  }

  // Computes activation(product * scale + shift).
  const Expression& expression() const { return expression_; }

  // Returns the inputs of the expression after the product, from the vectors
  // that are inputs from index 2 on. Folds a normalization into scale and shift.
  using Vectors = absl::InlinedVector<Operand, 2>;
  absl::StatusOr<Vectors> Prepare(OpRun& run, const Operand& product) const {
    const int64_t depth = product.dim(product.rank - 1);
    Vectors result;
    if (has_bias_) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand shift, GetVector(run, 2, depth));
      result.push_back(RepeatVector(shift, product));
    }
    if (!normalizes_) return result;
    std::array<Operand, 4> vectors;  // scale, offset, mean, variance
    for (int i = 0; i < 4; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(vectors[static_cast<size_t>(i)],
                              GetVector(run, 2 + i, depth));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand scale,
                            run.launcher().Allocate(computed_, {depth}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand shift,
                            run.launcher().Allocate(computed_, {depth}));
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        fold_,
        {vectors[0], vectors[1], vectors[2], vectors[3],
         ir::ScalarOf(DataType::kFloat, epsilon_, vectors[0])},
        {scale, shift}));
    for (const Operand& vector : {scale, shift}) {
      result.push_back(RepeatVector(vector, product));
    }
    return result;
  }

 private:
  static absl::Status GetIfPresent(KernelConstruction& construction,
                                   const char* name, double& value) {
    if (!construction.HasAttr(name)) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(value, construction.GetAttr<float>(name));
    return absl::OkStatus();
  }
  static bool FindActivation(const std::string& name, ActivationKind& kind) {
    static constexpr std::pair<const char*, ActivationKind> kActivations[] = {
        {"Relu", ActivationKind::kRelu},
        {"Relu6", ActivationKind::kRelu6},
        {"Elu", ActivationKind::kElu},
        {"LeakyRelu", ActivationKind::kLeakyRelu},
        {"Tanh", ActivationKind::kTanh},
        {"Sigmoid", ActivationKind::kSigmoid},
    };
    for (const auto& [known, activation] : kActivations) {
      if (name != known) continue;
      kind = activation;
      return true;
    }
    return false;
  }
  static absl::StatusOr<Operand> GetVector(OpRun& run, int i, int64_t depth) {
    TFPLUG_ASSIGN_OR_RETURN(const Operand vector, GetView(run, i));
    if (vector.rank == 1 && vector.dim(0) == depth) return vector;
    return absl::InvalidArgumentError(
        "input " + std::to_string(i) + " must be a vector of " +
        std::to_string(depth) + " elements, one for each output channel, not " +
        ShapeOf(vector).ToString());
  }

  bool has_bias_ = false;
  bool normalizes_ = false;
  double epsilon_ = 1e-4;
  DataType computed_{};
  Expression expression_, fold_;
};

class FusedConv final : public Conv {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_RETURN_IF_ERROR(fused_.Init(construction));
    return Conv::Init(construction);
  }

 protected:
  absl::Status Convolve(OpRun& run, const Convolution& conv,
                        const Operand& image, const Operand& filter,
                        const Operand& output) override {
    TFPLUG_ASSIGN_OR_RETURN(const auto vectors, fused_.Prepare(run, output));
    return run.launcher().ConvMap(conv, image, filter, fused_.expression(),
                                  vectors, absl::MakeConstSpan(&output, 1));
  }

 private:
  FusedOpsAttr fused_;
};

class FusedMatMul final : public MatMulKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_RETURN_IF_ERROR(fused_.Init(construction));
    return MatMulKernel::Init(construction);
  }

 protected:
  absl::Status Multiply(OpRun& run, const Operand& a, const Operand& b,
                        const Operand& c) override {
    TFPLUG_ASSIGN_OR_RETURN(const auto vectors, fused_.Prepare(run, c));
    return run.launcher().MatMulMap(a, b, fused_.expression(), vectors,
                                    absl::MakeConstSpan(&c, 1));
  }

 private:
  FusedOpsAttr fused_;
};

}  // namespace op_kernels_internal

inline void FusedOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  for (const char* op : {"_FusedConv2D", "_FusedDepthwiseConv2dNative"}) {
    registrar.Add<FusedConv>(KernelDef(op), "T", kFloatTypes);
  }
  registrar.Add<FusedMatMul>(KernelDef("_FusedMatMul"), "T", kFloatTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_FUSED_PRODUCTS_H_
