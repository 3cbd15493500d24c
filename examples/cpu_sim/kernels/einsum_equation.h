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

// A name of a dimension: a letter or, of those that an ellipsis stands for, a
// negative number: -1 is the last.
using Label = int;
using Labels = absl::InlinedVector<Label, 8>;

// "ij,jk->ik": names for the dimensions of one or two inputs and of an output.
class EinsumEquation {
 public:
  // INVALID_ARGUMENT if it cannot be read.
  static absl::StatusOr<EinsumEquation> Parse(absl::string_view text);

  size_t num_inputs() const { return inputs_.size(); }

  // With an ellipsis in full, which `ranks`, of the inputs, allow. The last
  // ones are the output's.
  absl::StatusOr<std::vector<Labels>> Expand(
      const std::vector<int>& ranks) const;

 private:
  // Letters, and at most one '.' for an ellipsis.
  std::vector<std::string> inputs_;
  std::string output_;
};

// A tensor by the names of its dimensions. One that has a name twice is read,
// or written, along its diagonal; one that lacks a name repeats itself.
class LabeledTensor {
 public:
  LabeledTensor(Labels labels, DimsView shape);

  bool Has(Label label) const;
  // 0 where it repeats itself, or has just one index.
  int64_t StrideOf(Label label) const;
  Dims StridesOf(const Labels& labels) const;
  const Labels& labels() const { return labels_; }
  const Dims& shape() const { return shape_; }

 private:
  Labels labels_;
  Dims shape_, strides_;
};

// How many indices each of `labels` has in these tensors, which must agree, but
// for 1s of an ellipsis.
absl::StatusOr<Dims> SizesOf(const Labels& labels,
                             const std::vector<LabeledTensor>& tensors);

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_EINSUM_EQUATION_H_
