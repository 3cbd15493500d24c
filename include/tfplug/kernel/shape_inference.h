// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_SHAPE_INFERENCE_H_
#define TFPLUG_KERNEL_SHAPE_INFERENCE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/shape.h"
#include "tfplug/base/status.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// A dimension of a shape that is being inferred.
class DimensionHandle {
 public:
  // Constructs an unknown dimension.
  DimensionHandle() = default;
  explicit DimensionHandle(capi::TF_DimensionHandle* handle)
      : handle_(handle) {}

  bool is_known() const {
    return handle_ != nullptr &&
           internal::tensorflow.TF_DimensionHandleValueKnown(handle_.get()) !=
               0;
  }
  // Returns the size; -1 if unknown.
  int64_t value() const {
    if (!is_known()) return -1;
    return internal::tensorflow.TF_DimensionHandleValue(handle_.get());
  }
  capi::TF_DimensionHandle* get() const { return handle_.get(); }

 private:
  struct Deleter {
    void operator()(capi::TF_DimensionHandle* handle) const {
      internal::tensorflow.TF_DeleteDimensionHandle(handle);
    }
  };
  std::unique_ptr<capi::TF_DimensionHandle, Deleter> handle_;
};

// A shape that is being inferred: known, partially known or unknown. Move-only;
// valid while the shape function runs.
class ShapeHandle {
 public:
  // Constructs an unknown shape.
  ShapeHandle() : ShapeHandle(internal::tensorflow.TF_NewShapeHandle()) {}
  explicit ShapeHandle(capi::TF_ShapeHandle* handle) : handle_(handle) {}
  capi::TF_ShapeHandle* get() const { return handle_.get(); }

 private:
  struct Deleter {
    void operator()(capi::TF_ShapeHandle* handle) const {
      internal::tensorflow.TF_DeleteShapeHandle(handle);
    }
  };
  std::unique_ptr<capi::TF_ShapeHandle, Deleter> handle_;
};

// One call of a shape function (TF_ShapeInferenceContext): reads the shapes of
// the node's inputs and sets the shapes of its outputs. Valid during the call
// only.
class ShapeInference {
 public:
  // The C API does not report the number of outputs, so it comes from the
  // OpDef.
  explicit ShapeInference(capi::TF_ShapeInferenceContext* context,
                          int num_outputs = std::numeric_limits<int>::max())
      : context_(context), num_outputs_(num_outputs) {}
  ShapeInference(const ShapeInference&) = delete;
  ShapeInference& operator=(const ShapeInference&) = delete;

  int64_t num_inputs() const {
    return internal::tensorflow.TF_ShapeInferenceContextNumInputs(context_);
  }

  // Returns the shape of input `i`. Old releases accept only the index 0 here
  // and in SetOutput; if a shape function fails for that reason, the framework
  // sets all outputs to unknown and the op works.
  absl::StatusOr<ShapeHandle> GetInput(int i) {
    if (i < 0 || i >= num_inputs()) {
      return absl::OutOfRangeError("there is no input " + std::to_string(i) +
                                   ": the number of inputs is " +
                                   std::to_string(num_inputs()));
    }
    auto shape = Fill([&](capi::TF_ShapeHandle* to, capi::TF_Status* status) {
      internal::tensorflow.TF_ShapeInferenceContextGetInput(context_, i, to,
                                                            status);
    });
    if (absl::IsInvalidArgument(shape.status())) hit_index_limit_ = true;
    return shape;
  }

  // Sets the shape of output `i`.
  absl::Status SetOutput(int i, const ShapeHandle& shape) {
    if (i < 0 || i >= num_outputs_) {
      return absl::OutOfRangeError("there is no output " + std::to_string(i) +
                                   ": the number of outputs is " +
                                   std::to_string(num_outputs_));
    }
    OwnedStatus status;
    internal::tensorflow.TF_ShapeInferenceContextSetOutput(
        context_, i, shape.get(), status.get());
    const absl::Status result = status.ToStatus();
    if (absl::IsInvalidArgument(result) && i > 0) hit_index_limit_ = true;
    return result;
  }
  // Does the same with a result of the functions below, or returns its error.
  absl::Status SetOutput(int i, const absl::StatusOr<ShapeHandle>& shape) {
    return shape.ok() ? SetOutput(i, *shape) : shape.status();
  }
  // Sets the shapes of all outputs to unknown.
  absl::Status SetUnknownShape() {
    OwnedStatus status;
    internal::tensorflow.TF_ShapeInferenceContextSetUnknownShape(context_,
                                                                 status.get());
    return status.ToStatus();
  }

  // ---- Constructing shapes -------------------------------------------------

  absl::StatusOr<ShapeHandle> MakeScalar() {
    return Wrap(internal::tensorflow.TF_ShapeInferenceContextScalar(context_));
  }
  // Returns a shape of rank 1. A size of -1 is unknown. INVALID_ARGUMENT if it
  // is below -1.
  absl::StatusOr<ShapeHandle> MakeVector(int64_t size) {
    if (size < -1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a dimension cannot be ", size, "; -1 stands for an unknown one"));
    }
    return Wrap(internal::tensorflow.TF_ShapeInferenceContextVectorFromSize(
        context_, static_cast<size_t>(size)));
  }
  // Returns a shape of any rank. A dimension of -1 is unknown.
  absl::StatusOr<ShapeHandle> MakeShape(const Shape& shape) {
    absl::StatusOr<ShapeHandle> all = MakeScalar();
    for (int i = 0; i < shape.rank() && all.ok(); ++i) {
      const auto one = MakeVector(shape.dim(i));
      if (!one.ok()) return one.status();
      all = Concatenate(*all, *one);
    }
    return all;
  }
  // Returns the dimensions of `first`, followed by those of `second`.
  absl::StatusOr<ShapeHandle> Concatenate(const ShapeHandle& first,
                                          const ShapeHandle& second) {
    return Fill([&](capi::TF_ShapeHandle* to, capi::TF_Status* status) {
      internal::tensorflow.TF_ShapeInferenceContextConcatenateShapes(
          context_, first.get(), second.get(), to, status);
    });
  }
  // Returns dimensions [start, end) of `shape`. Negative indices count from the
  // end.
  absl::StatusOr<ShapeHandle> Subshape(const ShapeHandle& shape, int64_t start,
                                       int64_t end = INT64_MAX) {
    return Fill([&](capi::TF_ShapeHandle* to, capi::TF_Status* status) {
      internal::tensorflow.TF_ShapeInferenceContextSubshape(
          context_, shape.get(), start, end, to, status);
    });
  }

  // ---- Reading shapes and attributes ---------------------------------------

  bool has_rank(const ShapeHandle& shape) const {
    return internal::tensorflow.TF_ShapeInferenceContextRankKnown(
               context_, shape.get()) != 0;
  }
  // Returns the number of dimensions; -1 if unknown.
  int64_t rank(const ShapeHandle& shape) const {
    return internal::tensorflow.TF_ShapeInferenceContextRank(context_,
                                                             shape.get());
  }
  // Returns dimension `i`; a negative index counts from the end. The dimension
  // is unknown if the rank is unknown.
  absl::StatusOr<DimensionHandle> GetDim(const ShapeHandle& shape,
                                         int64_t i) const {
    if (!has_rank(shape)) return DimensionHandle();
    const int64_t n = rank(shape);
    if (i < -n || i >= n) {
      return absl::OutOfRangeError("a shape of rank " + std::to_string(n) +
                                   " has no dimension " + std::to_string(i));
    }
    DimensionHandle result(internal::tensorflow.TF_NewDimensionHandle());
    if (result.get() == nullptr) {
      return absl::ResourceExhaustedError(
          "TensorFlow returned no TF_DimensionHandle");
    }
    internal::tensorflow.TF_ShapeInferenceContextDim(context_, shape.get(), i,
                                                     result.get());
    return result;
  }

  // Return `shape` with the additional information that its rank is `rank`, at
  // least `rank` or at most `rank`. INVALID_ARGUMENT if that contradicts the
  // shape.
  absl::StatusOr<ShapeHandle> WithRank(const ShapeHandle& shape, int64_t rank) {
    return WithRank(&capi::Functions::TF_ShapeInferenceContextWithRank, shape,
                    rank);
  }
  absl::StatusOr<ShapeHandle> WithRankAtLeast(const ShapeHandle& shape,
                                              int64_t rank) {
    return WithRank(&capi::Functions::TF_ShapeInferenceContextWithRankAtLeast,
                    shape, rank);
  }
  absl::StatusOr<ShapeHandle> WithRankAtMost(const ShapeHandle& shape,
                                             int64_t rank) {
    return WithRank(&capi::Functions::TF_ShapeInferenceContextWithRankAtMost,
                    shape, rank);
  }

  // Returns the node's attribute `attr`, of kind "type". Shape functions
  // cannot read attributes of other kinds.
  absl::StatusOr<DataType> GetTypeAttr(const char* attr) const {
    OwnedStatus status;
    capi::TF_DataType value = capi::TF_FLOAT;
    internal::tensorflow.TF_ShapeInferenceContext_GetAttrType(
        context_, attr, &value, status.get());
    if (!status.ok()) {
      const absl::Status failure = status.ToStatus();
      return absl::Status(failure.code(),
                          std::string("cannot read attribute '") + attr +
                              "' as type: " + std::string(failure.message()));
    }
    return static_cast<DataType>(value);
  }

  capi::TF_ShapeInferenceContext* get() const { return context_; }

 private:
  friend struct internal::Access;

  static absl::StatusOr<ShapeHandle> Wrap(capi::TF_ShapeHandle* handle) {
    if (handle == nullptr) {
      return absl::ResourceExhaustedError(
          "TensorFlow returned no TF_ShapeHandle");
    }
    return ShapeHandle(handle);
  }
  // Returns a new handle that fill(handle, status) has set.
  template <class F>
  absl::StatusOr<ShapeHandle> Fill(F fill) {
    auto result = Wrap(internal::tensorflow.TF_NewShapeHandle());
    if (!result.ok()) return result;
    OwnedStatus status;
    fill(result->get(), status.get());
    if (!status.ok()) return status.ToStatus();
    return result;
  }
  template <class F>
  absl::StatusOr<ShapeHandle> WithRank(F function, const ShapeHandle& shape,
                                       int64_t rank) {
    return Fill([&](capi::TF_ShapeHandle* to, capi::TF_Status* status) {
      (internal::tensorflow.*function)(context_, shape.get(), rank, to, status);
    });
  }

  capi::TF_ShapeInferenceContext* const context_;
  const int num_outputs_;
  // Set when an old release rejected a valid index.
  bool hit_index_limit_ = false;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_SHAPE_INFERENCE_H_
