// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_BACKEND_H_
#define TFPLUG_BACKEND_BACKEND_H_

#include "absl/status/status.h"
#include "tfplug/backend/expression.h"
#include "tfplug/backend/internal/composed.h"
#include "tfplug/backend/launcher.h"
#include "tfplug/backend/reduction.h"
#include "tfplug/backend/view.h"

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
    return internal::ComposeMatMul(launcher, a, b, c);
  }

  // Combines row updates[i] with output[indices[i]], for each i. updates and
  // output have the same dimensions after the first; indices is a vector of
  // int32 or int64. Indices out of range are ignored. Of several updates of one
  // row, kSet stores the last one. The default visits all updates for every
  // row of the output.
  virtual absl::Status Scatter(StreamT& /*stream*/, Launcher& launcher,
                               ScatterKind kind, const Operand& indices,
                               const Operand& updates, const Operand& output) {
    return internal::ComposeScatter(launcher, kind, indices, updates, output);
  }

  // Combines each element with all elements before it in the last dimension:
  // cumulative sums, products, maxima. The default takes log2(size) passes.
  virtual absl::Status Scan(StreamT& /*stream*/, Launcher& launcher,
                            ReduceKind kind, const Operand& input,
                            const Operand& output) {
    return internal::ComposeScan(launcher, kind, input, output);
  }

  // Finds the largest elements of the last dimension, in descending order, and
  // their int32 indices: as many as `values` and `indices` hold. Equal elements
  // keep their order; NaN is larger than any number. The default compares all
  // pairs.
  virtual absl::Status Sort(StreamT& /*stream*/, Launcher& launcher,
                            const Operand& input, const Operand& values,
                            const Operand& indices) {
    return internal::ComposeSort(launcher, input, values, indices);
  }

  // ---- Properties of the hardware ------------------------------------------

  // Returns whether the device computes in the type: kernels for other types
  // are not registered. Expressions of other kernels also use float, bool,
  // int32 and int64, random numbers use uint32 and uint64, and copies use
  // unsigned integers of the elements' size, which all must be supported.
  virtual bool Supports(DataType /*type*/) const { return true; }
};

namespace internal {

// The primitives of B as functions, without a virtual call.
template <class B>
struct TableOf {
  using Stream = typename B::Stream;
  static B& Self(void* backend) { return *static_cast<B*>(backend); }
  static Stream& On(void* stream) { return *static_cast<Stream*>(stream); }

  static constexpr PrimitiveTable kTable = {
      [](void* self, void* stream, const Expression& expression, Operands in,
         Operands out) {
        return Self(self).B::Map(On(stream), expression, in, out);
      },
      [](void* self, void* stream, const Reduction& reduction, Operands in,
         Operands out) {
        return Self(self).B::Reduce(On(stream), reduction, in, out);
      },
      [](void* self, void* stream, Launcher& launcher, const Operand& a,
         const Operand& b, const Operand& c) {
        return Self(self).B::MatMul(On(stream), launcher, a, b, c);
      },
      [](void* self, void* stream, Launcher& launcher, ScatterKind kind,
         const Operand& indices, const Operand& updates, const Operand& out) {
        return Self(self).B::Scatter(On(stream), launcher, kind, indices,
                                     updates, out);
      },
      [](void* self, void* stream, Launcher& launcher, ReduceKind kind,
         const Operand& in, const Operand& out) {
        return Self(self).B::Scan(On(stream), launcher, kind, in, out);
      },
      [](void* self, void* stream, Launcher& launcher, const Operand& in,
         const Operand& values, const Operand& indices) {
        return Self(self).B::Sort(On(stream), launcher, in, values, indices);
      }};
};

}  // namespace internal

// Returns a launcher of `backend`'s primitives on `stream`.
template <class B>
Launcher MakeLauncher(B& backend, typename B::Stream& stream,
                      Scratch& scratch) {
  return Launcher(&internal::TableOf<B>::kTable, &backend, &stream, &scratch);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_BACKEND_H_
