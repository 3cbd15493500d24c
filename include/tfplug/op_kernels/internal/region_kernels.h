// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_REGION_KERNELS_H_
#define TFPLUG_OP_KERNELS_INTERNAL_REGION_KERNELS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/kernel.h"
#include "tfplug/kernel/kernel_context.h"
#include "tfplug/op_kernels/reshape.h"
#include "tfplug/runtime/node_ports.h"

#pragma GCC visibility push(hidden)

// Kernels for ops that move no elements, for use in regions only: outside,
// TensorFlow has them for every device.
namespace tfplug::op_kernels_internal {

// Identity, StopGradient, PreventGradient and Snapshot.
class SameTensorKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
    return context.SetOutput(0, x);
  }
};

// Shape, whose output is in host memory.
class ShapeKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
    const int rank = x.rank();
    TFPLUG_ASSIGN_OR_RETURN(const Tensor y, context.AllocateOutput(0, {rank}));
    for (int d = 0; d < rank; ++d) {
      if (y.dtype() == DataType::kInt64) {
        y.flat<int64_t>()[static_cast<size_t>(d)] = x.dim(d);
      } else if (x.dim(d) > std::numeric_limits<int32_t>::max()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "Shape output type is 32-bit but dim ", d, " is ", x.dim(d)));
      } else {
        y.flat<int32_t>()[static_cast<size_t>(d)] =
            static_cast<int32_t>(x.dim(d));
      }
    }
    return absl::OkStatus();
  }
};

// Adds KernelT for tensors in device memory and, of int32, in host memory,
// where TensorFlow keeps them.
template <class KernelT>
void AddInRegions(const char* op, const char* host_input) {
  std::vector<DataType> types;
  for (int i = 1; i < internal::kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    if (type != DataType::kInt32 && DataTypeSize(type) != 0) {
      types.push_back(type);
    }
  }
  constexpr auto kFunctions = kernel_internal::KernelFunctionsOf<KernelT>();
  KernelDef on_device = KernelDef(op).TypeConstraint("T", std::move(types));
  if (*host_input != '\0') {
    on_device = std::move(on_device).HostMemory(host_input);
  }
  runtime::KernelsInRegions().AddMade(std::move(on_device), kFunctions);
  runtime::KernelsInRegions().AddMade(
      KernelDef(op).TypeConstraint<int32_t>("T").AllInHostMemory(), kFunctions);
}

// Adds all of them, once.
inline void AddKernelsInRegions() {
  if (!runtime::KernelsInRegions().empty()) return;
  for (const char* op :
       {"Identity", "PreventGradient", "Snapshot", "StopGradient"}) {
    AddInRegions<SameTensorKernel>(op, "");
  }
  AddInRegions<ReshapeKernel>("Reshape", "shape");
  AddInRegions<ExpandDimsKernel>("ExpandDims", "dim");
  AddInRegions<SqueezeKernel>("Squeeze", "");
  AddInRegions<ShapeKernel>("Shape", "output");
}

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_REGION_KERNELS_H_
