// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_FUSED_H_
#define TFPLUG_OP_KERNELS_FUSED_H_

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/op_kernels/conv.h"
#include "tfplug/op_kernels/matmul.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// _FusedConv2D, _FusedDepthwiseConv2dNative and _FusedMatMul, which only graph
// passes create (passes/fusion.h).
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
    TFPLUG_RETURN_IF_ERROR(GetIfPresent(construction, "epsilon", epsilon_));
    TFPLUG_RETURN_IF_ERROR(
        GetIfPresent(construction, "leakyrelu_alpha", alpha_));
    auto name = names.begin();
    if (name != names.end()) {
      has_bias_ = *name == "BiasAdd";
      normalizes_ = *name == "FusedBatchNorm";
      if (has_bias_ || normalizes_) ++name;
    }
    if (name != names.end() && FindActivation(*name)) ++name;
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
    TFPLUG_ASSIGN_OR_RETURN(const DataType type,
                            construction.GetAttr<DataType>("T"));
    computed_ = ComputeType(type);
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

  // The epilogue of one run, and its vectors.
  struct Arguments {
    Operand scale, shift;
    Epilogue epilogue;
  };
  // Reads the inputs from index 2 on, vectors of `depth` elements. Folds a
  // normalization into scale and shift.
  absl::Status Prepare(OpRun& run, int64_t depth, Arguments& arguments) const {
    Epilogue& epilogue = arguments.epilogue;
    epilogue.activation = activation_;
    epilogue.alpha = alpha_;
    if (has_bias_) {
      TFPLUG_ASSIGN_OR_RETURN(arguments.shift, GetVector(run, 2, depth));
      epilogue.shift = &arguments.shift;
    }
    if (!normalizes_) return absl::OkStatus();
    std::array<Operand, 4> vectors;  // scale, offset, mean, variance
    for (int i = 0; i < 4; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(vectors[static_cast<size_t>(i)],
                              GetVector(run, 2 + i, depth));
    }
    for (Operand* vector : {&arguments.scale, &arguments.shift}) {
      TFPLUG_ASSIGN_OR_RETURN(*vector,
                              run.launcher().Allocate(computed_, {depth}));
    }
    epilogue.scale = &arguments.scale;
    epilogue.shift = &arguments.shift;
    return run.launcher().Map(
        fold_,
        {vectors[0], vectors[1], vectors[2], vectors[3],
         ir::ScalarOf(DataType::kFloat, epsilon_, vectors[0])},
        {arguments.scale, arguments.shift});
  }

 private:
  static absl::Status GetIfPresent(KernelConstruction& construction,
                                   const char* name, double& value) {
    if (!construction.HasAttr(name)) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(value, construction.GetAttr<float>(name));
    return absl::OkStatus();
  }
  bool FindActivation(const std::string& name) {
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
      activation_ = activation;
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
  ActivationKind activation_ = ActivationKind::kNone;
  double alpha_ = 0.2, epsilon_ = 1e-4;
  DataType computed_{};
  Expression fold_;
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
    FusedOpsAttr::Arguments arguments;
    TFPLUG_RETURN_IF_ERROR(
        fused_.Prepare(run, output.dim(output.rank - 1), arguments));
    return run.launcher().FusedConv(conv, image, filter, arguments.epilogue,
                                    output);
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
    FusedOpsAttr::Arguments arguments;
    TFPLUG_RETURN_IF_ERROR(fused_.Prepare(run, c.dim(1), arguments));
    return run.launcher().FusedMatMul(a, b, arguments.epilogue, c);
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

#endif  // TFPLUG_OP_KERNELS_FUSED_H_
