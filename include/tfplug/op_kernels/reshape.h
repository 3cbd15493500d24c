// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_RESHAPE_H_
#define TFPLUG_OP_KERNELS_RESHAPE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/kernel.h"
#include "tfplug/kernel/kernel_construction.h"
#include "tfplug/kernel/kernel_context.h"
#include "tfplug/kernel/memory_labels.h"
#include "tfplug/op_kernels/op_run.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Kernels whose output is the memory of input 0, with another shape. TensorFlow
// has them for every device, but keeps int32 in host memory; these are for int32
// in device memory, and for regions.
namespace tfplug {
namespace op_kernels_internal {

// The base of kernels whose output is input 0 with another shape.
class ReshapingKernel : public Kernel {
 public:
  virtual absl::StatusOr<Shape> NewShape(OpRun& run, const Tensor& x) = 0;

  absl::Status Compute(KernelContext& context) final {
    OpRun run(context);
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, NewShape(run, x));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor y, x.Reshape(shape));
    return context.SetOutput(0, y);
  }
};

class ReshapeKernel final : public ReshapingKernel {
 public:
  absl::StatusOr<Shape> NewShape(OpRun& run, const Tensor& x) override {
    TFPLUG_ASSIGN_OR_RETURN(Ints sizes,
                            run.GetVector(1, "sizes input must be 1-D, not "));
    const int64_t count = x.num_elements();
    int64_t product = 1;
    int unknown = -1;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == -1) {
        if (unknown >= 0) {
          return absl::InvalidArgumentError(absl::StrCat(
              "Only one input size may be -1, not both ", unknown, " and ", d));
        }
        unknown = static_cast<int>(d);
      } else if (sizes[d] < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("Size ", d, " must be non-negative, not ", sizes[d]));
      } else if (__builtin_mul_overflow(product, sizes[d], &product)) {
        return absl::InvalidArgumentError(
            "the requested shape has too many elements");
      }
    }
    if (unknown >= 0) {
      if (product == 0) {
        return absl::InvalidArgumentError(
            "reshape cannot infer the missing input size for an empty tensor "
            "unless all specified input sizes are non-zero");
      }
      if (count % product != 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "Input to reshape is a tensor with ", count,
            " values, but the requested shape requires a multiple of ",
            product));
      }
      sizes[static_cast<size_t>(unknown)] = count / product;
      product = count;
    }
    if (product != count) {
      return absl::InvalidArgumentError(
          absl::StrCat("Input to reshape is a tensor with ", count,
                       " values, but the requested shape has ", product));
    }
    return Shape(absl::MakeConstSpan(sizes.data(), sizes.size()));
  }
};

class ExpandDimsKernel final : public ReshapingKernel {
 public:
  absl::StatusOr<Shape> NewShape(OpRun& run, const Tensor& x) override {
    TFPLUG_ASSIGN_OR_RETURN(const Ints values, run.GetInts(1));
    if (values.size() != 1) {
      return absl::InvalidArgumentError(
          "'dim' must be a tensor with a single value");
    }
    const int64_t rank = x.rank(), dim = values[0];
    if (dim < -1 - rank || dim > rank) {
      return absl::InvalidArgumentError(
          absl::StrCat("Tried to expand dim index ", dim, " for tensor with ",
                       rank, " dimensions."));
    }
    const Shape shape = x.shape();
    std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
    dims.insert(dims.begin() + (dim < 0 ? dim + rank + 1 : dim), 1);
    return Shape(dims);
  }
};

class SqueezeKernel final : public ReshapingKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(
        dims_, construction.GetAttr<std::vector<int64_t>>("squeeze_dims"));
    return absl::OkStatus();
  }
  absl::StatusOr<Shape> NewShape(OpRun&, const Tensor& x) override {
    const int rank = x.rank();
    std::vector<bool> removed(static_cast<size_t>(rank));
    for (int64_t dim : dims_) {
      if (dim < -rank || dim >= rank) {
        return absl::InvalidArgumentError(
            absl::StrCat("Tried to squeeze dim index ", dim,
                         " for tensor with ", rank, " dimensions."));
      }
      const auto d = static_cast<int>(dim < 0 ? dim + rank : dim);
      if (x.dim(d) != 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("Can not squeeze dim[", d,
                         "], expected a dimension of 1, got ", x.dim(d)));
      }
      removed[static_cast<size_t>(d)] = true;
    }
    Shape shape;
    for (int d = 0; d < rank; ++d) {
      const bool is_removed =
          dims_.empty() ? x.dim(d) == 1 : removed[static_cast<size_t>(d)];
      if (!is_removed) shape.add_dim(x.dim(d));
    }
    return shape;
  }

 private:
  std::vector<int64_t> dims_;
};

}  // namespace op_kernels_internal

// Registers kernels for int32 that CopyOnStream (passes/copy_on_stream.h) selects.
inline void ReshapeOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  registrar.Add<ReshapeKernel>(
      KernelDef("Reshape").HostMemory("shape").Label(kOnDeviceLabel), "T",
      kInt32Type);
  registrar.Add<ExpandDimsKernel>(
      KernelDef("ExpandDims").HostMemory("dim").Label(kOnDeviceLabel), "T",
      kInt32Type);
  registrar.Add<SqueezeKernel>(KernelDef("Squeeze").Label(kOnDeviceLabel), "T",
                               kInt32Type);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_RESHAPE_H_
