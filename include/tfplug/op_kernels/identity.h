// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_IDENTITY_H_
#define TFPLUG_OP_KERNELS_IDENTITY_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Ops whose output is the memory of the input, a copy of it, or new memory.
namespace tfplug {
namespace op_kernels_internal {

// Bitcast: the same memory as another type. A dimension is added or removed if
// the sizes of the types differ.
class BitcastKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(to_, construction.GetAttr<DataType>("type"));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, run.GetInput(0));
    const auto from_size = static_cast<int64_t>(DataTypeSize(x.dtype()));
    const auto to_size = static_cast<int64_t>(DataTypeSize(to_));
    Shape shape = x.shape();
    if (from_size > to_size) {
      shape.add_dim(from_size / to_size);
    } else if (from_size < to_size) {
      const int last = shape.rank() - 1;
      if (last < 0 || shape.dim(last) != to_size / from_size) {
        return absl::InvalidArgumentError(absl::StrCat(
            "Cannot bitcast from ", static_cast<int>(x.dtype()), " to ",
            static_cast<int>(to_), ": ", DataTypeName(x.dtype()), " of shape ",
            shape.ToString(), " to ", DataTypeName(to_),
            ", which needs a last dimension of ", to_size / from_size));
      }
      shape = Shape(shape.dims().first(static_cast<size_t>(last)));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Tensor y, x.Bitcast(to_, shape));
    return run.context().SetOutput(0, y);
  }

 private:
  DataType to_{};
};

// DeepCopy and Snapshot.
class CopyKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    return Copy(run, x, y);
  }
};

// Empty: new memory, of zeros if the attribute `init` is set.
class EmptyKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(is_zero_, construction.GetAttr<bool>("init"));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, GetShape(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    return is_zero_ ? Fill(run, y, 0) : absl::OkStatus();
  }

 private:
  bool is_zero_ = false;
};

}  // namespace op_kernels_internal

inline void IdentityOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  registrar.Add<BitcastKernel>(KernelDef("Bitcast"));
  for (const char* op : {"DeepCopy", "Snapshot"}) {
    registrar.Add<CopyKernel>(KernelDef(op), "T", kCopiedTypes);
  }
  registrar.Add<EmptyKernel>(KernelDef("Empty").HostMemory("shape"), "dtype",
                             kCopiedTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_IDENTITY_H_
