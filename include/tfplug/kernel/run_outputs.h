// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_RUN_OUTPUTS_H_
#define TFPLUG_KERNEL_RUN_OUTPUTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/tensor_size.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/kernel/internal/op_enums.h"
#include "tfplug/kernel/run_inputs.h"
#include "tfplug/kernel/tensor.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The part of KernelContext that allocates, forwards and sets the outputs of a
// run.
class RunOutputs : public RunInputs {
 public:
  // Returns the required type of output `i`; DataType(0) if there is no such
  // output.
  DataType output_dtype(int i) const {
    if (ABSL_PREDICT_FALSE(!state_.HasOutput(i))) return DataType(0);
    return static_cast<DataType>(
        internal::tensorflow.TF_ExpectedOutputDataType(get(), i));
  }

  // Allocates output `i`, with the type that the op requires: in device memory,
  // unless the kernel is registered with HostMemory for it. Its bytes are not
  // initialized.
  [[gnu::always_inline]] absl::StatusOr<Tensor> AllocateOutput(
      int i, const Shape& shape) {
    // No element has more than 16 bytes.
    constexpr int64_t kMaxElements = std::numeric_limits<int64_t>::max() / 16;
    int64_t n = 0;
    if (ABSL_PREDICT_FALSE(!state_.HasOutput(i) ||
                           !internal::CountElements(shape, &n) ||
                           n > kMaxElements)) {
      return kernel_internal::AssumeError(BadOutput(i, shape));
    }
    const capi::TF_DataType dtype =
        internal::tensorflow.TF_ExpectedOutputDataType(get(), i);
    const size_t bytes =
        static_cast<size_t>(n) * DataTypeSize(static_cast<DataType>(dtype));
    return TakeOutput(i, internal::tensorflow.TF_AllocateOutput(
                             get(), i, dtype, shape.dims().data(), shape.rank(),
                             bytes, state_.status()));
  }

  // Forwards to output `i` the buffer of the first input in `candidates` that
  // nothing else refers to and that has the right type, size and memory; if
  // there is none, allocates the output. `*forwarded` becomes the index of the
  // input, or -1.
  //
  // A Tensor that the kernel holds for the input counts as a reference (checked
  // in 2.21): destroy it first; GetInput() returns it again afterwards.
  absl::StatusOr<Tensor> ForwardOrAllocateOutput(
      int i, absl::Span<const int> candidates, const Shape& shape,
      int* forwarded = nullptr) {
    int64_t n = 0;
    if (ABSL_PREDICT_FALSE(!state_.HasOutput(i) ||
                           !internal::CountElements(shape, &n))) {
      return kernel_internal::AssumeError(BadOutput(i, shape));
    }
    // TensorFlow aborts on an index that is out of range.
    for (const int candidate : candidates) {
      if (auto s = CheckInput(candidate); !s.ok()) return s;
    }
    int forwarded_input = -1;
    capi::TF_Tensor* tensor =
        internal::tensorflow.TF_ForwardInputOrAllocateOutput(
            get(), candidates.data(), static_cast<int>(candidates.size()), i,
            shape.dims().data(), shape.rank(), &forwarded_input,
            state_.status());
    if (forwarded != nullptr) *forwarded = forwarded_input;
    return TakeOutput(i, tensor);
  }
  absl::StatusOr<Tensor> ForwardOrAllocateOutput(
      int i, std::initializer_list<int> candidates, const Shape& shape,
      int* forwarded = nullptr) {
    return ForwardOrAllocateOutput(
        i, absl::MakeConstSpan(candidates.begin(), candidates.size()), shape,
        forwarded);
  }

  // Makes output `i` share `tensor`'s buffer. FAILED_PRECONDITION if the output
  // is already allocated or set, on which TensorFlow would abort (checked for
  // the first 64 outputs).
  absl::Status SetOutput(int i, const Tensor& tensor) {
    if (ABSL_PREDICT_FALSE(!tensor)) return EmptyTensor(i);
    if (ABSL_PREDICT_FALSE(!state_.IsUnset(i))) {
      return SetOutputSlowly(i, tensor.get());
    }
    internal::tensorflow.TF_SetOutput(get(), i, tensor.get(), state_.status());
    if (ABSL_PREDICT_FALSE(!state_.status_ok())) return SetOutputFailure();
    state_.MarkOutput(i);
    return absl::OkStatus();
  }

  // Returns output `i`, which must have been allocated or set. Since 2.11.
  absl::StatusOr<Tensor> GetOutput(int i);

  // Exempts output `i` from the rule that a run which returns OK must have set
  // every output: for an op that leaves it unset, as Switch does, or for an
  // output that was set by calling a C function directly. SetOutput rejects the
  // output afterwards.
  void AllowUnsetOutput(int i) { state_.MarkOutput(i); }

  // Overloads for outputs of a typed op, such as ops::MatMul::product.
  template <class E, class = kernel_internal::IfOpEnum<E>>
  DataType output_dtype(E output) const {
    return output_dtype(kernel_internal::OutputIndex(output));
  }
  template <class E, class = kernel_internal::IfOpEnum<E>>
  absl::StatusOr<Tensor> AllocateOutput(E output, const Shape& shape) {
    return AllocateOutput(kernel_internal::OutputIndex(output), shape);
  }
  template <class E, class Input, class = kernel_internal::IfOpEnum<E>,
            class = kernel_internal::IfOpEnum<Input>>
  [[gnu::always_inline]] absl::StatusOr<Tensor> ForwardOrAllocateOutput(
      E output, std::initializer_list<Input> candidates, const Shape& shape,
      int* forwarded = nullptr) {
    // The compiler reduces this to a constant list of indices.
    std::array<int, kernel_internal::kMaxEnumerators> inputs;
    size_t n = 0;
    for (Input input : candidates) {
      if (n < inputs.size()) inputs[n++] = kernel_internal::InputIndex(input);
    }
    return ForwardOrAllocateOutput(kernel_internal::OutputIndex(output),
                                   absl::MakeConstSpan(inputs.data(), n), shape,
                                   forwarded);
  }
  template <class E, class = kernel_internal::IfOpEnum<E>>
  absl::Status SetOutput(E output, const Tensor& tensor) {
    return SetOutput(kernel_internal::OutputIndex(output), tensor);
  }
  template <class E, class = kernel_internal::IfOpEnum<E>>
  absl::StatusOr<Tensor> GetOutput(E output) {
    return GetOutput(kernel_internal::OutputIndex(output));
  }
  template <class E, class = kernel_internal::IfOpEnum<E>>
  void AllowUnsetOutput(E output) {
    AllowUnsetOutput(kernel_internal::OutputIndex(output));
  }

  // An output has no name in TensorFlow's C API: these do not compile.
  template <class Char, class... Arguments>
  absl::StatusOr<Tensor> AllocateOutput(const Char* /*name*/,
                                        Arguments&&... /*arguments*/) {
    return NoName<Char>();
  }
  template <class Char, class... Arguments>
  absl::StatusOr<Tensor> ForwardOrAllocateOutput(const Char* /*name*/,
                                                 Arguments&&... /*arguments*/) {
    return NoName<Char>();
  }
  template <class Char>
  absl::Status SetOutput(const Char* /*name*/, const Tensor& /*tensor*/) {
    return NoName<Char>().status();
  }

 protected:
  using RunInputs::RunInputs;

 private:
  template <class Char>
  static absl::StatusOr<Tensor> NoName() {
    static_assert(std::is_void_v<Char>,
                  "tfplug: outputs have numbers, not names: write "
                  "AllocateOutput(0, shape), or name the output of a typed op, "
                  "such as ops::MatMul::product");
    return Tensor();
  }
  [[gnu::cold, gnu::noinline]] static absl::Status EmptyTensor(int i) {
    return absl::InvalidArgumentError("SetOutput: the Tensor for output " +
                                      std::to_string(i) + " is empty");
  }
  // Fails if the output is one of the first 64, and sets it otherwise.
  [[gnu::cold, gnu::noinline]] absl::Status SetOutputSlowly(
      int i, capi::TF_Tensor* tensor) {
    if (i < 64 && state_.HasOutput(i)) {
      return absl::FailedPreconditionError(
          "SetOutput: output " + std::to_string(i) +
          " is already set, or was passed to AllowUnsetOutput; TensorFlow "
          "aborts if an output is set twice, so set each output on one path "
          "only");
    }
    internal::tensorflow.TF_SetOutput(get(), i, tensor, state_.status());
    return state_.status_ok() ? absl::OkStatus() : SetOutputFailure();
  }
  // Returns the failure into the caller's result, so that SetOutput needs no
  // space on the stack.
  [[gnu::cold, gnu::noinline]] absl::Status SetOutputFailure() {
    return state_.TakeFailure("TensorFlow did not set the output");
  }
  [[gnu::cold, gnu::noinline]] absl::Status BadOutput(
      int i, const Shape& shape) const {
    if (!state_.HasOutput(i)) return OutOfRange("output", i, num_outputs());
    if (auto s = internal::CheckShape(shape); !s.ok()) return s;
    return absl::InvalidArgumentError(
        "a tensor " + DataTypeName(output_dtype(i)) + shape.ToString() +
        " is too large: its number of bytes exceeds the range of int64");
  }
  [[gnu::always_inline]] absl::StatusOr<Tensor> TakeOutput(
      int i, capi::TF_Tensor* tensor) {
    if (ABSL_PREDICT_TRUE(tensor != nullptr)) state_.MarkOutput(i);
    return TakeTensor(tensor);
  }
};

inline absl::StatusOr<Tensor> RunOutputs::GetOutput(int i) {
  if (auto s = Require(&CApi::TF_GetMutableOutput); !s.ok()) return s;
  if (auto s = CheckOutput(i); !s.ok()) return s;
  if (i >= 64 || state_.IsUnset(i)) {
    return absl::FailedPreconditionError(
        "output " + std::to_string(i) +
        " is not set yet; allocate or set it before GetOutput");
  }
  return TakeTensor(
      internal::tensorflow.TF_GetMutableOutput(get(), i, state_.status()));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_RUN_OUTPUTS_H_
