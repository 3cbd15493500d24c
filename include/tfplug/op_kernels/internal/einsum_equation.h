// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_EINSUM_EQUATION_H_
#define TFPLUG_OP_KERNELS_INTERNAL_EINSUM_EQUATION_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// The name of a dimension: a letter, or a negative number for the dimensions of
// an ellipsis, of which -1 is the last.
using Label = int;
using Labels = absl::InlinedVector<Label, 8>;

inline bool HasLabel(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// An equation such as "ij,jk->ik", which names the dimensions of one or two
// inputs and of the output.
class EinsumEquation {
 public:
  // Fails with INVALID_ARGUMENT if the text is malformed.
  static absl::StatusOr<EinsumEquation> Parse(absl::string_view text);

  size_t num_inputs() const { return inputs_.size(); }

  // Returns the labels of each input and, last, of the output, with the
  // ellipsis expanded. The inputs have these ranks.
  absl::StatusOr<std::vector<Labels>> Expand(absl::Span<const int> ranks) const;

 private:
  static constexpr char kEllipsis = '.';

  static bool HasEllipsis(const std::string& labels) {
    return labels.find(kEllipsis) != std::string::npos;
  }
  // Returns whether `labels` contains only letters and at most one ellipsis.
  static bool IsReadable(const std::string& labels) {
    return std::count(labels.begin(), labels.end(), kEllipsis) <= 1 &&
           std::all_of(labels.begin(), labels.end(), [](char c) {
             return c == kEllipsis ||
                    absl::ascii_isalpha(static_cast<unsigned char>(c));
           });
  }
  // Replaces the ellipsis with its last `broadcast` labels.
  static Labels Spell(const std::string& labels, int broadcast) {
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

  // Letters, and at most one '.' that represents an ellipsis.
  std::vector<std::string> inputs_;
  std::string output_;
};

inline absl::StatusOr<EinsumEquation> EinsumEquation::Parse(
    absl::string_view text) {
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
      !std::all_of(equation.inputs_.begin(), equation.inputs_.end(),
                   IsReadable) ||
      !IsReadable(equation.output_)) {
    return absl::InvalidArgumentError(
        "the equation must have one or two inputs and an output, such as "
        "ij,jk->ik; it is " +
        std::string(text));
  }
  for (const char c : equation.output_) {
    const auto has = [c](const std::string& input) {
      return input.find(c) != std::string::npos;
    };
    if (c != kEllipsis &&
        std::none_of(equation.inputs_.begin(), equation.inputs_.end(), has)) {
      return absl::InvalidArgumentError(
          "label " + std::string(1, c) +
          " of the output is missing from the inputs of " + std::string(text));
    }
  }
  return equation;
}

inline absl::StatusOr<std::vector<Labels>> EinsumEquation::Expand(
    absl::Span<const int> ranks) const {
  std::vector<Labels> all;
  int broadcast = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const bool open = HasEllipsis(inputs_[i]);
    const int more =
        ranks[i] - static_cast<int>(inputs_[i].size()) + (open ? 1 : 0);
    if (more < 0 || (more > 0 && !open)) {
      return absl::InvalidArgumentError(
          "input " + std::to_string(i) + " has " + std::to_string(ranks[i]) +
          " dimensions, which does not fit " + inputs_[i]);
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

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_EINSUM_EQUATION_H_
