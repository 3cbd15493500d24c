// SPDX-License-Identifier: Apache-2.0
#include "kernels/einsum_equation.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace cpu_sim {
namespace {

constexpr char kEllipsis = '.';

bool HasEllipsis(const std::string& labels) {
  return labels.find(kEllipsis) != std::string::npos;
}

// Returns whether `labels` contains only letters and at most one ellipsis.
bool IsReadable(const std::string& labels) {
  return absl::c_count(labels, kEllipsis) <= 1 &&
         absl::c_all_of(labels, [](char c) {
           return c == kEllipsis || absl::ascii_isalpha(c);
         });
}

// Replaces the ellipsis with its last `broadcast` labels.
Labels Spell(const std::string& labels, int broadcast) {
  Labels spelt;
  for (const char c : labels) {
    if (c == kEllipsis) {
      for (int i = -broadcast; i < 0; ++i) spelt.push_back(i);
    } else {
      spelt.push_back(c);
    }
  }
  return spelt;
}

}  // namespace

absl::StatusOr<EinsumEquation> EinsumEquation::Parse(absl::string_view text) {
  std::string plain(text);
  plain.erase(std::remove(plain.begin(), plain.end(), ' '), plain.end());
  // Represents an ellipsis by one dot; other dots are rejected before that.
  const bool has_dots =
      absl::StrReplaceAll(plain, {{"...", ""}}).find('.') != std::string::npos;
  plain = absl::StrReplaceAll(plain, {{"...", "."}});
  const std::vector<std::string> sides = absl::StrSplit(plain, "->");
  EinsumEquation equation;
  if (sides.size() == 2) {
    equation.inputs_ = absl::StrSplit(sides[0], ',');
    equation.output_ = sides[1];
  }
  if (has_dots || sides.size() != 2 || equation.inputs_.size() > 2 ||
      !absl::c_all_of(equation.inputs_, IsReadable) ||
      !IsReadable(equation.output_)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the equation must have one or two inputs and an output, such as "
        "ij,jk->ik; it is ",
        text));
  }
  for (const char c : equation.output_) {
    if (c == kEllipsis) continue;
    if (absl::c_none_of(equation.inputs_, [c](const std::string& input) {
          return absl::StrContains(input, c);
        })) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", std::string(1, c),
                       " of the output is missing from the inputs of ", text));
    }
  }
  return equation;
}

absl::StatusOr<std::vector<Labels>> EinsumEquation::Expand(
    const std::vector<int>& ranks) const {
  std::vector<Labels> all;
  int broadcast = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const bool open = HasEllipsis(inputs_[i]);
    const int more = ranks[i] - static_cast<int>(inputs_[i].size()) + open;
    if (more < 0 || (more > 0 && !open)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " has ", ranks[i],
                       " dimensions, which does not fit ", inputs_[i]));
    }
    broadcast = std::max(broadcast, more);
    all.push_back(Spell(inputs_[i], more));
  }
  if (broadcast > 0 && !HasEllipsis(output_)) {
    return absl::InvalidArgumentError(
        "the inputs have an ellipsis, but the output has none");
  }
  all.push_back(Spell(output_, broadcast));
  return all;
}

LabeledTensor::LabeledTensor(Labels labels, DimsView shape)
    : labels_(std::move(labels)),
      shape_(shape.begin(), shape.end()),
      strides_(DenseStrides(shape)) {}

bool LabeledTensor::Has(Label label) const {
  return absl::c_linear_search(labels_, label);
}

int64_t LabeledTensor::StrideOf(Label label) const {
  int64_t stride = 0;
  for (size_t d = 0; d < labels_.size(); ++d) {
    if (labels_[d] == label && shape_[d] != 1) stride += strides_[d];
  }
  return stride;
}

Dims LabeledTensor::StridesOf(const Labels& labels) const {
  Dims strides;
  for (const Label label : labels) strides.push_back(StrideOf(label));
  return strides;
}

absl::StatusOr<Dims> SizesOf(const Labels& labels,
                             const std::vector<LabeledTensor>& tensors) {
  Dims sizes;
  for (const Label label : labels) {
    int64_t size = -1;
    for (const LabeledTensor& tensor : tensors) {
      for (size_t d = 0; d < tensor.labels().size(); ++d) {
        if (tensor.labels()[d] != label) continue;
        const int64_t here = tensor.shape()[d];
        const bool repeats = label < 0 && (size == 1 || here == 1);
        if (size >= 0 && here != size && !repeats) {
          return absl::InvalidArgumentError(
              absl::StrCat("the same label has sizes ", size, " and ", here));
        }
        size = size < 0 || size == 1 ? here : here == 1 ? size : here;
      }
    }
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace cpu_sim
