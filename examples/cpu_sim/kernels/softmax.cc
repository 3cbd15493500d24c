// SPDX-License-Identifier: Apache-2.0
#include "kernels/softmax.h"

#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/nn.h>

#include <cstdint>

#include "cpu_sim.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

using SoftmaxFunction = void (*)(const float*, float*, int64_t rows,
                                 int64_t classes);

template <SoftmaxFunction function>
class SoftmaxKernel final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor logits, context.GetInput(0));
    if (logits.rank() < 1) {
      return absl::InvalidArgumentError("logits must have >= 1 dimension");
    }
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(0, logits.shape()));
    if (y.num_elements() == 0) return absl::OkStatus();
    const int64_t classes = logits.dim(logits.rank() - 1);
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(function, logits.flat<float>(), y.flat<float>(),
                          logits.num_elements() / classes, classes);
  }
};
TFPLUG_REGISTER_KERNEL(SoftmaxKernel<&Softmax<float>>,
                       ops::Softmax().T<float>());
TFPLUG_REGISTER_KERNEL(SoftmaxKernel<&LogSoftmax<float>>,
                       ops::LogSoftmax().T<float>());

template <typename Label>
class SparseCrossEntropyKernel final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::SparseSoftmaxCrossEntropyWithLogits;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor logits,
                            context.GetInput(Op::features));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor labels,
                            context.GetInput(Op::labels));
    if (logits.rank() != 2 || labels.rank() != 1 ||
        labels.dim(0) != logits.dim(0) || logits.dim(1) == 0) {
      return absl::InvalidArgumentError(
          "logits must be a matrix, and labels a vector with an element per "
          "row, not " +
          logits.shape().ToString() + " and " + labels.shape().ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor loss,
                            context.AllocateOutput(Op::loss, labels.shape()));
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor backprop,
        context.AllocateOutput(Op::backprop, logits.shape()));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(&SparseCrossEntropy<float, Label>,
                          logits.flat<float>(), labels.flat<Label>(),
                          loss.flat<float>(), backprop.flat<float>(),
                          logits.dim(0), logits.dim(1));
  }
};
TFPLUG_REGISTER_KERNEL(
    SparseCrossEntropyKernel<int32_t>,
    ops::SparseSoftmaxCrossEntropyWithLogits().T<float>().Tlabels<int32_t>());
TFPLUG_REGISTER_KERNEL(
    SparseCrossEntropyKernel<int64_t>,
    ops::SparseSoftmaxCrossEntropyWithLogits().T<float>().Tlabels<int64_t>());

class CrossEntropyKernel final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    using Op = ops::SoftmaxCrossEntropyWithLogits;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor logits,
                            context.GetInput(Op::features));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor labels,
                            context.GetInput(Op::labels));
    TFPLUG_ASSIGN_OR_RETURN(
        const Dims shape,
        BroadcastShape(logits.shape().dims(), labels.shape().dims()));
    if (shape.size() != 2 || shape[1] == 0) {
      return absl::InvalidArgumentError(
          "logits and labels must be matrices with at least one class, or "
          "broadcast to them, not " +
          logits.shape().ToString() + " and " + labels.shape().ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor loss,
                            context.AllocateOutput(Op::loss, {shape[0]}));
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor backprop,
        context.AllocateOutput(Op::backprop, tfplug::Shape(shape)));
    TFPLUG_ASSIGN_OR_RETURN(const Dims x,
                            BroadcastStrides(logits.shape().dims(), shape));
    TFPLUG_ASSIGN_OR_RETURN(const Dims label,
                            BroadcastStrides(labels.shape().dims(), shape));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(
        [x_row = x[0], x_column = x[1], label_row = label[0],
         label_column = label[1]](const float* logits, const float* labels,
                                  float* loss, float* backprop, int64_t rows,
                                  int64_t classes) {
          CrossEntropy<float>({logits, x_row, x_column},
                              {labels, label_row, label_column}, loss, backprop,
                              rows, classes);
        },
        logits.flat<float>(), labels.flat<float>(), loss.flat<float>(),
        backprop.flat<float>(), shape[0], shape[1]);
  }
};
TFPLUG_REGISTER_KERNEL(CrossEntropyKernel,
                       ops::SoftmaxCrossEntropyWithLogits().T<float>());

}  // namespace
}  // namespace cpu_sim
