// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_RAGGED_H_
#define TFPLUG_OP_KERNELS_RAGGED_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/read_then_host_kernel.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace op_kernels_internal {

// RaggedTensorToTensor: the rows of a ragged tensor, cut off or filled with the
// default value. On the host, like other ops on lists of indices.
class RaggedToTensorKernel final : public ReadThenHostKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(
        types_,
        construction.GetAttr<std::vector<std::string>>("row_partition_types"));
    if (types_.empty()) {
      return absl::InvalidArgumentError("RaggedTensorToTensor has no rows");
    }
    const std::string& first = types_[0];
    if (first != "FIRST_DIM_SIZE" && first != "ROW_SPLITS") {
      return absl::InvalidArgumentError("Cannot handle " + first +
                                        " in first dimension.");
    }
    for (const std::string& type : types_) {
      const bool is_known = type == "ROW_SPLITS" || type == "VALUE_ROWIDS" ||
                            (type == "FIRST_DIM_SIZE" && &type == &first);
      if (!is_known) {
        return absl::InvalidArgumentError("Unsupported partition type: " +
                                          type);
      }
    }
    return absl::OkStatus();
  }
  bool IsInputOnHost(int i) const override { return i == 0; }

  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    const HostArray &values = in[1], &rest = in[2];
    if (in.size() != types_.size() + 3 || values.shape.rank() == 0) {
      return absl::InvalidArgumentError(
          "values must have at least one dimension, and each type a tensor");
    }
    // Of each level, the row of each element.
    std::vector<std::vector<int64_t>> levels;
    int64_t rows = 0;
    for (size_t i = 0; i < types_.size(); ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const std::vector<int64_t> partition,
                              PartitionOf(in[i + 3], types_[i]));
      if (types_[i] == "FIRST_DIM_SIZE") {
        rows = partition[0];
        continue;
      }
      const bool is_first = levels.empty();
      std::vector<int64_t> ids = partition;
      if (types_[i] == "ROW_SPLITS") {
        TFPLUG_ASSIGN_OR_RETURN(ids, RowsOf(partition));
        const auto count = static_cast<int64_t>(partition.size()) - 1;
        if (i == 0) rows = count;
        const int64_t parents =
            is_first ? rows : static_cast<int64_t>(levels.back().size());
        if (count != parents) {
          return absl::InvalidArgumentError(
              "Invalid row split size: " + std::to_string(count) +
              " rows for " + std::to_string(parents) + " elements");
        }
      }
      levels.push_back(std::move(ids));
    }
    if (levels.empty() ||
        static_cast<int64_t>(levels.back().size()) != values.shape.dim(0)) {
      return absl::InvalidArgumentError(
          "values.shape[0] = " + std::to_string(values.shape.dim(0)) +
          " must be the number of elements of the last row partition, which "
          "is " +
          std::to_string(levels.empty() ? 0 : levels.back().size()));
    }
    // The position of each element in its row, and the size of each dimension.
    Shape shape = {rows};
    std::vector<std::vector<int64_t>> positions;
    int64_t parents = rows;
    for (const std::vector<int64_t>& ids : levels) {
      TFPLUG_ASSIGN_OR_RETURN(std::vector<int64_t> at,
                              PositionsIn(ids, parents));
      int64_t longest = 0;
      for (int64_t position : at) longest = std::max(longest, position + 1);
      shape.add_dim(longest);
      positions.push_back(std::move(at));
      parents = static_cast<int64_t>(ids.size());
    }
    for (int d = 1; d < values.shape.rank(); ++d) {
      shape.add_dim(values.shape.dim(d));
    }
    TFPLUG_RETURN_IF_ERROR(ApplyShape(in[0], shape, levels.size() + 1));
    TFPLUG_RETURN_IF_ERROR(ToShape(shape.dims()).status());
    Shape element(values.shape.dims().subspan(1)), broadcast = element;
    // TensorFlow compares the first dimensions, and broadcasts the last ones.
    bool fits = BroadcastShape(rest.shape, &broadcast).ok() &&
                broadcast == element && rest.shape.rank() <= element.rank();
    for (int d = 0; fits && d < rest.shape.rank(); ++d) {
      fits = rest.shape.dim(d) == 1 || rest.shape.dim(d) == element.dim(d);
    }
    if (!fits) {
      return absl::InvalidArgumentError(
          "default_value.shape=" + rest.shape.ToString() +
          " and rt_input.flat_values.shape=" + values.shape.ToString() +
          " are incompatible: default_value must broadcast to an element");
    }
    const HostArray& y = outputs.Add(values.type, shape);
    FillWith(rest, element, y);
    // The place of each element of a level in the output, -1 if it has none.
    std::vector<int64_t> places(static_cast<size_t>(rows), -1);
    for (int64_t r = 0; r < std::min(rows, shape.dim(0)); ++r) {
      places[static_cast<size_t>(r)] = r;
    }
    for (size_t level = 0; level < levels.size(); ++level) {
      const int64_t size = shape.dim(static_cast<int>(level) + 1);
      std::vector<int64_t> next(levels[level].size(), -1);
      for (size_t i = 0; i < next.size(); ++i) {
        const int64_t row = places[static_cast<size_t>(levels[level][i])];
        const int64_t position = positions[level][i];
        if (row >= 0 && position < size) next[i] = row * size + position;
      }
      places = std::move(next);
    }
    const size_t bytes =
        static_cast<size_t>(element.num_elements()) * DataTypeSize(values.type);
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] < 0 || bytes == 0) continue;
      std::memcpy(y.as<char>() + static_cast<size_t>(places[i]) * bytes,
                  values.as<char>() + i * bytes, bytes);
    }
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<std::vector<int64_t>> PartitionOf(
      const HostArray& array, const std::string& type) {
    const bool is_size = type == "FIRST_DIM_SIZE";
    if (array.shape.rank() != (is_size ? 0 : 1) ||
        (type == "ROW_SPLITS" && array.shape.dim(0) == 0)) {
      return absl::InvalidArgumentError(
          "Invalid first partition input: " + type + " has shape " +
          array.shape.ToString());
    }
    std::vector<int64_t> values = IntegersOf(array);
    if (is_size && values[0] < 0) {
      return absl::InvalidArgumentError(
          "Dimension " + std::to_string(values[0]) + " must be >= 0");
    }
    return values;
  }
  // Returns the row of each element.
  static absl::StatusOr<std::vector<int64_t>> RowsOf(
      const std::vector<int64_t>& splits) {
    std::vector<int64_t> rows;
    for (size_t i = 1; i < splits.size(); ++i) {
      if (splits[0] != 0 || splits[i] < splits[i - 1]) {
        return absl::InvalidArgumentError(
            "row_splits must be sorted in ascending order and begin with 0");
      }
      rows.resize(static_cast<size_t>(splits[i]), static_cast<int64_t>(i) - 1);
    }
    return rows;
  }
  // Returns the position of each element in its row.
  static absl::StatusOr<std::vector<int64_t>> PositionsIn(
      const std::vector<int64_t>& rows, int64_t count) {
    std::vector<int64_t> positions;
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool continues = i > 0 && rows[i] == rows[i - 1];
      if (rows[i] < 0 || rows[i] >= count || (i > 0 && rows[i] < rows[i - 1])) {
        return absl::InvalidArgumentError(
            absl::StrCat("row ids must ascend, in [0, ", count,
                         "), but element ", i, " is in row ", rows[i]));
      }
      positions.push_back(continues ? positions.back() + 1 : 0);
    }
    return positions;
  }
  // Replaces sizes by those of the input, unless they are -1.
  static absl::Status ApplyShape(const HostArray& wanted, Shape& shape,
                                 size_t free) {
    const auto size = [&](int64_t i) {
      return wanted.type == DataType::kInt64 ? wanted.as<int64_t>()[i]
                                             : wanted.as<int32_t>()[i];
    };
    if (wanted.shape.rank() == 0) {
      if (size(0) == -1) return absl::OkStatus();
      return absl::InvalidArgumentError(
          "The only valid scalar shape tensor is the fully unknown shape "
          "specified as -1.");
    }
    if (wanted.shape.rank() != 1) {
      return absl::InvalidArgumentError("shape must be a vector, got shape " +
                                        wanted.shape.ToString());
    }
    Shape all;
    for (int64_t i = 0; i < wanted.shape.dim(0); ++i) all.add_dim(size(i));
    const std::string words =
        "rt_input.shape and shape=" + all.ToString() + " are incompatible: ";
    if (all.rank() != shape.rank()) {
      return absl::InvalidArgumentError(
          words + "rt_input.rank = " + std::to_string(shape.rank()) +
          " but shape.rank = " + std::to_string(all.rank()));
    }
    for (int d = 0; d < shape.rank(); ++d) {
      const int64_t want = size(d);
      const bool is_free = d < static_cast<int>(free);
      if (want < -1 || (want >= 0 && !is_free && want != shape.dim(d))) {
        return absl::InvalidArgumentError(
            absl::StrCat(words, "rt_input.shape[", d, "] = ", shape.dim(d),
                         " but shape[", d, "] = ", want));
      }
      if (want >= 0) shape.set_dim(d, want);
    }
    return absl::OkStatus();
  }
  static void FillWith(const HostArray& value, const Shape& element,
                       const HostArray& y) {
    const size_t size = DataTypeSize(value.type);
    const int64_t per_element = element.num_elements();
    for (int64_t i = 0; i < y.shape.num_elements(); ++i) {
      int64_t from = 0, stride = 1, rest = i % per_element;
      for (int d = element.rank(), own = value.shape.rank(); --own >= 0;) {
        --d;
        if (value.shape.dim(own) > 1) from += rest % element.dim(d) * stride;
        rest /= element.dim(d);
        stride *= value.shape.dim(own);
      }
      std::memcpy(y.as<char>() + static_cast<size_t>(i) * size,
                  value.as<char>() + static_cast<size_t>(from) * size, size);
    }
  }

  std::vector<std::string> types_;
};

}  // namespace op_kernels_internal

inline void RaggedOps(const Registrar& registrar) {
  registrar.Add<op_kernels_internal::RaggedToTensorKernel>(
      KernelDef("RaggedTensorToTensor")
          .TypeConstraint<int32_t, int64_t>("Tindex")
          .TypeConstraint<int32_t, int64_t>("Tshape")
          .HostMemory("shape"),
      "T", kCopiedTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_RAGGED_H_
