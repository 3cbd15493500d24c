// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_BACKEND_H_
#define TFPLUG_PRIMITIVES_BACKEND_H_

#include "absl/status/status.h"
#include "tfplug/ir/expression.h"
#include "tfplug/ir/reduction.h"
#include "tfplug/ir/view.h"
#include "tfplug/primitives/internal/compose.h"
#include "tfplug/primitives/internal/composed_fused.h"
#include "tfplug/primitives/internal/table_of.h"
#include "tfplug/primitives/launch_graph.h"
#include "tfplug/primitives/launcher.h"
#include "tfplug/primitives/nn.h"
#ifndef TFPLUG_SEPARATE
#include "tfplug/primitives/internal/composed.h"
#include "tfplug/primitives/internal/composed_batch_norm.h"
#include "tfplug/primitives/internal/composed_conv.h"
#include "tfplug/primitives/internal/composed_fourier.h"
#include "tfplug/primitives/internal/composed_pool.h"
#include "tfplug/primitives/internal/composed_softmax.h"
#endif

#pragma GCC visibility push(hidden)

namespace tfplug {

// The computations of a device, from which tfplug makes the kernels of
// TensorFlow's ops. Derive from it, with the author's class of streams,
// override Map and Reduce, and register the class with TFPLUG_REGISTER_BACKEND
// (register.h). Nothing here depends on TensorFlow.
//
// Each function enqueues work on `stream` and returns. It is called from any
// thread, for several streams at once. A failure or an exception fails the op,
// and later ops work. reference.h defines all results.
template <class StreamT>
class Backend {
 public:
  using Stream = StreamT;

  virtual ~Backend() = default;

  // ---- Required ------------------------------------------------------------

  // Computes each element of the outputs from the elements of the inputs at the
  // same index. All operands have the same dimensions, at least one element,
  // and the lowest rank to which they could be merged. An output may be the
  // same view of the same memory as an input; otherwise they do not overlap.
  virtual absl::Status Map(StreamT& stream, const Expression& expression,
                           Operands inputs, Operands outputs) = 0;

  // Combines the values of reduction.map over the dimensions that the inputs
  // have and the outputs lack, and computes the outputs with reduction.finish.
  // The outputs have the first dimensions of the inputs and at least one
  // element; the reduced dimensions may be empty (ReduceIdentity). Inputs of
  // `finish` have stride 0 in the reduced dimensions.
  virtual absl::Status Reduce(StreamT& stream, const Reduction& reduction,
                              Operands inputs, Operands outputs) = 0;

  // ---- Optional: composed of Map and Reduce unless overridden --------------

  // Computes c = a b for matrices a[batch..., m, k], b[batch..., k, n] and
  // c[batch..., m, n] with any strides: transposed, or repeated in a batch. A
  // library's matrix product goes here.
  virtual absl::Status MatMul(StreamT& /*stream*/, Launcher& launcher,
                              const Operand& a, const Operand& b,
                              const Operand& c) {
    return primitives_internal::ComposeMatMul(launcher, a, b, c);
  }

  // Combines row updates[i] with output[indices[i]], for each i. updates and
  // output have the same dimensions after the first; indices is a vector of
  // int32 or int64. Indices out of range are ignored. Of several updates of one
  // row, kSet stores the last one. The default visits all updates for every
  // row of the output.
  virtual absl::Status Scatter(StreamT& /*stream*/, Launcher& launcher,
                               ScatterKind kind, const Operand& indices,
                               const Operand& updates, const Operand& output) {
    return primitives_internal::ComposeScatter(launcher, kind, indices, updates,
                                               output);
  }

  // Combines each element with all elements before it in the last dimension:
  // cumulative sums, products, maxima. The default takes log2(size) passes.
  virtual absl::Status Scan(StreamT& /*stream*/, Launcher& launcher,
                            ReduceKind kind, const Operand& input,
                            const Operand& output) {
    return primitives_internal::ComposeScan(launcher, kind, input, output);
  }

  // Finds the largest elements of the last dimension, in descending order, and
  // their int32 indices: as many as `values` and `indices` hold. Equal elements
  // keep their order; NaN is larger than any number. The default compares all
  // pairs.
  virtual absl::Status Sort(StreamT& /*stream*/, Launcher& launcher,
                            const Operand& input, const Operand& values,
                            const Operand& indices) {
    return primitives_internal::ComposeSort(launcher, input, values, indices);
  }

  // Computes the discrete Fourier transform of each row: y[r, k] is the sum over
  // j of x[r, j] exp(-2 pi i j k / n), with the other sign if `is_inverse`, and
  // never divided by n. x and y are dense arrays [rows, n, 2] of float or
  // double with at least one element, which do not overlap; the last dimension
  // has the real and the imaginary part. A library's transform goes here. The
  // default is products of matrices.
  virtual absl::Status Fourier(StreamT& /*stream*/, Launcher& launcher,
                               bool is_inverse, const Operand& x,
                               const Operand& y) {
    return primitives_internal::ComposeFourier(launcher, is_inverse, x, y);
  }

  // ---- Optional: neural networks -------------------------------------------
  //
  // Operands have at least one element; all of one call have one type, except
  // vectors, labels and statistics.

  // Computes a convolution of `image` with `filter` (nn.h). The default copies
  // windows, at most 64 MiB at once, for MatMul, or, if it is depthwise,
  // reduces them.
  virtual absl::Status Conv(StreamT& /*stream*/, Launcher& launcher,
                            const Convolution& conv, const Operand& image,
                            const Operand& filter, const Operand& output) {
    return primitives_internal::ComposeConv(launcher, conv, image, filter,
                                            output);
  }

  // Compute the gradients of a convolution with respect to image and filter.
  virtual absl::Status ConvInputGradient(StreamT& /*stream*/,
                                         Launcher& launcher,
                                         const Convolution& conv,
                                         const Operand& filter,
                                         const Operand& output_gradient,
                                         const Operand& image_gradient) {
    return primitives_internal::ComposeConvInputGradient(
        launcher, conv, filter, output_gradient, image_gradient);
  }
  virtual absl::Status ConvFilterGradient(StreamT& /*stream*/,
                                          Launcher& launcher,
                                          const Convolution& conv,
                                          const Operand& image,
                                          const Operand& output_gradient,
                                          const Operand& filter_gradient) {
    return primitives_internal::ComposeConvFilterGradient(
        launcher, conv, image, output_gradient, filter_gradient);
  }

  // Compute an expression of the elements of a product before they are stored:
  // input 0 is an element of the product, of the type of its operands, and the
  // others are elements of `inputs`. All operands after the expression have the
  // dimensions of the product. The outputs overlap no other operand. The
  // defaults store the product. FindEpilogue (epilogue.h) recognizes what many
  // libraries compute.
  virtual absl::Status MatMulMap(StreamT& /*stream*/, Launcher& launcher,
                                 const Operand& a, const Operand& b,
                                 const Expression& expression, Operands inputs,
                                 Operands outputs) {
    return primitives_internal::ComposeProductMap(
        launcher, a.type, expression, inputs, outputs,
        [&](const Operand& c) { return launcher.MatMul(a, b, c); });
  }
  virtual absl::Status ConvMap(StreamT& /*stream*/, Launcher& launcher,
                               const Convolution& conv, const Operand& image,
                               const Operand& filter,
                               const Expression& expression, Operands inputs,
                               Operands outputs) {
    return primitives_internal::ComposeProductMap(
        launcher, image.type, expression, inputs, outputs,
        [&](const Operand& y) {
          return launcher.Conv(conv, image, filter, y);
        });
  }

  // Computes the steps of a recurrence, one after the other: step t stores the
  // product c = a[t] b, and then the outputs[i][t], an expression of the
  // inputs[i][t]. a, inputs and outputs have the same steps, in any order in
  // memory, and the rows of c: a[steps, rows, k], b[k, n], c[rows, n], others
  // [steps, rows, columns]. What a step reads may be a part of c, or what an
  // earlier step has stored in the same row: rows do not depend on each other,
  // and may be computed at the same time.
  virtual absl::Status Recur(StreamT& /*stream*/, Launcher& launcher,
                             const Operand& a, const Operand& b,
                             const Operand& c, const Expression& expression,
                             Operands inputs, Operands outputs) {
    return primitives_internal::ComposeRecur(launcher, a, b, c, expression,
                                             inputs, outputs);
  }

  // Computes the maximum or the average of each window.
  virtual absl::Status Pool(StreamT& /*stream*/, Launcher& launcher,
                            const Pooling& pooling, const Operand& image,
                            const Operand& output) {
    return primitives_internal::ComposePool(launcher, pooling, image, output);
  }

  // Computes the gradient of Pool. That of a maximum goes to the first element
  // of the window that is equal to `output`. `image` and `output` are not read
  // for averages.
  virtual absl::Status PoolGradient(StreamT& /*stream*/, Launcher& launcher,
                                    const Pooling& pooling,
                                    const Operand& image, const Operand& output,
                                    const Operand& output_gradient,
                                    const Operand& image_gradient) {
    return primitives_internal::ComposePoolGradient(
        launcher, pooling, image, output, output_gradient, image_gradient);
  }

  // Normalize each channel of an image, and compute the gradients.
  virtual absl::Status BatchNormTraining(
      StreamT& /*stream*/, Launcher& launcher, const BatchNormalization& norm,
      const BatchNormTrainingOperands& operands) {
    return primitives_internal::ComposeBatchNormTraining(launcher, norm,
                                                         operands);
  }
  virtual absl::Status BatchNormInference(
      StreamT& /*stream*/, Launcher& launcher, const BatchNormalization& norm,
      const BatchNormInferenceOperands& operands) {
    return primitives_internal::ComposeBatchNormInference(launcher, norm,
                                                          operands);
  }
  virtual absl::Status BatchNormGradient(
      StreamT& /*stream*/, Launcher& launcher, const BatchNormalization& norm,
      const BatchNormGradientOperands& operands) {
    return primitives_internal::ComposeBatchNormGradient(launcher, norm,
                                                         operands);
  }

  // Computes softmax or its logarithm along the last dimension.
  virtual absl::Status Softmax(StreamT& /*stream*/, Launcher& launcher,
                               SoftmaxKind kind, const Operand& logits,
                               const Operand& output) {
    return primitives_internal::ComposeSoftmax(launcher, kind, logits, output);
  }

  // Computes -sum(labels * LogSoftmax(logits)) of each row, the last dimension,
  // and the gradient softmax(logits) - labels. Labels are probabilities, or, of
  // type int32 or int64 and without the last dimension, classes: one out of
  // range gives NaN. Logits and labels may be repeated (stride 0).
  virtual absl::Status CrossEntropy(StreamT& /*stream*/, Launcher& launcher,
                                    const Operand& logits,
                                    const Operand& labels, const Operand& loss,
                                    const Operand& gradient) {
    return primitives_internal::ComposeCrossEntropy(launcher, logits, labels,
                                                    loss, gradient);
  }

  // ---- Optional: graphs ----------------------------------------------------

  // Returns a graph that repeats `work` on `stream`: calls work(other), which
  // enqueues primitives, with a stream that captures them instead of running
  // them. Regions (passes/compile_regions.h) call it for launches that were
  // repeated with the same addresses. The memory of the operands may be freed
  // before the graph, which then is not launched until the same addresses are
  // allocated again. After a failure, that of `work` included, the launches are
  // enqueued one by one. The default has no graphs.
  virtual NewLaunchGraph Capture(StreamT& /*stream*/,
                                 const CapturedWork<StreamT>& /*work*/) {
    return nullptr;
  }

  // ---- Properties of the hardware ------------------------------------------

  // Returns whether the device computes in the type: kernels for other types
  // are not registered. Is called when the library is loaded, before
  // Platform::Init. Expressions of other kernels also use float, bool,
  // int32 and int64, random numbers use uint32 and uint64, and copies use
  // unsigned integers of the elements' size, which all must be supported.
  virtual bool Supports(DataType /*type*/) const { return true; }

  // Returns whether the device computes the operation in the type as opcodes.def
  // demands: element-wise ops that need another one are neither registered nor
  // fused. A CompiledBackend reports kernels of other ops that need one as
  // UNIMPLEMENTED when they run. Is called when the library is loaded.
  virtual bool SupportsOpcode(Opcode /*opcode*/, DataType /*type*/) const {
    return true;
  }
};

// Returns a launcher of `backend`'s primitives on `stream`.
template <class B>
Launcher MakeLauncher(B& backend, typename B::Stream& stream,
                      Scratch& scratch) {
  return Launcher(&primitives_internal::TableOf<B>::kTable, &backend, &stream,
                  &scratch);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_BACKEND_H_
