// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_HOST_TASK_KERNEL_H_
#define TFPLUG_OP_KERNELS_HOST_TASK_KERNEL_H_

#include <cstddef>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/op_kernels/read_then_host_kernel.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// A ReadThenHostKernel whose outputs' shapes follow from those of its inputs, for
// ops that are sequential or that a library has only for the host.
class HostTaskKernel : public ReadThenHostKernel {
 public:
  // Returns the shapes of the outputs, or an error if the inputs do not fit.
  virtual absl::StatusOr<std::vector<Shape>> ShapesOf(
      absl::Span<const Shape> inputs) const = 0;
  // Computes the outputs. Not called on a thread of TensorFlow. An exception
  // fails the op.
  virtual absl::Status Compute(absl::Span<const HostArray> inputs,
                               absl::Span<const HostArray> outputs) const = 0;

  absl::Status Compute(absl::Span<const HostArray> inputs,
                       HostOutputs& outputs) const final {
    absl::InlinedVector<Shape, 4> shapes;
    for (const HostArray& input : inputs) shapes.push_back(input.shape);
    TFPLUG_ASSIGN_OR_RETURN(const std::vector<Shape> results, ShapesOf(shapes));
    HostArrays arrays;
    for (size_t i = 0; i < results.size(); ++i) {
      arrays.push_back(outputs.Add(outputs.types()[i], results[i]));
    }
    return Compute(inputs, absl::MakeConstSpan(arrays));
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_HOST_TASK_KERNEL_H_
