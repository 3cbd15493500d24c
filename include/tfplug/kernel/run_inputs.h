// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_RUN_INPUTS_H_
#define TFPLUG_KERNEL_RUN_INPUTS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/abi/tf_input_range_args.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/kernel/internal/op_enums.h"
#include "tfplug/kernel/run_info.h"
#include "tfplug/kernel/tensor.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The inputs that belong to one argument of the op: [start, stop).
struct ArgumentRange {
  int start;
  int stop;
  int size() const { return stop - start; }
};

// The part of KernelContext that reads the inputs of a run.
class RunInputs : public RunInfo<> {
 public:
  // Returns input `i`. For ref-typed inputs see variables.h.
  [[gnu::always_inline]] absl::StatusOr<Tensor> GetInput(int i) {
    capi::TF_Tensor* tensor = nullptr;
    internal::tensorflow.TF_GetInput(get(), i, &tensor, state_.status());
    return TakeTensor(tensor);
  }
  // Returns the input for the op's argument `name`, which must not be a list.
  // Works in all releases: uses TF_GetInputByName in 2.6 to 2.10, TF_InputRange
  // in newer ones.
  absl::StatusOr<Tensor> GetInput(const char* name);
  // Returns the indices of the inputs for the op's argument `name`. Since 2.11.
  absl::StatusOr<ArgumentRange> GetInputRange(const char* name);
  // Returns all inputs for the op's argument `name`. Since 2.11.
  absl::StatusOr<std::vector<Tensor>> GetInputList(const char* name);

  // Overloads for arguments of a typed op, such as ops::MatMul::a. The index is
  // a constant, except after a list: then it is looked up by name.
  template <class E, class = kernel_internal::IfOpEnum<E>>
  absl::StatusOr<Tensor> GetInput(E argument) {
    if constexpr (kernel_internal::kKind<E> == "LateInputs") {
      return GetInput(kernel_internal::NameOf(argument));
    } else {
      return GetInput(kernel_internal::InputIndex(argument));
    }
  }
  template <class E, class = kernel_internal::IfOpEnum<E>>
  absl::StatusOr<ArgumentRange> GetInputRange(E argument) {
    return GetInputRange(kernel_internal::InputName(argument));
  }
  template <class E, class = kernel_internal::IfOpEnum<E>>
  absl::StatusOr<std::vector<Tensor>> GetInputList(E argument) {
    return GetInputList(kernel_internal::InputName(argument));
  }

 protected:
  using RunInfo<>::RunInfo;

  // TensorFlow returns a tensor if and only if the status is OK.
  [[gnu::always_inline]] absl::StatusOr<Tensor> TakeTensor(
      capi::TF_Tensor* tensor) {
    if (ABSL_PREDICT_FALSE(tensor == nullptr)) {
      return state_.TakeFailure("TensorFlow returned no tensor");
    }
    return Tensor(tensor);
  }
};

inline absl::StatusOr<ArgumentRange> RunInputs::GetInputRange(
    const char* name) {
  if (auto s = Require(&CApi::TF_InputRange); !s.ok()) return s;
  capi::TF_InputRange_Args args = {};
  args.struct_size = capi::StructInfo<capi::TF_InputRange_Args>::kSize;
  args.status = state_.status();
  internal::tensorflow.TF_InputRange(get(), name, &args);
  if (!state_.status_ok() || args.start < 0 || args.stop < args.start) {
    const absl::Status failure =
        state_.TakeFailure("TensorFlow returned an invalid range");
    return absl::Status(failure.code(),
                        std::string("argument '") + name +
                            "': " + std::string(failure.message()));
  }
  return ArgumentRange{args.start, args.stop};
}

inline absl::StatusOr<Tensor> RunInputs::GetInput(const char* name) {
  if (!Has(&CApi::TF_InputRange) && Has(&CApi::TF_GetInputByName)) {
    capi::TF_Tensor* tensor = nullptr;
    internal::tensorflow.TF_GetInputByName(get(), name, &tensor,
                                           state_.status());
    return TakeTensor(tensor);
  }
  const auto range = GetInputRange(name);
  if (!range.ok()) return range.status();
  if (range->size() != 1) {
    return absl::InvalidArgumentError(
        std::string("argument '") + name + "' is a list of " +
        std::to_string(range->size()) + " tensors; call GetInputList");
  }
  return GetInput(range->start);
}

inline absl::StatusOr<std::vector<Tensor>> RunInputs::GetInputList(
    const char* name) {
  const auto range = GetInputRange(name);
  if (!range.ok()) return range.status();
  std::vector<Tensor> tensors;
  tensors.reserve(static_cast<size_t>(range->size()));
  for (int i = range->start; i < range->stop; ++i) {
    auto tensor = GetInput(i);
    if (!tensor.ok()) return tensor.status();
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_RUN_INPUTS_H_
