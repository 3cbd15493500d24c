// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SPARSE_TENSOR_H_
#define TFPLUG_OP_KERNELS_SPARSE_TENSOR_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/read_then_host_kernel.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Ops of tf.sparse that sort, select and join the elements of sparse tensors:
// index lists of data-dependent length, on the host.
namespace tfplug {
namespace op_kernels_internal {

// A sparse tensor: a row of coordinates and a value for each element.
struct SparseView {
  const HostArray* indices;
  const HostArray* values;
  absl::Span<const int64_t> shape;

  static absl::StatusOr<SparseView> Of(const HostArray& indices,
                                       const HostArray& values,
                                       const HostArray& shape) {
    if (indices.shape.rank() != 2 || values.shape.rank() != 1 ||
        shape.shape.rank() != 1) {
      return absl::InvalidArgumentError(
          "Sparse indices must be rank 2, and values and shape rank 1, not " +
          indices.shape.ToString() + ", " + values.shape.ToString() + " and " +
          shape.shape.ToString());
    }
    if (indices.shape.dim(0) != values.shape.dim(0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Number of elements in indices (", indices.shape.dim(0),
          ") and values (", values.shape.dim(0), ") do not match"));
    }
    if (indices.shape.dim(1) != shape.shape.dim(0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Index rank (", indices.shape.dim(1), ") and shape rank (",
          shape.shape.dim(0), ") do not match"));
    }
    return SparseView{
        &indices, &values,
        absl::MakeConstSpan(shape.as<int64_t>(),
                            static_cast<size_t>(shape.shape.num_elements()))};
  }

  // Fails, in TensorFlow's words, if a size is negative, or if the dense tensor
  // would have too many elements.
  absl::Status CheckSizes() const {
    for (const int64_t dim : shape) {
      if (dim >= 0) continue;
      return absl::InvalidArgumentError(
          "Expected shape dimensions to be non-negative, got " +
          std::to_string(dim));
    }
    return ToShape(shape).status();
  }

  int64_t size() const { return indices->shape.dim(0); }
  int64_t rank() const { return indices->shape.dim(1); }
  const int64_t* row(int64_t i) const {
    return indices->as<int64_t>() + i * rank();
  }
};

// Elements that become an output.
class SparseBuilder {
 public:
  explicit SparseBuilder(DataType type) : type_(type) {}

  void Add(absl::Span<const int64_t> row, const HostArray& values, int64_t i) {
    indices_.insert(indices_.end(), row.begin(), row.end());
    const size_t size = DataTypeSize(type_);
    const char* const from = values.as<char>() + static_cast<size_t>(i) * size;
    values_.insert(values_.end(), from, from + size);
    ++count_;
  }
  void AddIndices(HostOutputs& outputs, int64_t rank) const {
    Write(outputs.Add(DataType::kInt64, {count_, rank}), indices_.data(),
          indices_.size() * sizeof(int64_t));
  }
  void AddValues(HostOutputs& outputs) const {
    Write(outputs.Add(type_, {count_}), values_.data(), values_.size());
  }
  static void Write(const HostArray& to, const void* from, size_t bytes) {
    std::copy_n(static_cast<const char*>(from), bytes, to.as<char>());
  }
  static void AddShape(HostOutputs& outputs, absl::Span<const int64_t> shape) {
    Write(outputs.Add(DataType::kInt64, {static_cast<int64_t>(shape.size())}),
          shape.data(), shape.size() * sizeof(int64_t));
  }
  void AddTensor(HostOutputs& outputs, absl::Span<const int64_t> shape) const {
    AddIndices(outputs, static_cast<int64_t>(shape.size()));
    AddValues(outputs);
    AddShape(outputs, shape);
  }

 private:
  DataType type_;
  int64_t count_ = 0;
  std::vector<int64_t> indices_;
  std::vector<char> values_;
};

inline absl::Status CheckVector(const char* name, const HostArray& array,
                                int64_t size) {
  if (array.shape == Shape{size}) return absl::OkStatus();
  return absl::InvalidArgumentError(
      std::string(name) + " must be a vector of " + std::to_string(size) +
      " elements, not of shape " + array.shape.ToString());
}

// Returns the order in which the rows of an index list ascend.
inline std::vector<int64_t> RowOrder(const int64_t* indices, int64_t count,
                                     int64_t rank) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int64_t *x = indices + a * rank, *y = indices + b * rank;
    return std::lexicographical_compare(x, x + rank, y, y + rank);
  });
  return order;
}

// SparseReorder: the elements in the order of their coordinates.
class SparseReorderKernel final : public ReadThenHostKernel {
 public:
  bool IsInputOnHost(int i) const override { return i == 2; }
  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    TFPLUG_ASSIGN_OR_RETURN(const SparseView x,
                            SparseView::Of(in[0], in[1], in[2]));
    SparseBuilder builder(in[1].type);
    for (int64_t i : RowOrder(in[0].as<int64_t>(), x.size(), x.rank())) {
      builder.Add({x.row(i), static_cast<size_t>(x.rank())}, in[1], i);
    }
    builder.AddIndices(outputs, x.rank());
    builder.AddValues(outputs);
    return absl::OkStatus();
  }
};

// SparseReshape: the same elements at the coordinates of another shape, of
// which one dimension may be -1.
class SparseReshapeKernel final : public ReadThenHostKernel {
 public:
  bool IsInputOnHost(int i) const override { return i > 0; }
  bool IsOutputOnHost(int i) const override { return i == 1; }
  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    const HostArray& indices = in[0];
    if (indices.shape.rank() != 2 || in[1].shape.rank() != 1 ||
        in[2].shape.rank() != 1 || indices.shape.dim(1) != in[1].shape.dim(0)) {
      return absl::InvalidArgumentError(
          "Input indices should be a matrix with a column for each dimension "
          "of the input shape, and both shapes vectors: " +
          indices.shape.ToString() + ", " + in[1].shape.ToString() + ", " +
          in[2].shape.ToString());
    }
    const int64_t rank = indices.shape.dim(1), count = indices.shape.dim(0);
    const int64_t* const from = in[1].as<int64_t>();
    TFPLUG_ASSIGN_OR_RETURN(const Shape old,
                            ToShape({from, static_cast<size_t>(rank)}));
    const int64_t size = old.num_elements();
    std::vector<int64_t> to(in[2].as<int64_t>(),
                            in[2].as<int64_t>() + in[2].shape.dim(0));
    TFPLUG_RETURN_IF_ERROR(Infer(size, to));
    if (size == 0 && count > 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Input tensor has ", count, " non zero elements but input shape (",
          old.ToString(), ") is empty"));
    }
    const auto columns = static_cast<int64_t>(to.size());
    const HostArray& y = outputs.Add(DataType::kInt64, {count, columns});
    for (int64_t i = 0; i < count; ++i) {
      int64_t flat = 0;
      for (int64_t d = 0; d < rank; ++d) {
        flat = flat * from[d] + indices.as<int64_t>()[i * rank + d];
      }
      for (int64_t d = columns; d-- > 0;) {
        const int64_t dim = std::max<int64_t>(to[static_cast<size_t>(d)], 1);
        // TensorFlow keeps the rest of an index that is out of range here.
        y.as<int64_t>()[i * columns + d] = d > 0 ? flat % dim : flat;
        flat /= dim;
      }
    }
    SparseBuilder::AddShape(outputs, to);
    return absl::OkStatus();
  }

 private:
  // Replaces a -1 in the shape of `size` elements.
  static absl::Status Infer(int64_t size, std::vector<int64_t>& shape) {
    int64_t known = 1;
    const auto none = shape.size();
    size_t unknown = none;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == -1) {
        if (unknown != none) {
          return absl::InvalidArgumentError(
              absl::StrCat("only one output dimension may be -1, not both ",
                           unknown, " and ", d));
        }
        unknown = d;
      } else if (shape[d] < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("size ", d, " must be non-negative, not ", shape[d]));
      } else {
        TFPLUG_ASSIGN_OR_RETURN(known, MultiplySizes(known, shape[d]));
      }
    }
    if (unknown == none) {
      if (known == size) return absl::OkStatus();
      return absl::InvalidArgumentError(
          absl::StrCat("Input to reshape is a tensor with ", size,
                       " dense values, but the requested shape has ", known));
    }
    if (known == 0) {
      return absl::InvalidArgumentError(
          "reshape cannot infer the missing input size for an empty tensor "
          "unless all specified input sizes are non-zero");
    }
    if (size % known != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Input to reshape is a SparseTensor with ", size,
          " dense values, but the requested shape requires a multiple of ",
          known));
    }
    shape[unknown] = size / known;
    return absl::OkStatus();
  }
};

// SparseSlice: the elements in a box.
class SparseSliceKernel final : public ReadThenHostKernel {
 public:
  bool IsInputOnHost(int i) const override { return i >= 2; }
  bool IsOutputOnHost(int i) const override { return i == 2; }
  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    TFPLUG_ASSIGN_OR_RETURN(const SparseView x,
                            SparseView::Of(in[0], in[1], in[2]));
    TFPLUG_RETURN_IF_ERROR(CheckVector("start", in[3], x.rank()));
    TFPLUG_RETURN_IF_ERROR(CheckVector("size", in[4], x.rank()));
    const auto rank = static_cast<size_t>(x.rank());
    const int64_t* const start = in[3].as<int64_t>();
    std::vector<int64_t> shape(rank), row(rank);
    for (size_t d = 0; d < rank; ++d) {
      if (x.shape[d] < 0) {
        return absl::InvalidArgumentError(
            "Expected shape dimensions to be non-negative, got " +
            std::to_string(x.shape[d]));
      }
      constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
      const int64_t rest =
          start[d] < x.shape[d] - kMost ? kMost : x.shape[d] - start[d];
      const int64_t size = in[4].as<int64_t>()[d];
      if (size < 0) {
        return absl::InvalidArgumentError("Expected a non-negative size, got " +
                                          std::to_string(size));
      }
      shape[d] = std::max<int64_t>(std::min(size, rest), 0);
    }
    SparseBuilder builder(in[1].type);
    for (int64_t i = 0; i < x.size(); ++i) {
      bool is_inside = true;
      for (size_t d = 0; d < rank; ++d) {
        // Wraps, to a negative number, if the start is far below 0.
        row[d] = static_cast<int64_t>(static_cast<uint64_t>(x.row(i)[d]) -
                                      static_cast<uint64_t>(start[d]));
        is_inside = is_inside && row[d] >= 0 && row[d] < shape[d];
      }
      if (is_inside) builder.Add(row, in[1], i);
    }
    builder.AddTensor(outputs, shape);
    return absl::OkStatus();
  }
};

// SparseSplit: equal parts of a dimension; the first parts are longer by one if
// its size is no multiple.
class SparseSplitKernel final : public ReadThenHostKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(parts_, construction.GetAttr<int32_t>("num_split"));
    return absl::OkStatus();
  }
  bool IsInputOnHost(int i) const override { return i == 0 || i == 3; }
  bool IsOutputOnHost(int i) const override { return i >= 2 * parts_; }
  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    TFPLUG_ASSIGN_OR_RETURN(const SparseView x,
                            SparseView::Of(in[1], in[2], in[3]));
    if (in[0].shape.rank() != 0) {
      return absl::InvalidArgumentError(
          "Input axis should be a scalar but received shape " +
          in[0].shape.ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(
        const int axis,
        CheckAxis(in[0].as<int64_t>()[0], static_cast<int>(x.rank()),
                  "Input axis should be in range "));
    const auto d = static_cast<size_t>(axis);
    const int64_t size = x.shape[d];
    TFPLUG_RETURN_IF_ERROR(x.CheckSizes());
    if (parts_ < 1 || parts_ > size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Input num_split should be between 1 and the splitting dimension "
          "size (",
          size, "), got ", parts_));
    }
    const int64_t each = size / parts_, longer = size % parts_;
    const auto begin = [&](int64_t part) {
      return part * each + std::min(part, longer);
    };
    std::vector<SparseBuilder> builders(static_cast<size_t>(parts_),
                                        SparseBuilder(in[2].type));
    std::vector<int64_t> row(static_cast<size_t>(x.rank()));
    for (int64_t i = 0; i < x.size(); ++i) {
      std::copy_n(x.row(i), row.size(), row.begin());
      for (size_t k = 0; k < row.size(); ++k) {
        if (row[k] < 0 || row[k] >= x.shape[k]) {
          return absl::InvalidArgumentError(absl::StrCat(
              "Sparse index tuple indices[", i, ", :] is out of bounds: ",
              row[k], " is not in [0, ", x.shape[k], ")"));
        }
      }
      int64_t part = 0;
      while (part + 1 < parts_ && row[d] >= begin(part + 1)) ++part;
      row[d] -= begin(part);
      builders[static_cast<size_t>(part)].Add(row, in[2], i);
    }
    for (const SparseBuilder& b : builders) b.AddIndices(outputs, x.rank());
    for (const SparseBuilder& b : builders) b.AddValues(outputs);
    std::vector<int64_t> shape(x.shape.begin(), x.shape.end());
    for (int64_t part = 0; part < parts_; ++part) {
      shape[d] = begin(part + 1) - begin(part);
      SparseBuilder::AddShape(outputs, shape);
    }
    return absl::OkStatus();
  }

 private:
  int64_t parts_ = 1;
};

// SparseConcat: tensors one after the other along a dimension, in the order of
// their coordinates.
class SparseConcatKernel final : public ReadThenHostKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(axis_, construction.GetAttr<int64_t>("concat_dim"));
    TFPLUG_ASSIGN_OR_RETURN(count_, construction.GetAttr<int32_t>("N"));
    return absl::OkStatus();
  }
  bool IsInputOnHost(int i) const override { return i >= 2 * count_; }
  bool IsOutputOnHost(int i) const override { return i == 2; }
  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    const auto n = static_cast<size_t>(count_);
    std::vector<int64_t> shape;
    size_t d = 0;
    SparseBuilder unordered(in[n].type);
    std::vector<int64_t> all;
    std::vector<std::pair<size_t, int64_t>> sources;
    for (size_t k = 0; k < n; ++k) {
      TFPLUG_ASSIGN_OR_RETURN(const SparseView x,
                              SparseView::Of(in[k], in[n + k], in[2 * n + k]));
      if (k == 0) {
        TFPLUG_ASSIGN_OR_RETURN(const int axis,
                                CheckAxis(axis_, static_cast<int>(x.rank())));
        d = static_cast<size_t>(axis);
        shape.assign(x.shape.begin(), x.shape.end());
        shape[d] = 0;
      }
      if (x.shape.size() != shape.size()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "Ranks of all input tensors must match: expected ", shape.size(),
            " but got ", x.shape.size(), " at position ", k));
      }
      for (size_t j = 0; j < shape.size(); ++j) {
        if (j == d || x.shape[j] == shape[j]) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            "Input shapes must match: expected ", shape[j], " for dimension ",
            j, " but got ", x.shape[j], " at position ", k));
      }
      for (int64_t i = 0; i < x.size(); ++i) {
        const size_t first = all.size();
        all.insert(all.end(), x.row(i), x.row(i) + x.rank());
        all[first + d] += shape[d];
        sources.emplace_back(n + k, i);
      }
      if (__builtin_add_overflow(shape[d], x.shape[d], &shape[d])) {
        return absl::InvalidArgumentError(
            "Encountered overflow from large input shape.");
      }
    }
    const auto rank = static_cast<int64_t>(shape.size());
    SparseBuilder builder(in[n].type);
    for (int64_t i :
         RowOrder(all.data(), static_cast<int64_t>(sources.size()), rank)) {
      const auto& [input, at] = sources[static_cast<size_t>(i)];
      builder.Add({all.data() + i * rank, shape.size()}, in[input], at);
    }
    builder.AddTensor(outputs, shape);
    return absl::OkStatus();
  }

 private:
  int64_t axis_ = 0, count_ = 1;
};

}  // namespace op_kernels_internal

inline void SparseTensorOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  registrar.Add<SparseReorderKernel>(
      KernelDef("SparseReorder").HostMemory("input_shape"), "T", kCopiedTypes);
  registrar.Add<SparseReshapeKernel>(KernelDef("SparseReshape")
                                         .HostMemory("input_shape")
                                         .HostMemory("new_shape")
                                         .HostMemory("output_shape"));
  // TensorFlow runs these eagerly as functions, whose arguments of int32 it
  // looks for on the host.
  const uint64_t types = kCopiedTypes & ~kInt32Type;
  registrar.Add<SparseSliceKernel>(KernelDef("SparseSlice")
                                       .HostMemory("shape")
                                       .HostMemory("start")
                                       .HostMemory("size")
                                       .HostMemory("output_shape"),
                                   "T", types);
  registrar.Add<SparseSplitKernel>(KernelDef("SparseSplit")
                                       .HostMemory("split_dim")
                                       .HostMemory("shape")
                                       .HostMemory("output_shape"),
                                   "T", types);
  registrar.Add<SparseConcatKernel>(
      KernelDef("SparseConcat").HostMemory("shapes").HostMemory("output_shape"),
      "T", types);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SPARSE_TENSOR_H_
