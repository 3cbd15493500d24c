// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_CONTEXT_H_
#define TFPLUG_KERNEL_CONTEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tfplug/abi/tf_allocator_attributes.h"
#include "tfplug/data_type.h"
#include "tfplug/internal/core.h"
#include "tfplug/internal/registered_platform.h"
#include "tfplug/status.h"
#include "tfplug/tensor.h"

namespace tfplug {

// One run of a kernel (TF_OpKernelContext): its inputs, its outputs and the
// stream to put work on. Lives during Compute only; one thread at a time.
class KernelContext {
 public:
  explicit KernelContext(abi::TF_OpKernelContext* context)
      : context_(context) {}
  KernelContext(const KernelContext&) = delete;
  KernelContext& operator=(const KernelContext&) = delete;
  ~KernelContext() {
    if (status_ != nullptr) internal::core.TF_DeleteStatus(status_);
  }

  int num_inputs() const { return internal::core.TF_NumInputs(context_); }
  int num_outputs() const { return internal::core.TF_NumOutputs(context_); }
  // The type that output `i` must have.
  DataType output_dtype(int i) const {
    return static_cast<DataType>(
        internal::core.TF_ExpectedOutputDataType(context_, i));
  }

  // Input `i`. Ref-typed inputs are not for plug-ins.
  absl::StatusOr<Tensor> input(int i) {
    abi::TF_Tensor* tensor = nullptr;
    internal::core.TF_GetInput(context_, i, &tensor, status());
    return Take(tensor);
  }

  // A new output `i`, of the op's type for it. In device memory, unless the
  // kernel is registered with HostMemory for it. Its bytes are not initialised.
  absl::StatusOr<Tensor> allocate_output(int i, const Shape& shape) {
    const DataType dtype = output_dtype(i);
    const auto c_dtype = static_cast<abi::TF_DataType>(dtype);
    const size_t bytes = static_cast<size_t>(shape.num_elements()) *
                         internal::core.TF_DataTypeSize(c_dtype);
    return Take(internal::core.TF_AllocateOutput(
        context_, i, c_dtype, shape.dims().data(), shape.rank(), bytes,
        status()));
  }

  // Output `i` in the buffer of the first of the inputs `candidates` that
  // nobody else needs any more and that has the right type, size and place;
  // else a new one.
  absl::StatusOr<Tensor> forward_or_allocate_output(
      int i, absl::Span<const int> candidates, const Shape& shape) {
    int forwarded_input = -1;
    return Take(internal::core.TF_ForwardInputOrAllocateOutput(
        context_, candidates.data(), static_cast<int>(candidates.size()), i,
        shape.dims().data(), shape.rank(), &forwarded_input, status()));
  }
  absl::StatusOr<Tensor> forward_or_allocate_output(
      int i, std::initializer_list<int> candidates, const Shape& shape) {
    return forward_or_allocate_output(
        i, absl::MakeConstSpan(candidates.begin(), candidates.size()), shape);
  }

  // Makes output `i` share `tensor`'s buffer.
  absl::Status set_output(int i, const Tensor& tensor) {
    internal::core.TF_SetOutput(context_, i, tensor.get(), status());
    return ToStatus(status_);
  }

  // Memory for this run, on the device; freed with the Tensor, in the order of
  // the stream.
  absl::StatusOr<Tensor> allocate_temp(DataType dtype, const Shape& shape) {
    return AllocateTemp(dtype, shape, /*on_host=*/false);
  }
  absl::StatusOr<Tensor> allocate_host_temp(DataType dtype,
                                            const Shape& shape) {
    return AllocateTemp(dtype, shape, /*on_host=*/true);
  }

  // The device's compute stream, as the author's own class: put the kernel's
  // work there and return.
  template <class StreamT>
  absl::StatusOr<StreamT*> stream() {
    if (internal::registered_platform.stream_type !=
        internal::TypeTag<StreamT>()) {
      return absl::InternalError(
          "stream<S>() was asked for a class that is not the Stream of the "
          "Device registered in this library");
    }
    abi::SP_Stream stream = internal::core.TF_GetStream(context_, status());
    if (stream == nullptr || !status_ok()) return Failure("no stream");
    return reinterpret_cast<StreamT*>(stream);
  }

  abi::TF_OpKernelContext* get() const { return context_; }

  // One status for all calls into core that this run makes.
  abi::TF_Status* status() {
    if (status_ == nullptr) status_ = internal::core.TF_NewStatus();
    return status_;
  }

 private:
  bool status_ok() const {
    return internal::core.TF_GetCode(status_) == abi::TF_OK;
  }

  // The status that core gave, or INTERNAL if it failed without one.
  absl::Status Failure(const char* what) const {
    absl::Status failure = ToStatus(status_);
    return failure.ok() ? absl::InternalError(what) : failure;
  }

  absl::StatusOr<Tensor> Take(abi::TF_Tensor* raw) {
    Tensor tensor(raw);
    if (raw == nullptr || !status_ok()) return Failure("no tensor");
    return tensor;
  }

  absl::StatusOr<Tensor> AllocateTemp(DataType dtype, const Shape& shape,
                                      bool on_host) {
    abi::TF_AllocatorAttributes attributes = {};
    attributes.struct_size =
        abi::StructInfo<abi::TF_AllocatorAttributes>::kSize;
    attributes.on_host = on_host;
    return Take(internal::core.TF_AllocateTemp(
        context_, static_cast<abi::TF_DataType>(dtype), shape.dims().data(),
        shape.rank(), &attributes, status()));
  }

  abi::TF_OpKernelContext* const context_;
  abi::TF_Status* status_ = nullptr;
};

}  // namespace tfplug

#endif  // TFPLUG_KERNEL_CONTEXT_H_
