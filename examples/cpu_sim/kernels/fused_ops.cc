// SPDX-License-Identifier: Apache-2.0
#include "kernels/fused_ops.h"

#include <tfplug/base/status_macros.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/window.h"

namespace cpu_sim {
namespace {

// Finds an activation by its name in fused_ops.
bool FindActivation(const std::string& name, Activation* activation) {
  static constexpr std::pair<const char*, Activation> kActivations[] = {
      {"Relu", Activation::kRelu}, {"Relu6", Activation::kRelu6},
      {"Elu", Activation::kElu},   {"LeakyRelu", Activation::kLeakyRelu},
      {"Tanh", Activation::kTanh}, {"Sigmoid", Activation::kSigmoid},
  };
  for (const auto& [known, value] : kActivations) {
    if (name != known) continue;
    *activation = value;
    return true;
  }
  return false;
}

// Reads an attribute that these ops lack in older releases.
absl::Status GetIfPresent(const tfplug::KernelConstruction& construction,
                          const char* name, float* value) {
  if (!construction.HasAttr(name)) return absl::OkStatus();
  TFPLUG_ASSIGN_OR_RETURN(*value, construction.GetAttr<float>(name));
  return absl::OkStatus();
}

}  // namespace

absl::Status FusedOps::Init(const tfplug::KernelConstruction& construction) {
  TFPLUG_ASSIGN_OR_RETURN(
      const auto names,
      construction.GetAttr<std::vector<std::string>>("fused_ops"));
  TFPLUG_ASSIGN_OR_RETURN(const int64_t num_args,
                          construction.GetAttr<int64_t>("num_args"));
  epsilon_ = 1e-4f;
  alpha_ = 0.2f;
  TFPLUG_RETURN_IF_ERROR(GetIfPresent(construction, "epsilon", &epsilon_));
  TFPLUG_RETURN_IF_ERROR(
      GetIfPresent(construction, "leakyrelu_alpha", &alpha_));

  auto name = names.begin();
  if (name != names.end()) {
    has_bias_ = *name == "BiasAdd";
    normalizes_ = *name == "FusedBatchNorm";
    if (has_bias_ || normalizes_) ++name;
  }
  if (name != names.end() && FindActivation(*name, &activation_)) ++name;
  if (name != names.end()) {
    return absl::UnimplementedError(
        absl::StrCat("this device does not implement the fused_ops [",
                     absl::StrJoin(names, ","), "]"));
  }
  const int64_t want = has_bias_ ? 1 : normalizes_ ? 4 : 0;
  if (num_args != want) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_args must be ", want, " for the fused_ops [",
                     absl::StrJoin(names, ","), "], not ", num_args));
  }
  return absl::OkStatus();
}

absl::StatusOr<FusedOps::Arguments> FusedOps::Prepare(
    tfplug::KernelContext& context, int first, int64_t depth,
    Stream& stream) const {
  const tfplug::Shape channels{depth};
  Arguments arguments;
  if (has_bias_) {
    TFPLUG_ASSIGN_OR_RETURN(arguments.holder, context.GetInput(first));
    TFPLUG_RETURN_IF_ERROR(
        CheckShape("bias", arguments.holder.shape(), channels));
    arguments.shift = arguments.holder.flat<float>();
  }
  if (!normalizes_) return arguments;

  std::array<tfplug::Tensor, 4> vectors;  // scale, offset, mean, variance
  for (int i = 0; i < 4; ++i) {
    TFPLUG_ASSIGN_OR_RETURN(vectors[i], context.GetInput(first + i));
    TFPLUG_RETURN_IF_ERROR(CheckShape("an argument of FusedBatchNorm",
                                      vectors[i].shape(), channels));
  }
  TFPLUG_ASSIGN_OR_RETURN(
      arguments.holder,
      context.AllocateTemp(tfplug::DataType::kFloat, {2, depth}));
  const absl::Span<float> both = arguments.holder.flat<float>();
  arguments.scale = both.first(static_cast<size_t>(depth));
  arguments.shift = both.subspan(static_cast<size_t>(depth));
  TFPLUG_RETURN_IF_ERROR(
      stream.Launch(Simd().batch_norm.fold, BatchNorm{0, depth, epsilon_, 1},
                    vectors[0].flat<float>(), vectors[1].flat<float>(),
                    vectors[2].flat<float>(), vectors[3].flat<float>(),
                    arguments.scale, arguments.shift));
  return arguments;
}

}  // namespace cpu_sim
