// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_INDEXING_H_
#define TFPLUG_BACKEND_OPS_INDEXING_H_

#include <limits>
#include <string>
#include <utility>

#include "tfplug/backend/internal/scalar_code.h"
#include "tfplug/backend/ops/elementwise.h"
#include "tfplug/backend/ops/helpers.h"
#include "tfplug/backend/registrar.h"

#pragma GCC visibility push(hidden)

// Ops that read or write elements at indices. An index out of range reads 0 and
// writes nothing, as on TensorFlow's GPUs: a device cannot raise an error on
// the host.
namespace tfplug {
namespace internal {

// Returns the expression that reads an element of an axis at an index.
inline absl::StatusOr<Expression> GatherExpression(DataType index,
                                                   DataType element) {
  ExpressionBuilder builder;
  const Value at = Cast(builder.Input(index), DataType::kInt64);
  builder.Output(builder.Element(builder.AxisInput(element), at), element);
  return std::move(builder).Build();
}

class GatherKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    if (construction.HasAttr("batch_dims")) {
      TFPLUG_ASSIGN_OR_RETURN(batch_dims_,
                              construction.GetAttr<int64_t>("batch_dims"));
    }
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, 1));
    int axis = 0;
    if (run.context().num_inputs() > 2) {
      TFPLUG_ASSIGN_OR_RETURN(axis, GetAxis(run, 2, x.rank));
    } else if (x.rank == 0) {
      return absl::InvalidArgumentError(
          "params must be at least 1 dimensional");
    }
    const auto batch = static_cast<int>(
        batch_dims_ < 0 ? batch_dims_ + indices.rank : batch_dims_);
    if (batch < 0 || batch > axis || batch > indices.rank) {
      return absl::InvalidArgumentError(
          "batch_dims (" + std::to_string(batch) +
          ") must be less than or equal to axis (" + std::to_string(axis) +
          ") and the rank of the indices");
    }
    for (int d = 0; d < batch; ++d) {
      if (x.dim(d) != indices.dim(d)) {
        return absl::InvalidArgumentError(
            "params.shape[" + std::to_string(d) +
            "] should be equal to indices.shape[" + std::to_string(d) + "]");
      }
    }
    // [batch..., outer..., index..., inner...]
    Operand at = indices, from = WithAxis(x, axis);
    const Operand elements = from;
    at.rank = from.rank = 0;
    const auto add = [&](int64_t size, int64_t at_stride, int64_t stride) {
      at.AddDim(size, at_stride);
      from.AddDim(size, stride);
    };
    for (int d = 0; d < axis; ++d) {
      add(x.dim(d), d < batch ? indices.stride(d) : 0, elements.stride(d));
    }
    for (int d = batch; d < indices.rank; ++d) {
      add(indices.dim(d), indices.stride(d), 0);
    }
    for (int d = axis; d < elements.rank; ++d) {
      add(elements.dim(d), 0, elements.stride(d));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, ShapeOf(from)));
    TFPLUG_ASSIGN_OR_RETURN(const Expression gather,
                            GatherExpression(at.type, AsBits(from).type));
    return run.launcher().Map(gather, {at, AsBits(from)}, {AsBits(y)});
  }

 private:
  int64_t batch_dims_ = 0;
};

// Computes the index of a slice among all slices of `shape`'s first `depth`
// dimensions, for the coordinates in the last dimension of `indices`: -1 if one
// is out of range. Returns a dense int64 view without that dimension.
inline absl::StatusOr<Operand> FlattenIndices(OpRun& run,
                                              const Operand& indices,
                                              const Shape& shape, int depth) {
  constexpr DataType kInt64 = DataType::kInt64;
  Operand first = indices;
  --first.rank;
  first.data = indices.data;
  ExpressionBuilder builder;
  absl::InlinedVector<Operand, 8> inputs;
  Value flat = builder.Constant(kInt64, int64_t{0});
  Value is_valid = builder.Constant(DataType::kBool, int64_t{1});
  for (int k = 0; k < depth; ++k) {
    const Value at = Cast(builder.Input(indices.type), kInt64);
    const Value size = builder.Input(kInt64);
    flat = flat * size + at;
    is_valid = is_valid & (at >= 0) & (at < size);
    Operand coordinate = first;
    inputs.push_back(coordinate.Advance(k * indices.stride(first.rank)));
    inputs.push_back(
        ScalarOf(kInt64, static_cast<double>(shape.dim(k)), first));
  }
  builder.Output(Select(is_valid, flat, -1), kInt64);
  TFPLUG_ASSIGN_OR_RETURN(const Expression flatten, std::move(builder).Build());
  TFPLUG_ASSIGN_OR_RETURN(Operand result,
                          run.launcher().Allocate(kInt64, DimsOf(first)));
  Operand out = result;
  TFPLUG_RETURN_IF_ERROR(run.launcher().Map(flatten, absl::MakeSpan(inputs),
                                            absl::MakeSpan(&out, 1)));
  return result;
}

// Returns the number of coordinates of each index.
inline absl::StatusOr<int> IndexDepth(const Operand& indices,
                                      const Shape& shape) {
  if (indices.rank < 1) {
    return absl::InvalidArgumentError("indices must be at least a vector");
  }
  const int64_t depth = indices.dim(indices.rank - 1);
  if (depth > shape.rank()) {
    return absl::InvalidArgumentError(
        "index innermost dimension length must be <= params rank; saw: " +
        std::to_string(depth) + " vs. " + std::to_string(shape.rank()));
  }
  return static_cast<int>(depth);
}

// Returns a dense view as [slices, elements of a slice].
inline Operand AsSlices(const Operand& view, int depth) {
  int64_t slices = 1, size = 1;
  for (int d = 0; d < view.rank; ++d)
    (d < depth ? slices : size) *= view.dim(d);
  return Operand::Dense(view.data, view.type, {slices, size});
}

class GatherNdKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const int depth, IndexDepth(indices, ShapeOf(x)));
    Shape shape(DimsOf(indices).first(static_cast<size_t>(indices.rank) - 1));
    for (int d = depth; d < x.rank; ++d) shape.add_dim(x.dim(d));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(const Operand at,
                            FlattenIndices(run, indices, ShapeOf(x), depth));
    const Operand slices = AsSlices(x, depth);
    const int64_t n = at.num_elements(), size = slices.dim(1);
    const Operand flat = Operand::Dense(at.data, at.type, {n});
    const Operand from = WithDim(WithAxis(slices, 0), 0, n);
    TFPLUG_ASSIGN_OR_RETURN(const Expression gather,
                            GatherExpression(at.type, AsBits(x).type));
    return run.launcher().Map(
        gather, {WithDim(flat, 1, size), AsBits(from)},
        {AsBits(Operand::Dense(y.data, y.type, {n, size}))});
  }
};

// ScatterNd, TensorScatterUpdate and its relatives: output 0 is input 0 (zeros
// for ScatterNd), changed at indices.
class ScatterNdKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    is_new_ = op == "ScatterNd";
    negates_ = op == "TensorScatterSub";
    kind_ = op == "TensorScatterUpdate" ? ScatterKind::kSet
            : op == "TensorScatterMax"  ? ScatterKind::kMax
            : op == "TensorScatterMin"  ? ScatterKind::kMin
                                        : ScatterKind::kAdd;
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices,
                            GetView(run, is_new_ ? 0 : 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand updates,
                            GetView(run, is_new_ ? 1 : 2));
    Shape shape;
    Operand x;
    if (is_new_) {
      TFPLUG_ASSIGN_OR_RETURN(shape, GetShape(run, 2));
    } else {
      TFPLUG_ASSIGN_OR_RETURN(x, GetView(run, 0));
      shape = ShapeOf(x);
    }
    TFPLUG_ASSIGN_OR_RETURN(const int depth, IndexDepth(indices, shape));
    Shape want(DimsOf(indices).first(static_cast<size_t>(indices.rank) - 1));
    for (int d = depth; d < shape.rank(); ++d) want.add_dim(shape.dim(d));
    if (want != ShapeOf(updates)) {
      return absl::InvalidArgumentError(
          "updates must have the shape of indices without the last dimension, "
          "followed by a slice of the output: " +
          want.ToString() + ", not " + ShapeOf(updates).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    TFPLUG_RETURN_IF_ERROR(is_new_ ? Fill(run, y, 0) : Copy(run, x, y));
    TFPLUG_ASSIGN_OR_RETURN(const Operand at,
                            FlattenIndices(run, indices, shape, depth));
    const Operand slices = AsSlices(y, depth);
    const int64_t n = at.num_elements();
    Operand changes =
        Operand::Dense(updates.data, updates.type, {n, slices.dim(1)});
    if (negates_) {
      TFPLUG_ASSIGN_OR_RETURN(
          const Expression negate,
          MakeExpression({y.type}, {y.type}, [](Value v) { return -v; }));
      TFPLUG_ASSIGN_OR_RETURN(const Operand negated,
                              run.launcher().Allocate(y.type, DimsOf(changes)));
      TFPLUG_RETURN_IF_ERROR(run.launcher().Map(negate, {changes}, {negated}));
      changes = negated;
    }
    return run.launcher().Scatter(kind_, Operand::Dense(at.data, at.type, {n}),
                                  changes, slices);
  }

 private:
  bool is_new_ = false;
  bool negates_ = false;
  ScatterKind kind_ = ScatterKind::kAdd;
};

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
    TFPLUG_ASSIGN_OR_RETURN(const Ints segments, run.GetInts(2));
    bool fits = ids.rank <= x.rank;
    for (int d = 0; fits && d < ids.rank; ++d) fits = ids.dim(d) == x.dim(d);
    if (!fits || segments.size() != 1 || segments[0] < 0) {
      return absl::InvalidArgumentError(
          "data.shape = " + ShapeOf(x).ToString() +
          " does not start with segment_ids.shape = " +
          ShapeOf(ids).ToString() +
          ", or num_segments is no non-negative scalar");
    }
    Shape shape = {segments[0]};
    for (int d = ids.rank; d < x.rank; ++d) shape.add_dim(x.dim(d));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    TFPLUG_RETURN_IF_ERROR(FillIdentity(run, y));
    const Operand from = AsSlices(x, ids.rank);
    return run.launcher().Scatter(
        kind_, Operand::Dense(ids.data, ids.type, {from.dim(0)}), from,
        AsSlices(y, 1));
  }

 private:
  absl::Status FillIdentity(OpRun& run, const Operand& y) const {
    if (kind_ == ScatterKind::kAdd) return Fill(run, y, 0);
    if (kind_ == ScatterKind::kMultiply) return Fill(run, y, 1);
    Operand value = ScalarOf(y.type, 0, y);
    const bool is_max = kind_ == ScatterKind::kMax;
    VisitStored(y.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      double real = 0;
      int64_t integer = 0;
      if constexpr (std::is_integral_v<T>) {
        using Limits = std::numeric_limits<T>;
        integer =
            static_cast<int64_t>(is_max ? Limits::lowest() : Limits::max());
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

  ScatterKind kind_ = ScatterKind::kAdd;
};

// Cumsum and Cumprod.
class ScanKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    TFPLUG_ASSIGN_OR_RETURN(is_exclusive_,
                            construction.GetAttr<bool>("exclusive"));
    TFPLUG_ASSIGN_OR_RETURN(is_reversed_,
                            construction.GetAttr<bool>("reverse"));
    kind_ = op == "Cumprod" ? ReduceKind::kProduct : ReduceKind::kSum;
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const int axis, GetAxis(run, 1, x.rank));
    TFPLUG_ASSIGN_OR_RETURN(Operand y, run.AllocateOutput(0, ShapeOf(x)));
    if (x.num_elements() == 0) return absl::OkStatus();
    const int last = x.rank - 1;
    const int64_t size = x.dim(axis);
    for (Operand* view : {&x, &y}) {
      *view = WithDimLast(*view, axis);
      if (!is_reversed_) continue;
      view->Advance((size - 1) * view->stride(last));
      view->stride(last) = -view->stride(last);
    }
    if (is_exclusive_) {
      TFPLUG_RETURN_IF_ERROR(
          Fill(run, Range(y, last, 0, 1), kind_ == ReduceKind::kSum ? 0 : 1));
      x = Range(x, last, 0, size - 1);
      y = Range(y, last, 1, size);
    }
    if (y.num_elements() == 0) return absl::OkStatus();
    return run.launcher().Scan(kind_, x, y);
  }

 private:
  bool is_exclusive_ = false;
  bool is_reversed_ = false;
  ReduceKind kind_ = ReduceKind::kSum;
};

class TopKKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Ints k, run.GetInts(1));
    const int last = x.rank - 1;
    if (k.size() != 1 || k[0] < 0 || last < 0 || x.dim(last) < k[0]) {
      return absl::InvalidArgumentError(
          "input must have at least k columns, and k must be a non-negative "
          "scalar; the input has shape " +
          ShapeOf(x).ToString());
    }
    Shape shape = ShapeOf(x);
    shape.set_dim(last, k[0]);
    TFPLUG_ASSIGN_OR_RETURN(const Operand values, run.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices,
                            run.AllocateOutput(1, shape));
    if (values.num_elements() == 0) return absl::OkStatus();
    return run.launcher().Sort(x, values, indices);
  }
};

}  // namespace internal

inline void IndexingOps(const Registrar& registrar) {
  using namespace internal;  // NOLINT
  const auto indexed = [](const char* op) {
    return KernelDef(op).TypeConstraint<int32_t, int64_t>("Tindices");
  };
  registrar.Add<GatherKernel>(indexed("Gather"), "Tparams", kAllTypes);
  registrar.Add<GatherKernel>(indexed("GatherV2")
                                  .TypeConstraint<int32_t, int64_t>("Taxis")
                                  .HostMemory("axis"),
                              "Tparams", kAllTypes);
  registrar.Add<GatherNdKernel>(indexed("GatherNd"), "Tparams", kAllTypes);
  registrar.Add<ScatterNdKernel>(indexed("ScatterNd").HostMemory("shape"), "T",
                                 kNumberTypes);
  for (const char* op : {"TensorScatterAdd", "TensorScatterSub",
                         "TensorScatterMax", "TensorScatterMin"}) {
    registrar.Add<ScatterNdKernel>(indexed(op), "T", kNumberTypes);
  }
  registrar.Add<ScatterNdKernel>(indexed("TensorScatterUpdate"), "T",
                                 kAllTypes);
  for (const char* op : {"UnsortedSegmentSum", "UnsortedSegmentProd",
                         "UnsortedSegmentMax", "UnsortedSegmentMin"}) {
    registrar.Add<UnsortedSegmentKernel>(
        indexed(op)
            .TypeConstraint<int32_t, int64_t>("Tnumsegments")
            .HostMemory("num_segments"),
        "T", kNumberTypes);
  }
  for (const char* op : {"Cumsum", "Cumprod"}) {
    registrar.Add<ScanKernel>(
        KernelDef(op).TypeConstraint<int32_t, int64_t>("Tidx").HostMemory(
            "axis"),
        "T", kNumberTypes);
  }
  registrar.Add<TopKKernel>(KernelDef("TopKV2").HostMemory("k"), "T",
                            kNumberTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_INDEXING_H_
