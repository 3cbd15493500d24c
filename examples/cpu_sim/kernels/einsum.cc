// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/linalg.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "cpu_sim.h"
#include "kernels/batch_gemm.h"
#include "kernels/einsum_equation.h"
#include "kernels/movement.h"
#include "kernels/reduction.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

Labels Join(const Labels& a, const Labels& b) {
  Labels both = a;
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

// Several dimensions that are traversed as one.
struct Merged {
  int64_t size = 1;
  int64_t stride = 1;
};
// Merges the dimensions; returns nothing if no single stride traverses them.
std::optional<Merged> Merge(const Dims& sizes, const Dims& strides) {
  Merged merged;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) continue;
    if (merged.size == 1) {
      merged.stride = strides[d];
    } else if (strides[d] != merged.stride * merged.size) {
      return std::nullopt;
    }
    merged.size *= sizes[d];
  }
  if (merged.size != 1 && merged.stride == 0) return std::nullopt;
  return merged;
}

// The labels with one role in a product, and the product of their sizes.
struct Group {
  Labels labels;
  Dims sizes;

  void Add(Label label, int64_t size) {
    labels.push_back(label);
    sizes.push_back(size);
  }
  int64_t size() const { return ElementCount(sizes); }
};

// Returns a tensor as a matrix of rows x cols if its strides allow it.
std::optional<BatchGemm::Layout> AsMatrix(const LabeledTensor& tensor,
                                          const Group& rows,
                                          const Group& cols) {
  const auto row = Merge(rows.sizes, tensor.StridesOf(rows.labels));
  const auto col = Merge(cols.sizes, tensor.StridesOf(cols.labels));
  if (!row || !col) return std::nullopt;
  // The stride of a single row or column is unused but must not be too small.
  if (col->size == 1 || col->stride == 1) {
    return BatchGemm::Layout{row->size == 1 ? col->size : row->stride, false};
  }
  if (row->size == 1 || row->stride == 1) {
    return BatchGemm::Layout{col->size == 1 ? row->size : col->stride, true};
  }
  return std::nullopt;
}

// Sums products of the elements with equal indices for equal labels. Sorting
// the dimensions by their role turns this into a matrix product.
class Einsum final : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string text,
                            construction.GetAttr(ops::Einsum::equation));
    TFPLUG_ASSIGN_OR_RETURN(equation_, EinsumEquation::Parse(text));
    return absl::OkStatus();
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    const int count = context.num_inputs();
    if (count != static_cast<int>(equation_->num_inputs())) {
      return absl::InvalidArgumentError(
          "the equation has " + std::to_string(equation_->num_inputs()) +
          " inputs, but the op has " + std::to_string(count));
    }
    std::vector<tfplug::Tensor> tensors;
    std::vector<int> ranks;
    for (int i = 0; i < count; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor tensor, context.GetInput(i));
      ranks.push_back(tensor.rank());
      tensors.push_back(std::move(tensor));
    }
    TFPLUG_ASSIGN_OR_RETURN(const std::vector<Labels> labels,
                            equation_->Expand(ranks));
    std::vector<LabeledTensor> inputs;
    for (int i = 0; i < count; ++i) {
      const tfplug::Shape shape = tensors[i].shape();
      inputs.emplace_back(labels[i], shape.dims());
    }

    TFPLUG_ASSIGN_OR_RETURN(const Dims sizes, SizesOf(labels.back(), inputs));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(0, tfplug::Shape(sizes)));
    const LabeledTensor output(labels.back(), sizes);
    // A repeated output label writes a diagonal; the other elements are 0.
    TFPLUG_ASSIGN_OR_RETURN(const Dims y_sizes,
                            SizesOf(Unique(output.labels()), inputs));
    if (y_sizes.size() < sizes.size()) {
      TFPLUG_RETURN_IF_ERROR(Clear<Place::kDevice>(context, y));
    }
    return count == 1 ? Sum(context, tensors[0], inputs[0], y, output)
                      : Multiply(context, tensors, inputs, y, output);
  }

 private:
  static Labels Unique(const Labels& labels) {
    Labels unique;
    for (const Label label : labels) {
      if (!absl::c_linear_search(unique, label)) unique.push_back(label);
    }
    return unique;
  }

  // Copies `from` to `to`, matching dimensions by label.
  static absl::Status Rearrange(tfplug::KernelContext& context,
                                const Group& group, const tfplug::Tensor& to,
                                const LabeledTensor& to_labels,
                                const tfplug::Tensor& from,
                                const LabeledTensor& from_labels) {
    TFPLUG_ASSIGN_OR_RETURN(
        const Loop<2> loop,
        (MakeLoop<2>(group.sizes, {to_labels.StridesOf(group.labels),
                                   from_labels.StridesOf(group.labels)})));
    return Move<Place::kDevice>(context, loop, to, 0, from, 0);
  }

  // Returns a dense copy of x with the dimensions of `group`.
  static absl::StatusOr<tfplug::Tensor> Sort(tfplug::KernelContext& context,
                                             const Group& group,
                                             const tfplug::Tensor& x,
                                             const LabeledTensor& labels) {
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor sorted,
        context.AllocateTemp(x.dtype(), tfplug::Shape(group.sizes)));
    TFPLUG_RETURN_IF_ERROR(Rearrange(context, group, sorted,
                                     LabeledTensor(group.labels, group.sizes),
                                     x, labels));
    return sorted;
  }

  // Handles one input: sums over the labels that the output lacks.
  static absl::Status Sum(tfplug::KernelContext& context,
                          const tfplug::Tensor& x, const LabeledTensor& input,
                          const tfplug::Tensor& y,
                          const LabeledTensor& output) {
    Group kept, all;
    const Labels labels = Unique(Join(output.labels(), input.labels()));
    TFPLUG_ASSIGN_OR_RETURN(const Dims sizes, SizesOf(labels, {input}));
    for (size_t d = 0; d < labels.size(); ++d) {
      all.Add(labels[d], sizes[d]);
      if (output.Has(labels[d])) kept.Add(labels[d], sizes[d]);
    }
    if (kept.labels == all.labels) {
      return Rearrange(context, kept, y, output, x, input);
    }
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor sorted,
                            Sort(context, all, x, input));
    TFPLUG_ASSIGN_OR_RETURN(
        const tfplug::Tensor sum,
        context.AllocateTemp(y.dtype(), tfplug::Shape(kept.sizes)));
    TFPLUG_ASSIGN_OR_RETURN(
        const Loop<2> loop,
        (MakeLoop<2>(
            all.sizes,
            {LabeledTensor(kept.labels, kept.sizes).StridesOf(all.labels),
             DenseStrides(all.sizes)})));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    TFPLUG_RETURN_IF_ERROR(stream->Launch(&SumFloats, loop, sum.flat<float>(),
                                          sum.num_elements(),
                                          sorted.flat<float>()));
    return Rearrange(context, kept, y, output, sum,
                     LabeledTensor(kept.labels, kept.sizes));
  }

  static absl::Status Multiply(tfplug::KernelContext& context,
                               const std::vector<tfplug::Tensor>& tensors,
                               const std::vector<LabeledTensor>& inputs,
                               const tfplug::Tensor& y,
                               const LabeledTensor& output) {
    // Labels in both inputs and the output are batch dimensions; labels in the
    // output and one input are rows or columns; the others are summed over.
    Group batch, summed, only[2];
    const Labels labels = Unique(
        Join(output.labels(), Join(inputs[0].labels(), inputs[1].labels())));
    TFPLUG_ASSIGN_OR_RETURN(const Dims sizes, SizesOf(labels, inputs));
    for (size_t d = 0; d < labels.size(); ++d) {
      const bool in[2] = {inputs[0].Has(labels[d]), inputs[1].Has(labels[d])};
      Group& group = !output.Has(labels[d]) ? summed
                     : in[0] && in[1]       ? batch
                                            : only[in[0] ? 0 : 1];
      group.Add(labels[d], sizes[d]);
    }

    // The input whose labels come last in the output provides the columns.
    const auto straight = AsMatrix(output, only[0], only[1]);
    const int left = straight && straight->transpose ? 1 : 0;
    const Group &rows = only[left], &cols = only[1 - left];

    BatchGemm gemm;
    gemm.m = rows.size();
    gemm.n = cols.size();
    gemm.k = summed.size();
    Operand a(tensors[left], inputs[left]),
        b(tensors[1 - left], inputs[1 - left]);
    TFPLUG_ASSIGN_OR_RETURN(gemm.a, a.MakeMatrix(context, batch, rows, summed));
    TFPLUG_ASSIGN_OR_RETURN(gemm.b, b.MakeMatrix(context, batch, summed, cols));

    // The product is written to the output, or to a temporary tensor whose
    // dimensions are then rearranged.
    Operand c(y, output);
    if (straight) {
      gemm.c_stride = AsMatrix(output, rows, cols)->stride;
    } else {
      gemm.c_stride = gemm.n;
      TFPLUG_RETURN_IF_ERROR(c.MakeTemporary(context, batch, rows, cols));
    }
    TFPLUG_ASSIGN_OR_RETURN(
        gemm.batch,
        (MakeLoop<3>(batch.sizes, {c.labels.StridesOf(batch.labels),
                                   a.labels.StridesOf(batch.labels),
                                   b.labels.StridesOf(batch.labels)})));
    if (y.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    TFPLUG_RETURN_IF_ERROR(
        stream->Launch(&MultiplyBatch, gemm, c.tensor().flat<float>(),
                       a.tensor().flat<float>(), b.tensor().flat<float>()));
    if (straight) return absl::OkStatus();
    return Rearrange(context, All(batch, rows, cols), y, output, c.tensor(),
                     c.labels);
  }

  static Group All(const Group& batch, const Group& rows, const Group& cols) {
    Group all = batch;
    for (const Group* group : {&rows, &cols}) {
      for (size_t d = 0; d < group->labels.size(); ++d) {
        all.Add(group->labels[d], group->sizes[d]);
      }
    }
    return all;
  }

  // An operand of the product, or its sorted copy.
  struct Operand {
    Operand(const tfplug::Tensor& tensor, LabeledTensor its_labels)
        : given(tensor), labels(std::move(its_labels)) {}

    const tfplug::Tensor& tensor() const { return copy ? *copy : given; }

    absl::StatusOr<BatchGemm::Layout> MakeMatrix(tfplug::KernelContext& context,
                                                 const Group& batch,
                                                 const Group& rows,
                                                 const Group& cols) {
      if (const auto layout = AsMatrix(labels, rows, cols)) return *layout;
      const Group all = All(batch, rows, cols);
      TFPLUG_ASSIGN_OR_RETURN(copy, Sort(context, all, given, labels));
      labels = LabeledTensor(all.labels, all.sizes);
      return BatchGemm::Layout{cols.size(), false};
    }

    absl::Status MakeTemporary(tfplug::KernelContext& context,
                               const Group& batch, const Group& rows,
                               const Group& cols) {
      const Group all = All(batch, rows, cols);
      TFPLUG_ASSIGN_OR_RETURN(
          copy, context.AllocateTemp(given.dtype(), tfplug::Shape(all.sizes)));
      labels = LabeledTensor(all.labels, all.sizes);
      return absl::OkStatus();
    }

    const tfplug::Tensor& given;
    std::optional<tfplug::Tensor> copy;
    LabeledTensor labels;
  };

  std::optional<EinsumEquation> equation_;
};

TFPLUG_REGISTER_KERNEL(Einsum, ops::Einsum().T<float>());

}  // namespace
}  // namespace cpu_sim
