// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_STREAM_COPY_H_
#define TFPLUG_OP_KERNELS_STREAM_COPY_H_

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/async_kernel.h"
#include "tfplug/kernel/kernel.h"
#include "tfplug/kernel/kernel_context.h"
#include "tfplug/kernel/register_op.h"
#include "tfplug/kernel/stream_copy_ops.h"
#include "tfplug/op_kernels/internal/continuations.h"
#include "tfplug/op_kernels/internal/registered_backend.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace op_kernels_internal {

// TfplugToDeviceV1: enqueues the copy on the stream of the kernels that follow.
class ToDeviceKernel final : public Kernel {
 public:
  // A region could not repeat it: it uses the stream itself.
  static constexpr bool kFitsRegions = false;

  absl::Status Compute(KernelContext& context) override {
    const RegisteredBackend& backend = registered_backend;
    TFPLUG_ASSIGN_OR_RETURN(void* const stream, backend.get_stream(context));
    TFPLUG_ASSIGN_OR_RETURN(Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor y,
                            context.AllocateOutput(0, x.shape()));
    if (x.byte_size() == 0) return absl::OkStatus();
    TFPLUG_RETURN_IF_ERROR(
        backend.host_access->copy_to_device(stream, y.memory(), x.data()));
    // The host's tensor lives until then.
    const auto kept = std::make_shared<Tensor>(std::move(x));
    return backend.host_access->run_short(stream, [kept] {});
  }
};

// TfplugToHostV1: finishes when the copy is done, with the stream's status. No
// thread waits.
class ToHostKernel final : public AsyncKernel {
 public:
  absl::Status ComputeAsync(AsyncRun& run) override {
    const RegisteredBackend& backend = registered_backend;
    KernelContext& context = run.context();
    TFPLUG_ASSIGN_OR_RETURN(void* const stream, backend.get_stream(context));
    TFPLUG_ASSIGN_OR_RETURN(Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(Tensor y, context.AllocateOutput(0, x.shape()));
    if (x.byte_size() == 0) return absl::OkStatus();
    TFPLUG_RETURN_IF_ERROR(
        backend.host_access->copy_to_host(stream, y.data(), x.memory()));
    const auto work = std::make_shared<Work>(stream, std::move(x), std::move(y),
                                             std::move(run));
    absl::Status status = internal::Guarded([&] {
      return backend.host_access->run_short(stream, [work] { Arrive(work); });
    });
    work->enqueuing_thread = std::thread::id();
    if (!status.ok()) {
      NeverFree(work);
      work->run.Finish(status);
    } else if (work->has_arrived) {
      work->Finish();
    }
    return absl::OkStatus();
  }

 private:
  struct Work {
    Work(void* its_stream, Tensor from, Tensor to, AsyncRun its_run)
        : stream(its_stream),
          x(std::move(from)),
          y(std::move(to)),
          run(std::move(its_run)) {}

    void* const stream;
    Tensor x, y;
    AsyncRun run;
    // While ComputeAsync enqueues. Others than this thread only read it.
    std::atomic<std::thread::id> enqueuing_thread{std::this_thread::get_id()};
    bool has_arrived = false;  // in the enqueuing thread

    void Finish() {
      const absl::Status status =
          registered_backend.host_access->get_status(stream);
      x = Tensor();
      y = Tensor();
      run.Finish(status);
    }
  };

  // A task of the stream must not ask for its status, unless it runs in
  // ComputeAsync.
  static void Arrive(const std::shared_ptr<Work>& work) {
    if (work->enqueuing_thread == std::this_thread::get_id()) {
      work->has_arrived = true;
      return;
    }
    const absl::Status added = Continuations::Add([work] { work->Finish(); });
    if (!added.ok()) work->run.Finish(added);
  }
};

}  // namespace op_kernels_internal

// Registers the ops of CopyOnStream (passes/copy_on_stream.h) and their kernels,
// which need a stream that is derived from tfplug::Stream.
inline void StreamCopyOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  RegisterOp(StreamCopyOp(kToDeviceOp));
  RegisterOp(StreamCopyOp(kToHostOp));
  registrar.Add<ToDeviceKernel>(
      KernelDef(kToDeviceOp).HostMemory("x").OnlyIf([] {
        return registered_backend.host_access != nullptr;
      }));
  // TensorFlow copies better if an asynchronous kernel would block a thread.
  registrar.Add<ToHostKernel>(KernelDef(kToHostOp).HostMemory("y").OnlyIf([] {
    return registered_backend.host_access != nullptr &&
           AsyncKernel::IsAsynchronous();
  }));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_STREAM_COPY_H_
