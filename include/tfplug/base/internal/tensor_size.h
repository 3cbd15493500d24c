// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_TENSOR_SIZE_H_
#define TFPLUG_BASE_INTERNAL_TENSOR_SIZE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/abi/tf_tstring.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/shape.h"

#pragma GCC visibility push(hidden)

// Computes the size of a tensor, with all checks. TensorFlow aborts on some of
// the shapes that these functions reject, and overflows silently on others.
namespace tfplug::internal {

struct TensorSize {
  int64_t elements = 0;
  size_t bytes = 0;
};

// Stores the number of elements in `*count`. Allocates nothing, for the fast
// path. Returns false if no tensor can have `shape`; CheckShape then returns
// the error.
inline bool CountElements(const Shape& shape, int64_t* count) {
  *count = shape.num_elements();
  return *count >= 0;
}

// Returns INVALID_ARGUMENT if no tensor can have `shape`.
[[gnu::cold, gnu::noinline]] inline absl::Status CheckShape(
    const Shape& shape) {
  if (shape.num_elements() >= 0) return absl::OkStatus();
  if (shape.rank() > Shape::kMaxRank) {
    return absl::InvalidArgumentError("a tensor cannot have " +
                                      std::to_string(shape.rank()) +
                                      " dimensions: TensorFlow's limit is " +
                                      std::to_string(Shape::kMaxRank));
  }
  std::string reason = "the number of elements exceeds the range of int64";
  for (int64_t dim : shape.dims()) {
    if (dim < 0) reason = "dimension " + std::to_string(dim) + " is negative";
  }
  return absl::InvalidArgumentError("a tensor cannot have the shape " +
                                    shape.ToString() + ": " + reason);
}

// Returns the size of one element in host memory, in bytes, or INVALID_ARGUMENT
// for a type whose elements are TensorFlow's own objects (resource, variant), a
// reference type, and a type that is newer than these headers.
inline absl::StatusOr<size_t> ElementSize(DataType dtype) {
  if (size_t size = DataTypeSize(dtype); ABSL_PREDICT_TRUE(size != 0)) {
    return size;
  }
  if (dtype == DataType::kString) {
    return capi::StructInfo<capi::TF_TString>::kSize;
  }
  return absl::InvalidArgumentError("elements of type " + DataTypeName(dtype) +
                                    " have no fixed size");
}

// Returns the size of a tensor in host memory, or INVALID_ARGUMENT if `dtype`
// has no size or no tensor can have `shape`.
inline absl::StatusOr<TensorSize> CheckedSize(DataType dtype,
                                              const Shape& shape) {
  absl::StatusOr<size_t> element = ElementSize(dtype);
  if (ABSL_PREDICT_FALSE(!element.ok())) return std::move(element).status();
  TensorSize size;
  if (ABSL_PREDICT_FALSE(!CountElements(shape, &size.elements))) {
    return CheckShape(shape);
  }
  // Signed, because TensorFlow counts bytes in int64 too.
  int64_t bytes;
  if (ABSL_PREDICT_FALSE(__builtin_mul_overflow(
          size.elements, static_cast<int64_t>(*element), &bytes))) {
    return absl::InvalidArgumentError(
        "a tensor " + DataTypeName(dtype) + shape.ToString() +
        " is too large: its number of bytes exceeds the range of int64");
  }
  size.bytes = static_cast<size_t>(bytes);
  return size;
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_TENSOR_SIZE_H_
