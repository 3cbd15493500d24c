// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SCATTER_H_
#define TFPLUG_OP_KERNELS_SCATTER_H_

#include <limits>
#include <string>
#include <type_traits>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tfplug/ir/scalar_code.h"
#include "tfplug/op_kernels/gather.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Ops that write elements at indices. An index out of range writes nothing, as
// on TensorFlow's GPUs: a device cannot raise an error on the host.
namespace tfplug {
namespace op_kernels_internal {

// ScatterNd, TensorScatterUpdate and its relatives: output 0 is input 0 (zeros
// for ScatterNd), changed at indices.
class ScatterNdKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    const auto ends_with = [&](absl::string_view suffix) {
      return absl::EndsWith(op, suffix);
    };
    is_new_ = op == "ScatterNd";
    names_dimensions_ = is_new_ || op == "ScatterNdNonAliasingAdd";
    negates_ = ends_with("Sub");
    kind_ = ends_with("Update") ? ScatterKind::kSet
            : ends_with("Max")  ? ScatterKind::kMax
            : ends_with("Min")  ? ScatterKind::kMin
                                : ScatterKind::kAdd;
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    Shape shape;
    Operand x;
    if (is_new_) {
      TFPLUG_ASSIGN_OR_RETURN(shape, GetShape(run, 2));
    } else {
      TFPLUG_ASSIGN_OR_RETURN(x, GetView(run, 0));
      shape = ShapeOf(x);
    }
    TFPLUG_ASSIGN_OR_RETURN(const int depth, CheckUpdates(run, shape));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    TFPLUG_RETURN_IF_ERROR(is_new_ ? Fill(run, y, 0) : Copy(run, x, y));
    return Scatter(run, depth, y);
  }

 protected:
  // Checks the indices and updates of a tensor of this shape; returns the
  // number of coordinates of each index.
  absl::StatusOr<int> CheckUpdates(OpRun& run, const Shape& shape) const {
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices,
                            GetView(run, is_new_ ? 0 : 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand updates,
                            GetView(run, is_new_ ? 1 : 2));
    for (const auto& [name, view] :
         {std::pair<const char*, const Operand&>{"Indices", indices},
          {"Updates", updates}}) {
      if (view.rank > 0) continue;
      return absl::InvalidArgumentError(
          std::string(name) + " shape must have rank at least one. Found:" +
          ShapeOf(view).ToString());
    }
    if (shape.num_elements() == 0 &&
        (indices.num_elements() > 0 || updates.num_elements() > 0)) {
      return absl::InvalidArgumentError(
          "Indices and updates specified for empty output shape " +
          shape.ToString());
    }
    // updates has the shape of indices without the last dimension, followed by
    // a slice of the output.
    const int outer = indices.rank - 1;
    const int64_t depth = indices.dim(outer);
    bool outer_fits = updates.rank >= outer;
    for (int d = 0; outer_fits && d < outer; ++d) {
      outer_fits = updates.dim(d) == indices.dim(d);
    }
    if (!outer_fits) {
      const std::string dims = "[0," + std::to_string(outer) + ")";
      return absl::InvalidArgumentError(
          names_dimensions_
              ? "Dimensions " + dims +
                    " of indices[shape=" + ShapeOf(indices).ToString() +
                    "] must match dimensions " + dims +
                    " of updates[shape=" + ShapeOf(updates).ToString() + "]"
              : "Outer dimensions of indices and update must match. "
                "Indices shape: " +
                    ShapeOf(indices).ToString() +
                    ", updates shape:" + ShapeOf(updates).ToString());
    }
    const int inner = updates.rank - outer;
    const bool has_rank = inner == shape.rank() - depth;
    bool inner_fits = depth <= shape.rank() && has_rank;
    for (int d = outer; inner_fits && d < updates.rank; ++d) {
      inner_fits =
          updates.dim(d) == shape.dim(static_cast<int>(depth) + d - outer);
    }
    if (inner_fits) return static_cast<int>(depth);
    if (!names_dimensions_ && shape.rank() == 0) {
      return absl::InvalidArgumentError(
          "Output must be at least 1-D, got shape: []");
    }
    if (!names_dimensions_ && has_rank) {
      const std::string dims =
          "inner " + std::to_string(inner) + " dimensions ";
      return absl::InvalidArgumentError(
          "The " + dims + "of output.shape=" + shape.ToString() +
          " must match the " + dims +
          "of updates.shape=" + ShapeOf(updates).ToString());
    }
    return absl::InvalidArgumentError(
        names_dimensions_
            ? "Dimensions [" + std::to_string(depth) + "," +
                  std::to_string(shape.rank()) + ") of input[shape=" +
                  shape.ToString() + "] must match dimensions [" +
                  std::to_string(outer) + "," + std::to_string(updates.rank) +
                  ") of updates[shape=" + ShapeOf(updates).ToString() + "]"
            : "Inner dimensions of output shape must match inner "
              "dimensions of updates shape. Output: " +
                  shape.ToString() +
                  " updates: " + ShapeOf(updates).ToString());
  }
  // Changes `y` at the indices.
  absl::Status Scatter(OpRun& run, int depth, const Operand& y) const {
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices,
                            GetView(run, is_new_ ? 0 : 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand updates,
                            GetView(run, is_new_ ? 1 : 2));
    TFPLUG_ASSIGN_OR_RETURN(const Operand at,
                            FlattenIndices(run, indices, ShapeOf(y), depth));
    const int64_t n = at.num_elements();
    const Operand slices = AsParts(AsSlices(y, depth));
    Operand changes =
        Operand::Dense(updates.data, slices.type, {n, slices.dim(1)});
    if (negates_) {
      TFPLUG_ASSIGN_OR_RETURN(const Expression negate,
                              MakeExpression({slices.type}, {slices.type},
                                             [](Value v) { return -v; }));
      TFPLUG_ASSIGN_OR_RETURN(
          const Operand negated,
          run.launcher().Allocate(slices.type, ir::DimsOf(changes)));
      TFPLUG_RETURN_IF_ERROR(run.launcher().Map(negate, {changes}, {negated}));
      changes = negated;
    }
    return run.launcher().Scatter(kind_, ir::Flat(at), changes, slices);
  }

 private:
  bool is_new_ = false;
  bool names_dimensions_ = false;  // as TensorFlow's messages for this op
  bool negates_ = false;
  ScatterKind kind_ = ScatterKind::kAdd;
};

// Sets all elements of `y` to the number that an update of this kind replaces:
// the smallest or largest of its type for maxima and minima.
inline absl::Status FillIdentity(OpRun& run, ScatterKind kind,
                                 const Operand& y) {
  if (kind == ScatterKind::kAdd) return Fill(run, y, 0);
  if (kind == ScatterKind::kMultiply) return Fill(run, y, 1);
  Operand value = ir::ScalarOf(y.type, 0, y);
  const bool is_max = kind == ScatterKind::kMax;
  ir::VisitStored(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    double real = 0;
    int64_t integer = 0;
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      integer = static_cast<int64_t>(is_max ? Limits::lowest() : Limits::max());
    } else {
      real = std::is_same_v<T, double> ? std::numeric_limits<double>::max()
             : std::is_same_v<T, Half> ? 65504
             : std::is_same_v<T, BFloat16>
                 ? 3.3895313892515355e38
                 : double{std::numeric_limits<float>::max()};
      if (is_max) real = -real;
    }
    value.scalar = ConstantBits(y.type, real, integer);
  });
  TFPLUG_ASSIGN_OR_RETURN(const Expression copy,
                          CastExpression(y.type, y.type));
  return run.launcher().Map(copy, {value}, {y});
}

// UnsortedSegmentSum, -Prod, -Max and -Min.
class UnsortedSegmentKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    kind_ = op == "UnsortedSegmentProd"  ? ScatterKind::kMultiply
            : op == "UnsortedSegmentMax" ? ScatterKind::kMax
            : op == "UnsortedSegmentMin" ? ScatterKind::kMin
                                         : ScatterKind::kAdd;
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand ids, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(
        const int64_t segments,
        run.GetScalar(2, "num_segments should be a scalar, not shape "));
    if (segments < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Input num_segments == ", segments, " must not be negative."));
    }
    bool fits = ids.rank <= x.rank;
    for (int d = 0; fits && d < ids.rank; ++d) fits = ids.dim(d) == x.dim(d);
    if (!fits) {
      return absl::InvalidArgumentError(
          "data.shape = " + ShapeOf(x).ToString() +
          " does not start with segment_ids.shape = " +
          ShapeOf(ids).ToString());
    }
    Shape shape = {segments};
    for (int d = ids.rank; d < x.rank; ++d) shape.add_dim(x.dim(d));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    TFPLUG_RETURN_IF_ERROR(FillIdentity(run, kind_, y));
    const Operand from = AsParts(AsSlices(x, ids.rank));
    return run.launcher().Scatter(
        kind_, Operand::Dense(ids.data, ids.type, {from.dim(0)}), from,
        AsParts(AsSlices(y, 1)));
  }

 private:
  ScatterKind kind_ = ScatterKind::kAdd;
};

}  // namespace op_kernels_internal

inline void ScatterOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  const auto indexed = [](const char* op) {
    return KernelDef(op).TypeConstraint<int32_t, int64_t>("Tindices");
  };
  registrar.Add<ScatterNdKernel>(indexed("ScatterNd").HostMemory("shape"), "T",
                                 kAllTypes | kComplexTypes);
  for (const char* op :
       {"TensorScatterAdd", "TensorScatterSub", "ScatterNdNonAliasingAdd"}) {
    registrar.Add<ScatterNdKernel>(indexed(op), "T",
                                   kNumberTypes | kComplexTypes);
  }
  for (const char* op : {"TensorScatterMax", "TensorScatterMin"}) {
    registrar.Add<ScatterNdKernel>(indexed(op), "T", kNumberTypes);
  }
  registrar.Add<ScatterNdKernel>(indexed("TensorScatterUpdate"), "T",
                                 kAllTypes | kComplexTypes);
  for (const char* op : {"UnsortedSegmentSum", "UnsortedSegmentProd",
                         "UnsortedSegmentMax", "UnsortedSegmentMin"}) {
    registrar.Add<UnsortedSegmentKernel>(
        indexed(op)
            .TypeConstraint<int32_t, int64_t>("Tnumsegments")
            .HostMemory("num_segments"),
        "T",
        op == absl::string_view("UnsortedSegmentSum")
            ? kNumberTypes | kComplexTypes
            : kNumberTypes);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SCATTER_H_
