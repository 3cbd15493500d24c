// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_HOST_TASK_KERNEL_H_
#define TFPLUG_OP_KERNELS_HOST_TASK_KERNEL_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/async_kernel.h"
#include "tfplug/op_kernels/internal/registered_backend.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// An input or output of a HostTaskKernel, in host memory.
struct HostArray {
  DataType type;
  Shape shape;
  void* data;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};
using HostArrays = absl::InlinedVector<HostArray, 4>;

// A kernel that computes in a host task of the stream, for ops that are
// sequential or that a library has only for the host. It enqueues copies of the
// inputs, the task and copies of the outputs at once, so the outputs' shapes
// must follow from those of the inputs. No thread waits for the stream. The op
// fails with the task's status.
class HostTaskKernel : public AsyncKernel {
 public:
  // Returns the shapes of the outputs, or an error if the inputs do not fit.
  virtual absl::StatusOr<std::vector<Shape>> ShapesOf(
      absl::Span<const Shape> inputs) const = 0;
  // Computes the outputs. Called on a thread of the device. An exception fails
  // the op.
  virtual absl::Status Compute(absl::Span<const HostArray> inputs,
                               absl::Span<const HostArray> outputs) const = 0;

  absl::Status ComputeAsync(AsyncRun& run) final;

 private:
  // All that the enqueued work needs. The destructor fails an unfinished run.
  struct Work {
    HostArrays inputs, outputs;
    std::vector<Tensor> tensors;
    std::vector<std::unique_ptr<char[]>> memory;
    absl::Status status;
    absl::InlinedVector<AsyncRun, 1> run;  // empty until work is enqueued

    void* Add(Tensor tensor, HostArrays& arrays) {
      memory.emplace_back(new char[tensor.byte_size() + 1]);
      arrays.push_back({tensor.dtype(), tensor.shape(), memory.back().get()});
      tensors.push_back(std::move(tensor));
      return memory.back().get();
    }
    void Finish() {
      tensors.clear();
      run[0].Finish(status);
    }
  };

  absl::Status Enqueue(const op_kernels_internal::HostAccess& host,
                       void* stream, const std::shared_ptr<Work>& work) const;
};

inline absl::Status HostTaskKernel::ComputeAsync(AsyncRun& run) {
  const op_kernels_internal::RegisteredBackend& backend =
      op_kernels_internal::registered_backend;
  if (backend.host_access == nullptr) {
    return absl::UnimplementedError(
        "this op computes on the host, for which the stream of the backend "
        "must be derived from tfplug::Stream");
  }
  KernelContext& context = run.context();
  TFPLUG_ASSIGN_OR_RETURN(void* const stream, backend.get_stream(context));
  const auto work = std::make_shared<Work>();
  absl::InlinedVector<Shape, 4> shapes;
  for (int i = 0; i < context.num_inputs(); ++i) {
    TFPLUG_ASSIGN_OR_RETURN(Tensor tensor, context.GetInput(i));
    shapes.push_back(tensor.shape());
    work->Add(std::move(tensor), work->inputs);
  }
  TFPLUG_ASSIGN_OR_RETURN(const std::vector<Shape> results, ShapesOf(shapes));
  for (size_t i = 0; i < results.size(); ++i) {
    TFPLUG_ASSIGN_OR_RETURN(
        Tensor tensor, context.AllocateOutput(static_cast<int>(i), results[i]));
    work->Add(std::move(tensor), work->outputs);
  }
  work->run.push_back(std::move(run));
  const absl::Status status = internal::Guarded(
      [&] { return Enqueue(*backend.host_access, stream, work); });
  if (!status.ok()) {
    // The stream may still use the memory, so it is never freed.
    static_cast<void>(new std::shared_ptr<Work>(work));
    work->run[0].Finish(status);
  }
  return absl::OkStatus();
}

inline absl::Status HostTaskKernel::Enqueue(
    const op_kernels_internal::HostAccess& host, void* stream,
    const std::shared_ptr<Work>& work) const {
  const size_t n = work->inputs.size();
  for (size_t i = 0; i < n; ++i) {
    if (work->tensors[i].byte_size() == 0) continue;
    TFPLUG_RETURN_IF_ERROR(host.copy_to_host(stream, work->inputs[i].data,
                                             work->tensors[i].memory()));
  }
  TFPLUG_RETURN_IF_ERROR(host.run(stream, [this, work] {
    work->status =
        internal::Guarded([&] { return Compute(work->inputs, work->outputs); });
  }));
  for (size_t i = 0; i < work->outputs.size(); ++i) {
    const Tensor& tensor = work->tensors[n + i];
    if (tensor.byte_size() == 0) continue;
    TFPLUG_RETURN_IF_ERROR(
        host.copy_to_device(stream, tensor.memory(), work->outputs[i].data));
  }
  return host.run(stream, [work] { work->Finish(); });
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_HOST_TASK_KERNEL_H_
