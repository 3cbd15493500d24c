// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_HOST_TENSOR_H_
#define CPU_SIM_KERNELS_HOST_TENSOR_H_

#include <tfplug/kernel/tensor.h>

#include <cstdint>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/loop.h"

namespace cpu_sim {

// Returns the elements of an int32 or int64 tensor in host memory.
inline Dims ReadInts(const tfplug::Tensor& tensor) {
  Dims values(static_cast<size_t>(tensor.num_elements()));
  if (tensor.dtype() == tfplug::DataType::kInt32) {
    absl::c_copy(tensor.flat<int32_t>(), values.begin());
  } else {
    absl::c_copy(tensor.flat<int64_t>(), values.begin());
  }
  return values;
}

// Like ReadInts, for a shape or a list of dimensions.
inline absl::StatusOr<Dims> ReadDims(const tfplug::Tensor& tensor) {
  if (tensor.rank() > 1) {
    return absl::InvalidArgumentError(
        "a shape or list of dimensions must be a vector or scalar, not " +
        tensor.shape().ToString());
  }
  return ReadInts(tensor);
}

// Returns the padding before and after each dimension of `shape`.
inline absl::StatusOr<Dims> ReadPaddings(const tfplug::Tensor& paddings,
                                         const tfplug::Shape& shape) {
  if (paddings.shape() != tfplug::Shape{shape.rank(), 2}) {
    return absl::InvalidArgumentError(
        "paddings must be a matrix with 2 columns and a row for each "
        "dimension of " +
        shape.ToString() + ", not " + paddings.shape().ToString());
  }
  return ReadInts(paddings);
}

// Returns a host tensor's elements as a shape.
inline absl::StatusOr<tfplug::Shape> ReadShape(const tfplug::Tensor& tensor) {
  absl::StatusOr<Dims> dims = ReadDims(tensor);
  if (!dims.ok()) return dims.status();
  for (const int64_t size : *dims) {
    if (size < 0) {
      return absl::InvalidArgumentError("a dimension must not have size " +
                                        std::to_string(size));
    }
  }
  return tfplug::Shape(*dims);
}

// Returns the index of a dimension of a tensor of `rank`. A negative `axis`
// counts from the end.
inline absl::StatusOr<int> CheckAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError("dimension " + std::to_string(axis) +
                                      " is out of range for a tensor of rank " +
                                      std::to_string(rank));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// Returns a tensor's elements, which CheckAxis converts to indices of
// dimensions.
inline absl::StatusOr<Dims> ReadAxes(const tfplug::Tensor& tensor, int rank) {
  absl::StatusOr<Dims> axes = ReadDims(tensor);
  if (!axes.ok()) return axes;
  for (int64_t& axis : *axes) {
    const absl::StatusOr<int> checked = CheckAxis(axis, rank);
    if (!checked.ok()) return checked.status();
    axis = *checked;
  }
  return axes;
}

// Returns a tensor's only element, which CheckAxis converts to the index of a
// dimension.
inline absl::StatusOr<int> ReadAxis(const tfplug::Tensor& tensor, int rank) {
  const absl::StatusOr<Dims> axes = ReadAxes(tensor, rank);
  if (!axes.ok()) return axes.status();
  if (axes->size() != 1) {
    return absl::InvalidArgumentError("expected one dimension, not " +
                                      std::to_string(axes->size()));
  }
  return static_cast<int>(axes->front());
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_HOST_TENSOR_H_
