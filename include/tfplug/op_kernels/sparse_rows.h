// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SPARSE_ROWS_H_
#define TFPLUG_OP_KERNELS_SPARSE_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tfplug/ir/scalar_code.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/read_then_host_kernel.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Ops that give each empty row of a sparse or ragged tensor one element, and
// the gradients of these and of SparseSlice: index lists, on the host.
namespace tfplug {
namespace op_kernels_internal {

// Copies element `from` of an array to element `to` of another one.
inline void CopyElement(const HostArray& source, int64_t from,
                        const HostArray& target, int64_t to) {
  const size_t size = DataTypeSize(source.type);
  std::memcpy(target.as<char>() + static_cast<size_t>(to) * size,
              source.as<char>() + static_cast<size_t>(from) * size, size);
}

// SparseFillEmptyRows (indices, values, dense_shape, default_value) and
// RaggedFillEmptyRows (value_rowids, values, nrows, default_value): the
// elements in the order of their rows, with the default value in each row that
// has none; which rows had none; and the new index of each element.
class FillEmptyRowsKernel final : public ReadThenHostKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    is_ragged_ = op == "RaggedFillEmptyRows";
    return absl::OkStatus();
  }
  bool IsInputOnHost(int i) const override { return i == 2; }
  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    TFPLUG_RETURN_IF_ERROR(Check(in));
    const HostArray &indices = in[0], &values = in[1];
    const int64_t n = indices.shape.dim(0);
    const int64_t rank = is_ragged_ ? 1 : indices.shape.dim(1);
    const int64_t rows = in[2].as<int64_t>()[0];
    if (rows < 0 || (rows == 0 && n != 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("Received ", n, " indices for ", rows, " rows"));
    }
    // The index of the first element of each row, then of its next one.
    std::vector<int64_t> counts(static_cast<size_t>(rows)), at;
    const auto row = [&](int64_t i) { return indices.as<int64_t>()[i * rank]; };
    for (int64_t i = 0; i < n; ++i) {
      if (row(i) < 0 || row(i) >= rows) {
        return absl::InvalidArgumentError(
            absl::StrCat("indices(", i, ", 0) is invalid: ", row(i),
                         " is not in [0, ", rows, ")"));
      }
      ++counts[static_cast<size_t>(row(i))];
    }
    int64_t total = 0;
    for (const int64_t count : counts) {
      at.push_back(total);
      total += std::max<int64_t>(count, 1);
    }
    const HostArray& y = outputs.Add(
        DataType::kInt64, is_ragged_ ? Shape{total} : Shape{total, rank});
    const HostArray& filled = outputs.Add(values.type, {total});
    const HostArray& is_empty = outputs.Add(DataType::kBool, {rows});
    const HostArray& map = outputs.Add(DataType::kInt64, {n});
    for (int64_t r = 0; r < rows; ++r) {
      const auto k = static_cast<size_t>(r);
      is_empty.as<bool>()[r] = counts[k] == 0;
      if (counts[k] != 0) continue;
      y.as<int64_t>()[at[k] * rank] = r;  // the other coordinates are 0
      CopyElement(in[3], 0, filled, at[k]);
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t to = at[static_cast<size_t>(row(i))]++;
      std::copy_n(indices.as<int64_t>() + i * rank, rank,
                  y.as<int64_t>() + to * rank);
      CopyElement(values, i, filled, to);
      map.as<int64_t>()[i] = to;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Check(absl::Span<const HostArray> in) const {
    const Shape &indices = in[0].shape, &rows = in[2].shape;
    const bool fits = is_ragged_ ? indices.rank() == 1 && rows.rank() == 0
                                 : indices.rank() == 2 &&
                                       rows == Shape{indices.dim(1)} &&
                                       indices.dim(1) > 0;
    if (fits && in[1].shape == Shape{indices.dim(0)} &&
        in[3].shape.rank() == 0) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "the indices must be a row of coordinates (ragged: the row) of each "
        "value, dense_shape a vector of as many sizes (ragged: a scalar), and "
        "default_value a scalar, not " +
        indices.ToString() + ", " + in[1].shape.ToString() + ", " +
        rows.ToString() + " and " + in[3].shape.ToString());
  }

  bool is_ragged_ = false;
};

// The gradients of these: those of the values by reverse_index_map, and the sum
// of the others for the default value.
class FillEmptyRowsGradKernel final : public ReadThenHostKernel {
 public:
  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    const HostArray &map = in[0], &dy = in[1];
    if (map.shape.rank() != 1 || dy.shape.rank() != 1) {
      return absl::InvalidArgumentError(
          "reverse_index_map and grad_values must be vectors, not " +
          map.shape.ToString() + " and " + dy.shape.ToString());
    }
    const int64_t n = map.shape.dim(0), all = dy.shape.dim(0);
    std::vector<bool> is_value(static_cast<size_t>(all));
    const HostArray& dx = outputs.Add(dy.type, {n});
    for (int64_t i = 0; i < n; ++i) {
      const int64_t from = map.as<int64_t>()[i];
      if (from < 0 || from >= all) {
        return absl::InvalidArgumentError(
            "Elements in reverse index must be in [0, " + std::to_string(all) +
            ") but got " + std::to_string(from));
      }
      is_value[static_cast<size_t>(from)] = true;
      CopyElement(dy, from, dx, i);
    }
    const HostArray& rest = outputs.Add(dy.type, {});
    ir::VisitStored(dy.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ir::Computed<T>;
      ir::VisitCombine<C>(ReduceKind::kSum, [&](auto add) {
        C sum{};
        for (int64_t i = 0; i < all; ++i) {
          if (is_value[static_cast<size_t>(i)]) continue;
          sum = add(sum, static_cast<C>(dy.as<T>()[i]));
        }
        rest.as<T>()[0] = ir::Convert<T>(sum);
      });
    });
    return absl::OkStatus();
  }
};

// SparseSliceGrad (backprop_val_grad, input_indices, input_start,
// output_indices): the gradient of each element in the slice, 0 for the others.
// Both lists of indices ascend.
class SparseSliceGradKernel final : public ReadThenHostKernel {
 public:
  bool IsInputOnHost(int i) const override { return i == 2; }
  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    const Shape &dy = in[0].shape, &from = in[1].shape, &start = in[2].shape,
                &to = in[3].shape;
    if (dy.rank() != 1 || from.rank() != 2 || to.rank() != 2 ||
        start != Shape{from.dim(1)} || to != Shape{dy.dim(0), from.dim(1)}) {
      return absl::InvalidArgumentError(
          "backprop_val_grad must be a vector, input_indices and "
          "output_indices matrices with a column for each element of "
          "input_start, not " +
          dy.ToString() + ", " + from.ToString() + ", " + to.ToString() +
          " and " + start.ToString());
    }
    if (to.dim(0) > from.dim(0)) {
      return absl::InvalidArgumentError(
          "output_indices must not have more rows than input_indices, got " +
          std::to_string(to.dim(0)) + " and " + std::to_string(from.dim(0)));
    }
    const HostArray& dx = outputs.Add(in[0].type, {from.dim(0)});
    const int64_t rank = from.dim(1);
    const auto is_same = [&](int64_t i, int64_t k) {
      for (int64_t d = 0; d < rank; ++d) {
        // Wraps for any numbers.
        const auto at = [&](int input, int64_t j) {
          return static_cast<uint64_t>(
              in[static_cast<size_t>(input)].as<int64_t>()[j]);
        };
        if (at(1, i * rank + d) != at(3, k * rank + d) + at(2, d)) return false;
      }
      return true;
    };
    int64_t k = 0;
    for (int64_t i = 0; i < from.dim(0) && k < to.dim(0); ++i) {
      if (is_same(i, k)) CopyElement(in[0], k++, dx, i);
    }
    if (k == to.dim(0)) return absl::OkStatus();
    return absl::InternalError(
        "Elements of backprop_val_grad aren't all propagated: " +
        std::to_string(k) + " of " + std::to_string(to.dim(0)));
  }
};

}  // namespace op_kernels_internal

inline void SparseRowOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  // TensorFlow runs these eagerly as functions, whose arguments of int32 it
  // looks for on the host.
  const uint64_t types = kCopiedTypes & ~kInt32Type;
  registrar.Add<FillEmptyRowsKernel>(
      KernelDef("SparseFillEmptyRows").HostMemory("dense_shape"), "T", types);
  registrar.Add<FillEmptyRowsKernel>(
      KernelDef("RaggedFillEmptyRows").HostMemory("nrows"), "T", types);
  for (const char* op :
       {"SparseFillEmptyRowsGrad", "RaggedFillEmptyRowsGrad"}) {
    registrar.Add<FillEmptyRowsGradKernel>(KernelDef(op), "T",
                                           kNumberTypes & ~kInt32Type);
  }
  registrar.Add<SparseSliceGradKernel>(
      KernelDef("SparseSliceGrad").HostMemory("input_start"), "T",
      (kNumberTypes | kernel::SetOf(DataType::kComplex64)) & ~kInt32Type);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SPARSE_ROWS_H_
