// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_SHAPE_INFERENCE_H_
#define TFPLUG_KERNEL_SHAPE_INFERENCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/shape.h"
#include "tfplug/base/status.h"

namespace tfplug {

// A dimension of a shape that is being inferred.
class DimensionHandle {
 public:
  // Unknown.
  DimensionHandle() = default;
  explicit DimensionHandle(capi::TF_DimensionHandle* handle)
      : handle_(handle) {}

  bool is_known() const {
    return handle_ != nullptr &&
           internal::tensorflow.TF_DimensionHandleValueKnown(handle_.get()) !=
               0;
  }
  // -1 if unknown.
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

// A shape that is being inferred: known, known in part, or not at all.
// Move-only; valid while the shape function runs.
class ShapeHandle {
 public:
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

// What a shape function works with (TF_ShapeInferenceContext): shapes of the
// inputs in, shapes of the outputs out. Lives during the function only.
class ShapeInference {
 public:
  explicit ShapeInference(capi::TF_ShapeInferenceContext* context)
      : context_(context) {}
  ShapeInference(const ShapeInference&) = delete;
  ShapeInference& operator=(const ShapeInference&) = delete;

  int64_t num_inputs() const {
    return internal::tensorflow.TF_ShapeInferenceContextNumInputs(context_);
  }

  // The shape of input `i`. Releases that cannot give any but the first (see
  // core_cannot) fail for the others.
  absl::StatusOr<ShapeHandle> GetInput(int i) {
    if (i < 0 || i >= num_inputs()) {
      return absl::OutOfRangeError("there is no input " + std::to_string(i) +
                                   ", the node has " +
                                   std::to_string(num_inputs()));
    }
    auto shape = Make([&](capi::TF_ShapeHandle* to, capi::TF_Status* status) {
      internal::tensorflow.TF_ShapeInferenceContextGetInput(context_, i, to,
                                                            status);
    });
    if (absl::IsInvalidArgument(shape.status())) core_cannot_ = true;
    return shape;
  }

  // Output `i` has `shape`.
  absl::Status SetOutput(int i, const ShapeHandle& shape) {
    if (i < 0) return absl::OutOfRangeError("there is no output below 0");
    OwnedStatus status;
    internal::tensorflow.TF_ShapeInferenceContextSetOutput(
        context_, i, shape.get(), status.get());
    const absl::Status result = status.ToStatus();
    if (absl::IsInvalidArgument(result) && i > 0) core_cannot_ = true;
    return result;
  }
  // Nothing is known of any output.
  absl::Status SetUnknownShape() {
    OwnedStatus status;
    internal::tensorflow.TF_ShapeInferenceContextSetUnknownShape(context_,
                                                                 status.get());
    return status.ToStatus();
  }

  // ---- Making shapes -------------------------------------------------------

  absl::StatusOr<ShapeHandle> MakeScalar() {
    return Took(internal::tensorflow.TF_ShapeInferenceContextScalar(context_));
  }
  // Of rank 1. A size of -1 is unknown.
  absl::StatusOr<ShapeHandle> MakeVector(int64_t size) {
    return Took(internal::tensorflow.TF_ShapeInferenceContextVectorFromSize(
        context_, static_cast<size_t>(size)));
  }
  // Of any rank; a dimension of -1 is unknown.
  absl::StatusOr<ShapeHandle> MakeShape(const Shape& shape) {
    absl::StatusOr<ShapeHandle> all = MakeScalar();
    for (int i = 0; i < shape.rank() && all.ok(); ++i) {
      const auto one = MakeVector(shape.dim(i));
      if (!one.ok()) return one.status();
      all = Concatenate(*all, *one);
    }
    return all;
  }
  // The dimensions of `first`, then those of `second`.
  absl::StatusOr<ShapeHandle> Concatenate(const ShapeHandle& first,
                                          const ShapeHandle& second) {
    return Make([&](capi::TF_ShapeHandle* to, capi::TF_Status* status) {
      internal::tensorflow.TF_ShapeInferenceContextConcatenateShapes(
          context_, first.get(), second.get(), to, status);
    });
  }
  // Dimensions [start, end) of `shape`; below 0 counts from the end.
  absl::StatusOr<ShapeHandle> Subshape(const ShapeHandle& shape, int64_t start,
                                       int64_t end = INT64_MAX) {
    return Make([&](capi::TF_ShapeHandle* to, capi::TF_Status* status) {
      internal::tensorflow.TF_ShapeInferenceContextSubshape(
          context_, shape.get(), start, end, to, status);
    });
  }

  // ---- Asking --------------------------------------------------------------

  bool has_rank(const ShapeHandle& shape) const {
    return internal::tensorflow.TF_ShapeInferenceContextRankKnown(
               context_, shape.get()) != 0;
  }
  // -1 if unknown.
  int64_t rank(const ShapeHandle& shape) const {
    return internal::tensorflow.TF_ShapeInferenceContextRank(context_,
                                                             shape.get());
  }
  // Dimension `i`, from the end if below 0; unknown where the rank is.
  absl::StatusOr<DimensionHandle> GetDim(const ShapeHandle& shape,
                                         int64_t i) const {
    if (!has_rank(shape)) return DimensionHandle();
    const int64_t n = rank(shape);
    if (i < -n || i >= n) {
      return absl::OutOfRangeError("there is no dimension " +
                                   std::to_string(i) + " in a shape of rank " +
                                   std::to_string(n));
    }
    DimensionHandle result(internal::tensorflow.TF_NewDimensionHandle());
    if (result.get() == nullptr) {
      return absl::ResourceExhaustedError("core made no handle");
    }
    internal::tensorflow.TF_ShapeInferenceContextDim(context_, shape.get(), i,
                                                     result.get());
    return result;
  }

  // `shape`, of which it is then known that it has this rank, at least or at
  // most; INVALID_ARGUMENT where it has another.
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

  // The node's attribute `attr`, of kind type: core gives no others here.
  absl::StatusOr<DataType> GetTypeAttr(const char* attr) const {
    OwnedStatus status;
    capi::TF_DataType value = capi::TF_FLOAT;
    internal::tensorflow.TF_ShapeInferenceContext_GetAttrType(
        context_, attr, &value, status.get());
    if (!status.ok()) {
      const absl::Status failure = status.ToStatus();
      return absl::Status(failure.code(),
                          std::string("attribute '") + attr +
                              "', as type: " + std::string(failure.message()));
    }
    return static_cast<DataType>(value);
  }

  // Whether something failed that is right to ask for, and that this core has
  // wrong: old releases take no index but 0 in set_output and input. A shape
  // function that fails for this leaves all outputs unknown; the op goes on.
  bool core_cannot() const { return core_cannot_; }

  capi::TF_ShapeInferenceContext* get() const { return context_; }

 private:
  static absl::StatusOr<ShapeHandle> Took(capi::TF_ShapeHandle* handle) {
    if (handle == nullptr) {
      return absl::ResourceExhaustedError("core made no shape handle");
    }
    return ShapeHandle(handle);
  }
  template <class Fill>
  absl::StatusOr<ShapeHandle> Make(Fill fill) {
    auto result = Took(internal::tensorflow.TF_NewShapeHandle());
    if (!result.ok()) return result;
    OwnedStatus status;
    fill(result->get(), status.get());
    if (!status.ok()) return status.ToStatus();
    return result;
  }
  template <class F>
  absl::StatusOr<ShapeHandle> WithRank(F function, const ShapeHandle& shape,
                                       int64_t rank) {
    return Make([&](capi::TF_ShapeHandle* to, capi::TF_Status* status) {
      (internal::tensorflow.*function)(context_, shape.get(), rank, to, status);
    });
  }

  capi::TF_ShapeInferenceContext* const context_;
  bool core_cannot_ = false;
};

}  // namespace tfplug

#endif  // TFPLUG_KERNEL_SHAPE_INFERENCE_H_
