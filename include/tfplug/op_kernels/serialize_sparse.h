// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SERIALIZE_SPARSE_H_
#define TFPLUG_OP_KERNELS_SERIALIZE_SPARSE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/base/tstring.h"
#include "tfplug/op_kernels/read_then_host_kernel.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/sparse_tensor.h"

#pragma GCC visibility push(hidden)

// SerializeSparse and SerializeManySparse with strings: each tensor becomes the
// bytes of a TensorProto. Variants are C++ objects, which only TensorFlow makes.
namespace tfplug {
namespace op_kernels_internal {

// Returns a serialized tensorflow.TensorProto with `elements`, an array in host
// memory.
inline std::string SerializeTensor(DataType type, const Shape& shape,
                                   absl::string_view elements) {
  std::string sizes, tensor;
  for (int64_t size : shape.dims()) {
    std::string field;
    if (size != 0) {
      internal::AppendField(field, 1, static_cast<uint64_t>(size));
    }
    internal::AppendField(sizes, 2, field);
  }
  internal::AppendField(tensor, 1, static_cast<uint64_t>(type));
  internal::AppendField(tensor, 2, sizes);
  if (!elements.empty()) internal::AppendField(tensor, 4, elements);
  return tensor;
}

inline absl::string_view BytesOf(const void* data, size_t size) {
  return {static_cast<const char*>(data), size};
}

class SerializeSparseKernel : public ReadThenHostKernel {
 public:
  bool IsInputOnHost(int i) const override { return i == 2; }
  bool IsOutputOnHost(int) const override { return true; }
  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    TFPLUG_RETURN_IF_ERROR(CheckShapes(in));
    std::vector<std::string> texts;
    for (const HostArray& array : in) {
      const auto size = static_cast<size_t>(array.shape.num_elements());
      texts.push_back(SerializeTensor(
          array.type, array.shape,
          BytesOf(array.data, size * DataTypeSize(array.type))));
    }
    outputs.AddStrings({3}, std::move(texts));
    return absl::OkStatus();
  }

 protected:
  // The errors of TensorFlow.
  static absl::Status CheckShapes(absl::Span<const HostArray> in) {
    const char* const names[] = {"indices", "values", "shape"};
    for (size_t i = 0; i < 3; ++i) {
      const int rank = i == 0 ? 2 : 1;
      if (in[i].shape.rank() == rank) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "Input ", names[i], " should be a ", i == 0 ? "matrix" : "vector",
          " but received shape ", in[i].shape.ToString()));
    }
    return absl::OkStatus();
  }
};

// The sparse tensors of a batch: those elements whose first coordinate is the
// number of the row.
class SerializeManySparseKernel final : public SerializeSparseKernel {
 public:
  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    TFPLUG_RETURN_IF_ERROR(CheckShapes(in));
    const int64_t rank = in[2].shape.dim(0);
    if (rank < 2) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Rank of input SparseTensor should be > 1, but saw rank: ", rank));
    }
    TFPLUG_ASSIGN_OR_RETURN(const SparseView x,
                            SparseView::Of(in[0], in[1], in[2]));
    TFPLUG_RETURN_IF_ERROR(x.CheckSizes());
    const int64_t rows = x.shape[0];
    // No memory holds the texts of more.
    if (rows > kMostRows) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Invalid shape: a batch of ", rows, " sparse tensors; at most ",
          kMostRows, " can be serialized"));
    }
    TFPLUG_RETURN_IF_ERROR(CheckOrder(x));
    const std::string none_indices =
        SerializeTensor(DataType::kInt64, {0, rank - 1}, "");
    const std::string none = SerializeTensor(in[1].type, {0}, "");
    const std::string shape = SerializeTensor(
        DataType::kInt64, {rank - 1},
        BytesOf(&x.shape[1], static_cast<size_t>(rank - 1) * sizeof(int64_t)));
    std::vector<std::string> texts;
    for (int64_t row = 0; row < rows; ++row) {
      texts.insert(texts.end(), {none_indices, none, shape});
    }
    const size_t size = DataTypeSize(in[1].type);
    for (int64_t i = 0, end; i < x.size(); i = end) {
      const int64_t row = x.row(i)[0];
      std::vector<int64_t> coordinates;
      for (end = i; end < x.size() && x.row(end)[0] == row; ++end) {
        coordinates.insert(coordinates.end(), x.row(end) + 1,
                           x.row(end) + rank);
      }
      std::string* const text = &texts[static_cast<size_t>(3 * row)];
      text[0] = SerializeTensor(
          DataType::kInt64, {end - i, rank - 1},
          BytesOf(coordinates.data(), coordinates.size() * sizeof(int64_t)));
      text[1] = SerializeTensor(
          in[1].type, {end - i},
          BytesOf(in[1].as<char>() + static_cast<size_t>(i) * size,
                  static_cast<size_t>(end - i) * size));
    }
    outputs.AddStrings({rows, 3}, std::move(texts));
    return absl::OkStatus();
  }

 private:
  // Checks that each row of coordinates is in the shape and after the one before.
  static absl::Status CheckOrder(const SparseView& x) {
    const auto rank = static_cast<size_t>(x.rank());
    for (int64_t i = 0; i < x.size(); ++i) {
      const auto row = absl::MakeConstSpan(x.row(i), rank);
      std::string problem;
      if (i > 0) {
        const auto before = absl::MakeConstSpan(x.row(i - 1), rank);
        if (row < before) {
          problem = "out of order; tf.sparse.reorder sorts them";
        }
        if (row == before) problem = "repeated";
      }
      for (size_t d = 0; d < rank; ++d) {
        if (row[d] >= 0 && row[d] < x.shape[d]) continue;
        problem = absl::StrCat("out of bounds: need 0 <= index < [",
                               absl::StrJoin(x.shape, ","), "]");
      }
      if (problem.empty()) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "indices[", i, "] = [", absl::StrJoin(row, ","), "] is ", problem));
    }
    return absl::OkStatus();
  }

  static constexpr int64_t kMostRows = int64_t{1} << 24;
};

}  // namespace op_kernels_internal

inline void SerializeSparseOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  const auto def = [](const char* op) {
    return KernelDef(op)
        .HostMemory("sparse_shape")
        .HostMemory("serialized_sparse")
        .TypeConstraint<TString>("out_type");
  };
  // TensorFlow runs these eagerly as functions, whose arguments of int32 it
  // looks for on the host.
  const uint64_t types = kCopiedTypes & ~kInt32Type;
  registrar.Add<SerializeSparseKernel>(def("SerializeSparse"), "T", types);
  registrar.Add<SerializeManySparseKernel>(def("SerializeManySparse"), "T",
                                           types);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SERIALIZE_SPARSE_H_
