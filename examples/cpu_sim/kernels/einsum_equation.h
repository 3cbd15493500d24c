// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_EINSUM_EQUATION_H_
#define CPU_SIM_KERNELS_EINSUM_EQUATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/loop.h"

namespace cpu_sim {

// The name of a dimension: a letter, or a negative number for the dimensions of
// an ellipsis, of which -1 is the last.
using Label = int;
using Labels = absl::InlinedVector<Label, 8>;

// An equation such as "ij,jk->ik", which names the dimensions of one or two
// inputs and of the output.
class EinsumEquation {
 public:
  // Returns INVALID_ARGUMENT if the text is malformed.
  static absl::StatusOr<EinsumEquation> Parse(absl::string_view text);

  size_t num_inputs() const { return inputs_.size(); }

  // Returns the labels of each input and, last, of the output, with the
  // ellipsis expanded. The inputs have these `ranks`.
  absl::StatusOr<std::vector<Labels>> Expand(
      const std::vector<int>& ranks) const;

 private:
  // Letters, and at most one '.' that represents an ellipsis.
  std::vector<std::string> inputs_;
  std::string output_;
};

// A tensor with named dimensions. A repeated name selects the diagonal; along a
// name that it lacks, the tensor is broadcast.
class LabeledTensor {
 public:
  LabeledTensor(Labels labels, DimsView shape);

  bool Has(Label label) const;
  // Returns 0 if the tensor is broadcast along `label` or has size 1.
  int64_t StrideOf(Label label) const;
  Dims StridesOf(const Labels& labels) const;
  const Labels& labels() const { return labels_; }
  const Dims& shape() const { return shape_; }

 private:
  Labels labels_;
  Dims shape_, strides_;
};

// Returns the size of each of `labels` in these tensors. Sizes must agree,
// except for broadcast 1s of an ellipsis.
absl::StatusOr<Dims> SizesOf(const Labels& labels,
                             const std::vector<LabeledTensor>& tensors);

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_EINSUM_EQUATION_H_
