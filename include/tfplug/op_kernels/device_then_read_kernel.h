// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_DEVICE_THEN_READ_KERNEL_H_
#define TFPLUG_OP_KERNELS_DEVICE_THEN_READ_KERNEL_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/async_kernel.h"
#include "tfplug/op_kernels/internal/continuations.h"
#include "tfplug/op_kernels/internal/registered_backend.h"
#include "tfplug/op_kernels/op_run.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// A kernel that computes on the device and then reads numbers, on which its
// outputs' shapes depend. No thread waits for the stream.
class DeviceThenReadKernel : public AsyncKernel {
 public:
  // Returns how many numbers are read.
  virtual int NumNumbers() const { return 1; }
  // Enqueues the computation of an int64 vector, whose last elements are the
  // numbers. It may be empty: the numbers are then 0.
  virtual absl::StatusOr<Operand> Begin(OpRun& run) const = 0;
  // Sets the outputs; `vector` is the result of Begin.
  virtual absl::Status End(OpRun& run, const Operand& vector,
                           absl::Span<const int64_t> numbers) const = 0;

  absl::Status ComputeAsync(AsyncRun& run) final {
    const op_kernels_internal::RegisteredBackend& backend =
        op_kernels_internal::registered_backend;
    if (backend.host_access == nullptr) {
      return absl::UnimplementedError(
          "the shape of this op's output depends on its input, for which the "
          "stream of the backend must be derived from tfplug::Stream");
    }
    TFPLUG_ASSIGN_OR_RETURN(void* const stream,
                            backend.get_stream(run.context()));
    const auto state = std::make_shared<State>(run.context());
    TFPLUG_RETURN_IF_ERROR(state->op.Start(/*on_host=*/false));
    TFPLUG_ASSIGN_OR_RETURN(state->vector, Begin(state->op));
    const int64_t n = state->vector.num_elements();
    state->numbers.resize(static_cast<size_t>(NumNumbers()));
    if (n == 0) return End(state->op, state->vector, state->numbers);
    Operand last = state->vector;
    last.Advance(n - NumNumbers());
    TFPLUG_RETURN_IF_ERROR(backend.host_access->copy_to_host(
        stream, state->numbers.data(),
        DeviceMemory(last.data, sizeof(int64_t) * state->numbers.size())));
    state->run = std::make_unique<AsyncRun>(std::move(run));
    const absl::Status status = internal::Guarded([&] {
      return backend.host_access->run(stream, [this, state] {
        const absl::Status added = op_kernels_internal::Continuations::Add(
            [this, state] { Continue(*state); });
        if (!added.ok()) Finish(*state, added);
      });
    });
    if (!status.ok()) {
      op_kernels_internal::NeverFree(state);
      state->run->Finish(status);
    }
    return absl::OkStatus();
  }

 private:
  struct State {
    explicit State(KernelContext& context) : op(context) {}

    // Destroyed after `op`, whose temporary memory belongs to the run.
    std::unique_ptr<AsyncRun> run;
    OpRun op;
    Operand vector;
    Ints numbers;
  };

  void Continue(State& state) const {
    Finish(state, internal::Guarded([&] {
             return End(state.op, state.vector, state.numbers);
           }));
  }
  static void Finish(State& state, const absl::Status& status) {
    state.op.FreeTemporaries();
    state.run->Finish(status);
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_DEVICE_THEN_READ_KERNEL_H_
