// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_EINSUM_H_
#define TFPLUG_OP_KERNELS_EINSUM_H_

#include <string>
#include <utility>
#include <vector>

#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/internal/einsum_equation.h"
#include "tfplug/op_kernels/matmul.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace op_kernels_internal {

// Sums products of the elements with equal indices for equal labels. Sorting
// the dimensions by their role turns this into a matrix product.
class EinsumKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string text,
                            construction.GetAttr<std::string>("equation"));
    TFPLUG_ASSIGN_OR_RETURN(equation_, EinsumEquation::Parse(text));
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    const DataType part = PartType(type);
    TFPLUG_ASSIGN_OR_RETURN(sum_, primitives::MakeSum(part));
    return IsComplex(type) ? complex_.Init(type) : absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    const int count = run.context().num_inputs();
    if (count != static_cast<int>(equation_.num_inputs())) {
      return absl::InvalidArgumentError(
          "the equation has " + std::to_string(equation_.num_inputs()) +
          " inputs, but the op has " + std::to_string(count));
    }
    absl::InlinedVector<Operand, 2> views;
    absl::InlinedVector<int, 2> ranks;
    for (int i = 0; i < count; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand view, GetView(run, i));
      views.push_back(view);
      ranks.push_back(view.rank);
    }
    TFPLUG_ASSIGN_OR_RETURN(const std::vector<Labels> labels,
                            equation_.Expand(ranks));
    std::vector<Labeled> inputs;
    for (size_t i = 0; i < views.size(); ++i) {
      inputs.push_back({views[i], labels[i]});
    }
    TFPLUG_ASSIGN_OR_RETURN(const Ints sizes, SizesOf(labels.back(), inputs));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, Shape(sizes)));
    const Labels kept = Unique(labels.back());
    // A repeated output label writes a diagonal; the other elements are 0.
    if (kept.size() < labels.back().size()) {
      TFPLUG_RETURN_IF_ERROR(Fill(run, y, 0));
    }
    const Labeled output = {y, labels.back()};
    return count == 1 ? Sum(run, inputs[0], kept, output)
                      : Multiply(run, inputs, output);
  }

 private:
  // A tensor with named dimensions. A repeated name selects the diagonal; along
  // a name that it lacks, the tensor is repeated.
  struct Labeled {
    Operand view;
    Labels labels;

    int64_t StrideOf(Label label) const {
      int64_t stride = 0;
      for (int d = 0; d < view.rank; ++d) {
        if (labels[static_cast<size_t>(d)] == label && view.dim(d) != 1) {
          stride += view.stride(d);
        }
      }
      return stride;
    }
    // Returns the view with these dimensions.
    Operand WithDims(const Labels& wanted, const Ints& sizes) const {
      Operand result = view;
      result.rank = 0;
      for (size_t d = 0; d < wanted.size(); ++d) {
        result.AddDim(sizes[d], StrideOf(wanted[d]));
      }
      return result;
    }
  };
  // The labels with one role in a product.
  struct Group {
    Labels labels;
    Ints sizes;

    void Add(Label label, int64_t size) {
      labels.push_back(label);
      sizes.push_back(size);
    }
    void Add(const Group& more) {
      labels.insert(labels.end(), more.labels.begin(), more.labels.end());
      sizes.insert(sizes.end(), more.sizes.begin(), more.sizes.end());
    }
    int rank() const { return static_cast<int>(sizes.size()); }
  };

  static Labels Unique(const Labels& labels) {
    Labels unique;
    for (const Label label : labels) {
      if (!HasLabel(unique, label)) unique.push_back(label);
    }
    return unique;
  }

  // Returns the size of each label. Sizes must agree, except for broadcast 1s
  // of an ellipsis.
  static absl::StatusOr<Ints> SizesOf(const Labels& labels,
                                      const std::vector<Labeled>& tensors) {
    Ints sizes;
    for (const Label label : labels) {
      int64_t size = -1;
      for (const Labeled& tensor : tensors) {
        for (int d = 0; d < tensor.view.rank; ++d) {
          if (tensor.labels[static_cast<size_t>(d)] != label) continue;
          const int64_t here = tensor.view.dim(d);
          const bool repeats = label < 0 && (size == 1 || here == 1);
          if (size >= 0 && here != size && !repeats) {
            return absl::InvalidArgumentError(
                absl::StrCat("the same label has sizes ", size, " and ", here));
          }
          if (size < 0 || size == 1) size = here;
        }
      }
      sizes.push_back(size);
    }
    return sizes;
  }

  // Sums over the labels that the output lacks.
  absl::Status Sum(OpRun& run, const Labeled& x, const Labels& kept,
                   const Labeled& output) const {
    Labels all = kept;
    all.insert(all.end(), x.labels.begin(), x.labels.end());
    all = Unique(all);
    TFPLUG_ASSIGN_OR_RETURN(const Ints sizes, SizesOf(all, {x}));
    const Operand from = x.WithDims(all, sizes);
    const Operand to = output.WithDims(kept, sizes);
    if (kept.size() == all.size()) return Copy(run, from, to);
    if (!IsComplex(to.type)) return run.launcher().Reduce(sum_, {from}, {to});
    // An empty tensor has no parts.
    if (from.num_elements() == 0) return Fill(run, to, 0);
    for (int part = 0; part < 2; ++part) {
      TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(sum_, {PartOf(from, part)},
                                                   {PartOf(to, part)}));
    }
    return absl::OkStatus();
  }

  absl::Status Multiply(OpRun& run, const std::vector<Labeled>& inputs,
                        const Labeled& output) const {
    // Labels in both inputs and the output are batch dimensions; labels in the
    // output and one input are rows or columns; the others are summed over.
    Labels labels = output.labels;
    for (const Labeled& x : inputs) {
      labels.insert(labels.end(), x.labels.begin(), x.labels.end());
    }
    labels = Unique(labels);
    TFPLUG_ASSIGN_OR_RETURN(const Ints sizes, SizesOf(labels, inputs));
    Group batch, rows, columns, summed;
    for (size_t d = 0; d < labels.size(); ++d) {
      const bool in_a = HasLabel(inputs[0].labels, labels[d]);
      const bool in_b = HasLabel(inputs[1].labels, labels[d]);
      Group& group = !HasLabel(output.labels, labels[d]) ? summed
                     : in_a && in_b                      ? batch
                     : in_a                              ? rows
                                                         : columns;
      group.Add(labels[d], sizes[d]);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Matrices a,
                            AsMatrices(run, inputs[0], batch, rows, summed));
    TFPLUG_ASSIGN_OR_RETURN(const Matrices b,
                            AsMatrices(run, inputs[1], batch, summed, columns));
    TFPLUG_ASSIGN_OR_RETURN(
        const Matrices c, AsMatrices(run, output, batch, rows, columns, true));
    if (c.merged.num_elements() == 0) return absl::OkStatus();
    TFPLUG_RETURN_IF_ERROR(
        IsComplex(c.merged.type)
            ? complex_.Run(run, a.merged, b.merged, c.merged,
                           /*conjugates_a=*/false, /*conjugates_b=*/false)
            : run.launcher().MatMul(a.merged, b.merged, c.merged));
    return c.is_copy ? Copy(run, c.copy, c.view) : absl::OkStatus();
  }

  // A tensor as [batch..., rows, columns].
  struct Matrices {
    Operand merged;
    bool is_copy = false;
    Operand view, copy;  // with a dimension for each label
  };

  // Merges the dimensions of the groups. If no stride traverses them, the
  // result is a dense tensor: a copy, or, for an output, uninitialized.
  static absl::StatusOr<Matrices> AsMatrices(OpRun& run, const Labeled& tensor,
                                             const Group& batch,
                                             const Group& rows,
                                             const Group& columns,
                                             bool is_output = false) {
    Group all = batch;
    all.Add(rows);
    all.Add(columns);
    Matrices result;
    result.view = tensor.WithDims(all.labels, all.sizes);
    if (Merge(result.view, batch.rank(), rows.rank(), &result.merged)) {
      return result;
    }
    result.is_copy = true;
    TFPLUG_ASSIGN_OR_RETURN(
        result.copy, run.launcher().Allocate(result.view.type, all.sizes));
    if (!is_output) {
      TFPLUG_RETURN_IF_ERROR(Copy(run, result.view, result.copy));
    }
    Merge(result.copy, batch.rank(), rows.rank(), &result.merged);
    return result;
  }

  // Merges the `rows` dimensions from `batch` on, and those after them, into
  // one each. Returns false if that is impossible.
  static bool Merge(const Operand& view, int batch, int rows, Operand* merged) {
    *merged = view;
    merged->rank = batch;
    for (const auto& [begin, end] :
         {std::pair(batch, batch + rows), std::pair(batch + rows, view.rank)}) {
      int64_t size = 1, stride = 1;
      for (int d = end; d-- > begin;) {
        if (view.dim(d) == 1) continue;
        if (size == 1) {
          stride = view.stride(d);
        } else if (view.stride(d) != stride * size) {
          return false;
        }
        size *= view.dim(d);
      }
      merged->AddDim(size, stride);
    }
    return true;
  }

  EinsumEquation equation_;
  Reduction sum_;  // of numbers or their parts
  ComplexProduct complex_;
};

}  // namespace op_kernels_internal

inline void EinsumOps(const Registrar& registrar) {
  registrar.Add<op_kernels_internal::EinsumKernel>(
      KernelDef("Einsum"), "T", kFloatTypes | kIndexTypes | kComplexTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_EINSUM_H_
