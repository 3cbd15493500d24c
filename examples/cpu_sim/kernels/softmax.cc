// SPDX-License-Identifier: Apache-2.0
#include "kernels/softmax.h"

#include <tfplug/register_kernel.h>
#include <tfplug/status_macros.h>

#include <cstdint>

#include "cpu_sim.h"

namespace cpu_sim {
namespace {

using SoftmaxFunction = void (*)(const float*, float*, int64_t rows,
                                 int64_t classes);

template <SoftmaxFunction function>
class SoftmaxKernel final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor logits, context.input(0));
    if (logits.rank() < 1) {
      return absl::InvalidArgumentError("logits must have >= 1 dimension");
    }
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.allocate_output(0, logits.shape()));
    if (y.num_elements() == 0) return absl::OkStatus();
    const int64_t classes = logits.dim(logits.rank() - 1);
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.stream<Stream>());
    return stream->Launch(function, logits.flat<float>(), y.flat<float>(),
                          logits.num_elements() / classes, classes);
  }
};
TFPLUG_REGISTER_KERNEL(SoftmaxKernel<&Softmax<float>>,
                       tfplug::KernelDef("Softmax").TypeConstraint<float>("T"));
TFPLUG_REGISTER_KERNEL(
    SoftmaxKernel<&LogSoftmax<float>>,
    tfplug::KernelDef("LogSoftmax").TypeConstraint<float>("T"));

template <typename Label>
class SparseCrossEntropyKernel final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor logits, context.input(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor labels, context.input(1));
    if (logits.rank() != 2 || labels.rank() != 1 ||
        labels.dim(0) != logits.dim(0) || logits.dim(1) == 0) {
      return absl::InvalidArgumentError(
          "want a matrix of logits and a label for each of its rows, not " +
          logits.shape().ToString() + " and " + labels.shape().ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor loss,
                            context.allocate_output(0, labels.shape()));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor backprop,
                            context.allocate_output(1, logits.shape()));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.stream<Stream>());
    return stream->Launch(&SparseCrossEntropy<float, Label>,
                          logits.flat<float>(), labels.flat<Label>(),
                          loss.flat<float>(), backprop.flat<float>(),
                          logits.dim(0), logits.dim(1));
  }
};
TFPLUG_REGISTER_KERNEL(SparseCrossEntropyKernel<int32_t>,
                       tfplug::KernelDef("SparseSoftmaxCrossEntropyWithLogits")
                           .TypeConstraint<float>("T")
                           .TypeConstraint<int32_t>("Tlabels"));
TFPLUG_REGISTER_KERNEL(SparseCrossEntropyKernel<int64_t>,
                       tfplug::KernelDef("SparseSoftmaxCrossEntropyWithLogits")
                           .TypeConstraint<float>("T")
                           .TypeConstraint<int64_t>("Tlabels"));

class CrossEntropyKernel final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor logits, context.input(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor labels, context.input(1));
    if (logits.shape() != labels.shape() || logits.rank() != 2 ||
        logits.dim(1) == 0) {
      return absl::InvalidArgumentError(
          "want a matrix of logits and one of labels of the same shape, not " +
          logits.shape().ToString() + " and " + labels.shape().ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor loss,
                            context.allocate_output(0, {logits.dim(0)}));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor backprop,
                            context.allocate_output(1, logits.shape()));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.stream<Stream>());
    return stream->Launch(&CrossEntropy<float>, logits.flat<float>(),
                          labels.flat<float>(), loss.flat<float>(),
                          backprop.flat<float>(), logits.dim(0), logits.dim(1));
  }
};
TFPLUG_REGISTER_KERNEL(CrossEntropyKernel,
                       tfplug::KernelDef("SoftmaxCrossEntropyWithLogits")
                           .TypeConstraint<float>("T"));

}  // namespace
}  // namespace cpu_sim
