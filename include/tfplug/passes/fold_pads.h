// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_FOLD_PADS_H_
#define TFPLUG_PASSES_FOLD_PADS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/graph/constant.h"
#include "tfplug/ops/array.h"
#include "tfplug/ops/nn.h"
#include "tfplug/patterns/rules.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

namespace passes_internal {

// Returns the paddings of a Pad's 4 x 2 Const in the form of explicit_paddings;
// empty if they are not such a constant, pad the batch or channels, or are
// negative.
inline std::vector<int64_t> ImagePaddings(const PassContext& context,
                                          const Node& node,
                                          absl::string_view data_format) {
  const auto constant = context.ReadConstant(node);
  if (!constant.ok() || constant->shape() != Shape{4, 2}) return {};
  auto paddings = constant->GetIntegers();
  if (!paddings.ok()) return {};
  const size_t channels = data_format == "NHWC" ? 3 : 1;
  for (size_t i = 0; i < paddings->size(); ++i) {
    const bool is_image = i / 2 != 0 && i / 2 != channels;
    const int64_t padding = (*paddings)[i];
    if (padding < 0 || (padding > 0 && !is_image)) return {};
  }
  return *std::move(paddings);
}

template <class Conv, class CopyAttrs>
patterns::Rule FoldPadRule(const CopyAttrs& copy_attrs, int priority) {
  using namespace patterns;
  const Pattern x = Any("x"), w = Any("weights");
  const auto amounts = Match<ops::Const>().MayHaveOtherUses();
  const auto pad = Match<ops::Pad>(x, amounts);
  const auto conv = Match<Conv>(pad, w)
                        .Where(Conv::padding, "VALID")
                        .WhereOneOf(Conv::data_format, {"NHWC", "NCHW"});
  const auto paddings = [=](const Matched& m) {
    const auto format =
        m.node(conv).template GetAttr<std::string>("data_format");
    return ImagePaddings(m.context(), m.node(amounts), format.value_or(""));
  };
  return Rule(std::string("Pad + ") + Conv::kName, conv)
      .OnlyIf(
          "the paddings are constant, not negative, and only of rows and "
          "columns",
          [=](const Matched& m) { return !paddings(m).empty(); })
      .Priority(priority)
      .ReplaceBy(copy_attrs(New<Conv>(x, w), conv)
                     .Copy(conv, Conv::T_attr)
                     .Copy(conv, Conv::strides)
                     .Copy(conv, Conv::data_format)
                     .Copy(conv, Conv::dilations)
                     .Set(Conv::padding, "EXPLICIT")
                     .Set(Conv::explicit_paddings, paddings)
                     .RequireKernel());
}

}  // namespace passes_internal

// Folds a Pad into a Conv2D or DepthwiseConv2dNative with padding "VALID". The
// convolution gets padding "EXPLICIT", which the plug-in's kernels must
// implement, and the padded images are not stored. A Pad whose output a
// gradient needs is kept.
//
// For Conv2D, this rule runs before the fusion with a bias. For depthwise
// convolutions, it applies only to those that are not fused, because
// _FusedDepthwiseConv2dNative has no explicit paddings.
inline std::vector<patterns::Rule> FoldPadsRules() {
  std::vector<patterns::Rule> rules;
  rules.push_back(passes_internal::FoldPadRule<ops::Conv2D>(
      [](const auto& node, const auto& conv) {
        return node.Copy(conv, ops::Conv2D::use_cudnn_on_gpu);
      },
      /*priority=*/1));
  rules.push_back(passes_internal::FoldPadRule<ops::DepthwiseConv2dNative>(
      [](const auto& node, const auto&) { return node; },
      /*priority=*/-1));
  return rules;
}

class FoldPads : public patterns::RulesPass<FoldPadsRules> {};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_FOLD_PADS_H_
