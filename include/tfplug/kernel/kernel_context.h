// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_KERNEL_CONTEXT_H_
#define TFPLUG_KERNEL_KERNEL_CONTEXT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tfplug/abi/tf_allocator_attributes.h"
#include "tfplug/abi/tf_input_range_args.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/registered_platform.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/status.h"
#include "tfplug/kernel/internal/op_enums.h"
#include "tfplug/kernel/internal/run_cache.h"
#include "tfplug/kernel/run_info.h"
#include "tfplug/kernel/tensor.h"

namespace tfplug {
namespace internal {

// So that the compiler need not prepare for a failure that is none.
[[gnu::always_inline]] inline absl::Status AssumeError(absl::Status failure) {
  if (failure.ok()) __builtin_unreachable();
  return failure;
}

}  // namespace internal

// The inputs that belong to one argument of the op: [start, stop).
struct ArgumentRange {
  int start;
  int stop;
  int size() const { return stop - start; }
};

// One run of a kernel (TF_OpKernelContext): its inputs, its outputs and the
// stream to put work on; RunInfo has what is asked for more rarely. Lives
// during Compute only, or until an AsyncRun is finished; one thread at a time.
//
// What nearly every run calls is always inlined: then the compiler sees through
// the StatusOr, and nothing is left of it.
class KernelContext : public RunInfo<> {
 public:
  explicit KernelContext(capi::TF_OpKernelContext* context)
      : RunInfo<>(context),
        status_(internal::tensorflow.TF_NewStatus()),
        unset_outputs_(internal::RunCache::OutputsOf(context)) {}
  // With what the kernel keeps for its runs.
  KernelContext(capi::TF_OpKernelContext* context, internal::RunCache& cache)
      : RunInfo<>(context) {
    if (ABSL_PREDICT_TRUE(cache.Take(context))) {
      cache_ = &cache;
      status_ = cache.status();
      unset_outputs_ = cache.outputs();
    } else {
      status_ = internal::tensorflow.TF_NewStatus();
      unset_outputs_ = internal::RunCache::OutputsOf(context);
    }
  }
  KernelContext(const KernelContext&) = delete;
  KernelContext& operator=(const KernelContext&) = delete;
  ~KernelContext() {
    while (ABSL_PREDICT_FALSE(deferred_ops_ > 0)) EndDeferredOp();
    if (ABSL_PREDICT_TRUE(cache_ != nullptr)) {
      cache_->GiveBack();
    } else {
      internal::tensorflow.TF_DeleteStatus(status_);
    }
  }

  // ---- Inputs --------------------------------------------------------------

  // Input `i`. Ref-typed inputs are not for this: see variables.h.
  [[gnu::always_inline]] absl::StatusOr<Tensor> GetInput(int i) {
    capi::TF_Tensor* tensor = nullptr;
    internal::tensorflow.TF_GetInput(context_, i, &tensor, status_);
    return Take(tensor);
  }
  // The input that is the op's argument `name`, which is no list. 2.11 and
  // newer; 2.6 to 2.10 too, by a function that went later.
  absl::StatusOr<Tensor> GetInput(const char* name);
  // Where the inputs of the op's argument `name` are. Since 2.11.
  absl::StatusOr<ArgumentRange> GetInputRange(const char* name);
  // All of them.
  absl::StatusOr<std::vector<Tensor>> GetInputList(const char* name);

  // The same with an argument of a typed op, such as ops::MatMul::a. Its index
  // is known to the compiler, but for those that come after a list: they are
  // looked up by name.
  template <class E, class = internal::IfOpEnum<E>>
  absl::StatusOr<Tensor> GetInput(E argument) {
    if constexpr (internal::kKind<E> == "LateInputs") {
      return GetInput(internal::NameOf(argument));
    } else {
      return GetInput(internal::InputIndex(argument));
    }
  }
  template <class E, class = internal::IfOpEnum<E>>
  absl::StatusOr<ArgumentRange> GetInputRange(E argument) {
    return GetInputRange(internal::InputName(argument));
  }
  template <class E, class = internal::IfOpEnum<E>>
  absl::StatusOr<std::vector<Tensor>> GetInputList(E argument) {
    return GetInputList(internal::InputName(argument));
  }

  // ---- Outputs -------------------------------------------------------------

  // The type that output `i` must have; DataType(0) if there is no such output.
  DataType output_dtype(int i) const {
    if (ABSL_PREDICT_FALSE(!HasOutput(i))) return DataType(0);
    return static_cast<DataType>(
        internal::tensorflow.TF_ExpectedOutputDataType(context_, i));
  }

  // A new output `i`, of the op's type for it. In device memory, unless the
  // kernel is registered with HostMemory for it. Its bytes are not initialised.
  [[gnu::always_inline]] absl::StatusOr<Tensor> AllocateOutput(
      int i, const Shape& shape) {
    int64_t n = 0;
    if (ABSL_PREDICT_FALSE(!HasOutput(i) || !CountElements(shape, &n))) {
      return internal::AssumeError(BadOutput(i, shape));
    }
    const capi::TF_DataType dtype =
        internal::tensorflow.TF_ExpectedOutputDataType(context_, i);
    const size_t bytes =
        static_cast<size_t>(n) * DataTypeSize(static_cast<DataType>(dtype));
    return TakeOutput(i, internal::tensorflow.TF_AllocateOutput(
                             context_, i, dtype, shape.dims().data(),
                             shape.rank(), bytes, status_));
  }

  // Output `i` in the buffer of the first of the inputs `candidates` that
  // nobody else needs any more and that has the right type, size and place;
  // else a new one. `*forwarded` becomes the index of the input, or -1. A
  // Tensor of the input that the kernel holds is a need too (so in 2.21): let
  // go of it before; GetInput() gives it again after.
  absl::StatusOr<Tensor> ForwardOrAllocateOutput(
      int i, absl::Span<const int> candidates, const Shape& shape,
      int* forwarded = nullptr) {
    int64_t n = 0;
    if (ABSL_PREDICT_FALSE(!HasOutput(i) || !CountElements(shape, &n))) {
      return internal::AssumeError(BadOutput(i, shape));
    }
    int forwarded_input = -1;
    capi::TF_Tensor* tensor =
        internal::tensorflow.TF_ForwardInputOrAllocateOutput(
            context_, candidates.data(), static_cast<int>(candidates.size()), i,
            shape.dims().data(), shape.rank(), &forwarded_input, status_);
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

  // Makes output `i` share `tensor`'s buffer.
  absl::Status SetOutput(int i, const Tensor& tensor) {
    internal::tensorflow.TF_SetOutput(context_, i, tensor.get(), status_);
    if (ABSL_PREDICT_FALSE(!status_ok())) return Failure("no output");
    MarkOutput(i);
    return absl::OkStatus();
  }

  // Output `i` once more, after it was allocated or set. Since 2.11.
  absl::StatusOr<Tensor> GetOutput(int i);

  // An OK run that has left an output unset ends in an error that names the
  // output. This says that output `i` is to be missing (as Switch does it), or
  // that it was set by a call of a C function by hand.
  void AllowUnsetOutput(int i) { MarkOutput(i); }

  // The same with an output of a typed op, such as ops::MatMul::product.
  template <class E, class = internal::IfOpEnum<E>>
  DataType output_dtype(E output) const {
    return output_dtype(internal::OutputIndex(output));
  }
  template <class E, class = internal::IfOpEnum<E>>
  absl::StatusOr<Tensor> AllocateOutput(E output, const Shape& shape) {
    return AllocateOutput(internal::OutputIndex(output), shape);
  }
  template <class E, class Input, class = internal::IfOpEnum<E>,
            class = internal::IfOpEnum<Input>>
  [[gnu::always_inline]] absl::StatusOr<Tensor> ForwardOrAllocateOutput(
      E output, std::initializer_list<Input> candidates, const Shape& shape,
      int* forwarded = nullptr) {
    // Inlined, this is the list of the inputs' numbers.
    std::array<int, internal::kMaxEnumerators> inputs;
    size_t n = 0;
    for (Input input : candidates) {
      if (n < inputs.size()) inputs[n++] = internal::InputIndex(input);
    }
    return ForwardOrAllocateOutput(internal::OutputIndex(output),
                                   absl::MakeConstSpan(inputs.data(), n), shape,
                                   forwarded);
  }
  template <class E, class = internal::IfOpEnum<E>>
  absl::Status SetOutput(E output, const Tensor& tensor) {
    return SetOutput(internal::OutputIndex(output), tensor);
  }
  template <class E, class = internal::IfOpEnum<E>>
  absl::StatusOr<Tensor> GetOutput(E output) {
    return GetOutput(internal::OutputIndex(output));
  }
  template <class E, class = internal::IfOpEnum<E>>
  void AllowUnsetOutput(E output) {
    AllowUnsetOutput(internal::OutputIndex(output));
  }

  // ---- Memory and stream ---------------------------------------------------

  // Memory for this run, on the device; freed with the Tensor, in the order of
  // the stream.
  absl::StatusOr<Tensor> AllocateTemp(DataType dtype, const Shape& shape) {
    return AllocateTemp(dtype, shape, /*on_host=*/false);
  }
  absl::StatusOr<Tensor> AllocateHostTemp(DataType dtype, const Shape& shape) {
    return AllocateTemp(dtype, shape, /*on_host=*/true);
  }

  // The device's compute stream, as the author's own class: put the kernel's
  // work there and return.
  template <class StreamT>
  [[gnu::always_inline]] absl::StatusOr<StreamT*> GetStream() {
    if (ABSL_PREDICT_FALSE(internal::registered_platform.stream_type !=
                           internal::TypeTag<StreamT>())) {
      return internal::AssumeError(WrongStream());
    }
    capi::SP_Stream stream =
        internal::tensorflow.TF_GetStream(context_, status_);
    if (ABSL_PREDICT_FALSE(stream == nullptr)) return Failure("no stream");
    return reinterpret_cast<StreamT*>(stream);
  }

  // Tells the executor that work of this op goes on after the op is done, and
  // that it has ended: a step counts as finished only then. What is left open
  // when the context ends is ended there, for core takes no such word later.
  // Since 2.15; INTERNAL where the executor keeps no count, as in eager mode.
  absl::Status BeginDeferredOp();
  void EndDeferredOp() {
    if (deferred_ops_ == 0) return;
    --deferred_ops_;
    internal::tensorflow.TF_DecNumDeferredOps(context_);
  }

  // One status for all calls into core that this run makes; OK before each, as
  // long as Failure is asked after one that failed.
  capi::TF_Status* status() { return status_; }

  // Whether every output is set, without which no run may return OK. Those
  // beyond the 64th are not looked at.
  bool HasAllOutputs() const { return unset_outputs_ == 0; }
  // An error that names the first that is not.
  [[gnu::cold, gnu::noinline]] absl::Status MissingOutput() const {
    return absl::InternalError("Compute returned OK and has not set output " +
                               std::to_string(__builtin_ctzll(unset_outputs_)) +
                               " of " + std::to_string(num_outputs()));
  }

  // The status that core gave, or INTERNAL and `what` if it failed without one.
  [[gnu::always_inline]] absl::Status Failure(const char* what) {
    return internal::AssumeError(TakeFailure(what));
  }
  void MarkOutput(int i) {
    if (i >= 0 && i < 64) unset_outputs_ &= ~(uint64_t{1} << i);
  }

 private:
  bool HasOutput(int i) const {
    if (ABSL_PREDICT_TRUE(i >= 0 && i < 64 && (unset_outputs_ >> i & 1) != 0)) {
      return true;
    }
    return IsOutput(i);
  }
  // Rarely asked: an output is set once.
  [[gnu::cold, gnu::noinline]] bool IsOutput(int i) const {
    return i >= 0 && i < num_outputs();
  }
  bool status_ok() const {
    return internal::tensorflow.TF_GetCode(status_) == capi::TF_OK;
  }
  [[gnu::cold, gnu::noinline]] absl::Status TakeFailure(const char* what) {
    absl::Status failure = ToStatus(status_);
    internal::tensorflow.TF_SetStatus(status_, capi::TF_OK, "");
    return failure.ok() ? absl::InternalError(what) : failure;
  }

  // False for what core would end the process over: a negative dimension, more
  // elements than can be counted, more dimensions than core has room for.
  static bool CountElements(const Shape& shape, int64_t* n) {
    constexpr int kMaxRank = 254;
    int64_t count = 1, signs = 0;
    for (int64_t dim : shape.dims()) {
      signs |= dim;
      if (__builtin_mul_overflow(count, dim, &count)) return false;
    }
    *n = count;
    return signs >= 0 && shape.rank() <= kMaxRank;
  }

  [[gnu::always_inline]] absl::StatusOr<Tensor> Take(capi::TF_Tensor* raw) {
    // Core gives a tensor exactly when its status is OK.
    if (ABSL_PREDICT_FALSE(raw == nullptr)) return Failure("no tensor");
    return Tensor(raw);
  }
  [[gnu::always_inline]] absl::StatusOr<Tensor> TakeOutput(
      int i, capi::TF_Tensor* raw) {
    if (ABSL_PREDICT_FALSE(raw == nullptr)) return Failure("no tensor");
    MarkOutput(i);
    return Tensor(raw);
  }

  absl::StatusOr<Tensor> AllocateTemp(DataType dtype, const Shape& shape,
                                      bool on_host) {
    int64_t n = 0;
    if (ABSL_PREDICT_FALSE(!CountElements(shape, &n))) {
      return internal::AssumeError(BadShape(shape));
    }
    capi::TF_AllocatorAttributes attributes = {};
    attributes.struct_size =
        capi::StructInfo<capi::TF_AllocatorAttributes>::kSize;
    attributes.on_host = on_host;
    return Take(internal::tensorflow.TF_AllocateTemp(
        context_, static_cast<capi::TF_DataType>(dtype), shape.dims().data(),
        shape.rank(), &attributes, status_));
  }

  [[gnu::cold, gnu::noinline]] static absl::Status WrongStream() {
    return absl::InternalError(
        "stream<S>() was asked for a class that is not the Stream of the "
        "Device registered in this library");
  }
  [[gnu::cold, gnu::noinline]] static absl::Status BadShape(
      const Shape& shape) {
    return absl::InvalidArgumentError("a tensor cannot have the shape " +
                                      shape.ToString());
  }
  [[gnu::cold, gnu::noinline]] absl::Status BadOutput(
      int i, const Shape& shape) const {
    if (!HasOutput(i)) return OutOfRange("output", i, num_outputs());
    return BadShape(shape);
  }

  internal::RunCache* cache_ = nullptr;  // Null: status_ is the context's own.
  capi::TF_Status* status_;
  uint64_t unset_outputs_;  // A bit for each of the first 64.
  int deferred_ops_ = 0;
};

inline absl::StatusOr<ArgumentRange> KernelContext::GetInputRange(
    const char* name) {
  if (auto s = Require(&CApi::TF_InputRange); !s.ok()) return s;
  capi::TF_InputRange_Args args = {};
  args.struct_size = capi::StructInfo<capi::TF_InputRange_Args>::kSize;
  args.status = status_;
  internal::tensorflow.TF_InputRange(context_, name, &args);
  if (!status_ok() || args.start < 0 || args.stop < args.start) {
    const absl::Status failure = Failure("core knows no such range");
    return absl::Status(failure.code(),
                        std::string("argument '") + name +
                            "': " + std::string(failure.message()));
  }
  return ArgumentRange{args.start, args.stop};
}

inline absl::StatusOr<Tensor> KernelContext::GetInput(const char* name) {
  if (!Has(&CApi::TF_InputRange) && Has(&CApi::TF_GetInputByName)) {
    capi::TF_Tensor* tensor = nullptr;
    internal::tensorflow.TF_GetInputByName(context_, name, &tensor, status_);
    return Take(tensor);
  }
  const auto range = GetInputRange(name);
  if (!range.ok()) return range.status();
  if (range->size() != 1) {
    return absl::InvalidArgumentError(
        std::string("argument '") + name + "' is a list of " +
        std::to_string(range->size()) + "; use input_list");
  }
  return GetInput(range->start);
}

inline absl::StatusOr<std::vector<Tensor>> KernelContext::GetInputList(
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

inline absl::StatusOr<Tensor> KernelContext::GetOutput(int i) {
  if (auto s = Require(&CApi::TF_GetMutableOutput); !s.ok()) return s;
  if (auto s = CheckOutput(i); !s.ok()) return s;
  if (i >= 64 || (unset_outputs_ >> i & 1) != 0) {
    return absl::FailedPreconditionError("output " + std::to_string(i) +
                                         " is not set yet");
  }
  return Take(internal::tensorflow.TF_GetMutableOutput(context_, i, status_));
}

inline absl::Status KernelContext::BeginDeferredOp() {
  if (auto s = Require(&CApi::TF_IncNumDeferredOps); !s.ok()) return s;
  if (auto s = Require(&CApi::TF_DecNumDeferredOps); !s.ok()) return s;
#if defined(__cpp_exceptions)
  try {
    internal::tensorflow.TF_IncNumDeferredOps(context_);
  } catch (const std::exception& e) {
    return absl::InternalError(std::string("core counts no deferred ops: ") +
                               e.what());
  }
#else
  internal::tensorflow.TF_IncNumDeferredOps(context_);
#endif
  ++deferred_ops_;
  return absl::OkStatus();
}

}  // namespace tfplug

#endif  // TFPLUG_KERNEL_KERNEL_CONTEXT_H_
