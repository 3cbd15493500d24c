// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_KERNEL_CONTEXT_H_
#define TFPLUG_KERNEL_KERNEL_CONTEXT_H_

#include <exception>
#include <string>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/abi/tf_allocator_attributes.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/profiling.h"
#include "tfplug/base/internal/registered_platform.h"
#include "tfplug/base/internal/tensor_size.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/kernel/run_outputs.h"
#include "tfplug/kernel/tensor.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// One run of a kernel (TF_OpKernelContext): its inputs (run_inputs.h), outputs
// (run_outputs.h) and description (run_info.h), and, declared here, temporary
// memory and the stream. Valid during Compute or, in an AsyncKernel, until the
// AsyncRun is finished. Only one thread may use it at a time.
//
// The functions that nearly every run calls are always inlined, so that the
// compiler sees through the StatusOr and removes it.
class KernelContext : public RunOutputs {
 public:
  explicit KernelContext(capi::TF_OpKernelContext* context)
      : RunOutputs(context) {}
  // Reuses the status and outputs that the kernel caches between runs.
  KernelContext(capi::TF_OpKernelContext* context,
                kernel_internal::RunCache& cache)
      : RunOutputs(context, cache) {}
  KernelContext(const KernelContext&) = delete;
  KernelContext& operator=(const KernelContext&) = delete;
  [[gnu::always_inline]] ~KernelContext() {
    while (ABSL_PREDICT_FALSE(deferred_ops_ > 0)) EndDeferredOp();
  }

  // ---- Memory and stream ---------------------------------------------------

  // Allocate device or host memory for this run. Device memory is freed with
  // the Tensor, in stream order.
  absl::StatusOr<Tensor> AllocateTemp(DataType dtype, const Shape& shape) {
    return AllocateTemp(dtype, shape, /*on_host=*/false);
  }
  absl::StatusOr<Tensor> AllocateHostTemp(DataType dtype, const Shape& shape) {
    return AllocateTemp(dtype, shape, /*on_host=*/true);
  }

  // Returns the device's compute stream, as the author's own class; INTERNAL if
  // StreamT is another class. Enqueue the kernel's work on it and return.
  template <class StreamT>
  [[gnu::always_inline]] absl::StatusOr<StreamT*> GetStream() {
    if (ABSL_PREDICT_FALSE(internal::registered_platform.stream_type !=
                           internal::TypeTag<StreamT>())) {
      return kernel_internal::AssumeError(WrongStream());
    }
    capi::SP_Stream stream = internal::ReadChanging(
        internal::tensorflow.TF_GetStream)(get(), state_.status());
    if (ABSL_PREDICT_FALSE(stream == nullptr)) {
      return state_.TakeFailure("TensorFlow returned no stream");
    }
    return reinterpret_cast<StreamT*>(stream);
  }

  // ---- Deferred work -------------------------------------------------------

  // Registers work of this op that continues after the op is done: the executor
  // finishes the step only after EndDeferredOp. The destructor ends all pending
  // deferred ops, because TensorFlow does not accept EndDeferredOp after the
  // run. Since 2.15; INTERNAL where the executor does not count deferred ops,
  // as in eager mode.
  absl::Status BeginDeferredOp();
  void EndDeferredOp() {
    if (deferred_ops_ == 0) return;
    --deferred_ops_;
    internal::tensorflow.TF_DecNumDeferredOps(get());
  }

 private:
  absl::StatusOr<Tensor> AllocateTemp(DataType dtype, const Shape& shape,
                                      bool on_host) {
    if (auto s = internal::CheckShape(shape); !s.ok()) return s;
    if (auto s = kernel_internal::CheckAllocatable(dtype); !s.ok()) return s;
    capi::TF_AllocatorAttributes attributes = {};
    attributes.struct_size =
        capi::StructInfo<capi::TF_AllocatorAttributes>::kSize;
    attributes.on_host = on_host;
    return TakeTensor(internal::tensorflow.TF_AllocateTemp(
        get(), static_cast<capi::TF_DataType>(dtype), shape.dims().data(),
        shape.rank(), &attributes, state_.status()));
  }

  [[gnu::cold, gnu::noinline]] static absl::Status WrongStream() {
    return absl::InternalError(
        "GetStream<S>() needs the Stream class of the device that this library "
        "registers, and S is another class");
  }

  int deferred_ops_ = 0;
};

inline absl::Status KernelContext::BeginDeferredOp() {
  if (auto s = Require(&CApi::TF_IncNumDeferredOps); !s.ok()) return s;
  if (auto s = Require(&CApi::TF_DecNumDeferredOps); !s.ok()) return s;
#if defined(__cpp_exceptions)
  try {
    internal::tensorflow.TF_IncNumDeferredOps(get());
  } catch (const std::exception& e) {
    return absl::InternalError(
        std::string("TensorFlow does not count deferred ops in this run: ") +
        e.what());
  }
#else
  internal::tensorflow.TF_IncNumDeferredOps(get());
#endif
  ++deferred_ops_;
  return absl::OkStatus();
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_KERNEL_CONTEXT_H_
