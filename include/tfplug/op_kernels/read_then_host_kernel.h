// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_READ_THEN_HOST_KERNEL_H_
#define TFPLUG_OP_KERNELS_READ_THEN_HOST_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/base/tstring.h"
#include "tfplug/kernel/async_kernel.h"
#include "tfplug/op_kernels/internal/continuations.h"
#include "tfplug/op_kernels/internal/registered_backend.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// An input or output of a kernel that computes on the host.
struct HostArray {
  DataType type;
  Shape shape;
  void* data;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};
// Returns the elements of an array of int32 or int64.
inline std::vector<int64_t> IntegersOf(const HostArray& array) {
  const int64_t n = array.shape.num_elements();
  if (array.type == DataType::kInt64) {
    return {array.as<int64_t>(), array.as<int64_t>() + n};
  }
  return {array.as<int32_t>(), array.as<int32_t>() + n};
}

using HostArrays = absl::InlinedVector<HostArray, 4>;

// The outputs of a ReadThenHostKernel, in host memory.
class HostOutputs {
 public:
  explicit HostOutputs(std::vector<DataType> types = {})
      : types_(std::move(types)) {}

  // The types of the op's outputs.
  const std::vector<DataType>& types() const { return types_; }
  // Adds the next output. The array is valid until the run ends. Throws
  // std::bad_alloc, which fails the op, if there is not enough memory.
  HostArray& Add(DataType type, Shape shape) {
    // No memory holds PTRDIFF_MAX bytes; num_elements() is negative if the
    // product of the sizes overflows.
    const auto n = static_cast<uint64_t>(shape.num_elements());
    const size_t size = DataTypeSize(type);
    const size_t bytes = n < PTRDIFF_MAX / size ? n * size : PTRDIFF_MAX - 1;
    memory_.emplace_back(new char[bytes + 1]());
    arrays_.push_back({type, std::move(shape), memory_.back().get()});
    return arrays_.back();
  }
  // Adds the next output, in host memory, with as many strings as the shape has
  // elements.
  void AddStrings(Shape shape, std::vector<std::string> strings) {
    strings_.push_back(std::move(strings));
    arrays_.push_back({DataType::kString, std::move(shape), &strings_.back()});
  }
  const std::deque<HostArray>& arrays() const { return arrays_; }

 private:
  std::vector<DataType> types_;
  std::deque<std::vector<std::string>> strings_;
  std::vector<std::unique_ptr<char[]>> memory_;
  std::deque<HostArray> arrays_;
};

// A kernel that reads its inputs, and computes on a thread of the host when they
// have arrived, for ops whose outputs' shapes depend on the inputs' values. Some
// inputs and outputs may be in host memory. No thread waits for the stream, and
// the stream does not wait for the thread.
class ReadThenHostKernel : public AsyncKernel {
 public:
  // Computes and adds all outputs, in their order. Not called on a thread of
  // TensorFlow. An exception fails the op.
  virtual absl::Status Compute(absl::Span<const HostArray> inputs,
                               HostOutputs& outputs) const = 0;
  // Return whether the op's argument is in host memory; must agree with the
  // KernelDef.
  virtual bool IsInputOnHost(int /*i*/) const { return false; }
  virtual bool IsOutputOnHost(int /*i*/) const { return false; }

  absl::Status ComputeAsync(AsyncRun& run) final;

 private:
  struct Work {
    HostArrays inputs;
    HostOutputs outputs;
    std::vector<Tensor> tensors;  // released before the run finishes
    std::vector<std::unique_ptr<char[]>> memory;
    std::unique_ptr<AsyncRun> run;

    void Finish(const absl::Status& status) {
      tensors.clear();
      run->Finish(status);
    }
  };

  absl::Status CopyOutputs(const op_kernels_internal::HostAccess& host,
                           void* stream,
                           const std::shared_ptr<Work>& work) const;
};

inline absl::Status ReadThenHostKernel::ComputeAsync(AsyncRun& run) {
  const op_kernels_internal::RegisteredBackend& backend =
      op_kernels_internal::registered_backend;
  const op_kernels_internal::HostAccess* const host = backend.host_access;
  if (host == nullptr) {
    return absl::UnimplementedError(
        "this op computes on the host, for which the stream of the backend "
        "must be derived from tfplug::Stream");
  }
  KernelContext& context = run.context();
  TFPLUG_ASSIGN_OR_RETURN(void* const stream, backend.get_stream(context));
  const auto work = std::make_shared<Work>();
  for (int i = 0; i < context.num_inputs(); ++i) {
    TFPLUG_ASSIGN_OR_RETURN(Tensor tensor, context.GetInput(i));
    void* data = tensor.data();
    if (!IsInputOnHost(i)) {
      work->memory.emplace_back(new char[tensor.byte_size() + 1]);
      data = work->memory.back().get();
    }
    work->inputs.push_back({tensor.dtype(), tensor.shape(), data});
    work->tensors.push_back(std::move(tensor));
  }
  std::vector<DataType> types;
  for (int i = 0; i < context.num_outputs(); ++i) {
    types.push_back(context.output_dtype(i));
  }
  work->outputs = HostOutputs(std::move(types));
  // From here on, enqueued copies use the memory of `work`.
  work->run = std::make_unique<AsyncRun>(std::move(run));
  const absl::Status status = internal::Guarded([&]() -> absl::Status {
    for (int i = 0; i < static_cast<int>(work->inputs.size()); ++i) {
      const Tensor& tensor = work->tensors[static_cast<size_t>(i)];
      if (IsInputOnHost(i) || tensor.byte_size() == 0) continue;
      TFPLUG_RETURN_IF_ERROR(host->copy_to_host(
          stream, work->inputs[static_cast<size_t>(i)].data, tensor.memory()));
    }
    return host->run(stream, [this, host, stream, work] {
      const absl::Status added =
          op_kernels_internal::Continuations::Add([this, host, stream, work] {
            const absl::Status status = internal::Guarded([&] {
              TFPLUG_RETURN_IF_ERROR(Compute(work->inputs, work->outputs));
              return CopyOutputs(*host, stream, work);
            });
            if (!status.ok()) work->Finish(status);
          });
      if (!added.ok()) work->Finish(added);
    });
  });
  if (!status.ok()) {
    op_kernels_internal::NeverFree(work);
    work->Finish(status);
  }
  return absl::OkStatus();
}

inline absl::Status ReadThenHostKernel::CopyOutputs(
    const op_kernels_internal::HostAccess& host, void* stream,
    const std::shared_ptr<Work>& work) const {
  const size_t n = work->tensors.size();
  int i = 0;
  for (const HostArray& array : work->outputs.arrays()) {
    TFPLUG_ASSIGN_OR_RETURN(
        Tensor tensor, work->run->context().AllocateOutput(i++, array.shape));
    work->tensors.push_back(std::move(tensor));
  }
  const absl::Status status = internal::Guarded([&]() -> absl::Status {
    for (size_t k = 0; k < work->outputs.arrays().size(); ++k) {
      const Tensor& tensor = work->tensors[n + k];
      const HostArray& array = work->outputs.arrays()[k];
      const void* const from = array.data;
      if (tensor.byte_size() == 0) continue;
      if (array.type == DataType::kString) {
        TString* to = tensor.flat<TString>().data();
        for (const auto& text : *array.as<std::vector<std::string>>()) {
          (to++)->Assign(text);
        }
      } else if (IsOutputOnHost(static_cast<int>(k))) {
        std::memcpy(tensor.data(), from, tensor.byte_size());
      } else {
        TFPLUG_RETURN_IF_ERROR(
            host.copy_to_device(stream, tensor.memory(), from));
      }
    }
    return host.run(stream, [work] { work->Finish(absl::OkStatus()); });
  });
  if (!status.ok()) op_kernels_internal::NeverFree(work);
  return status;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_READ_THEN_HOST_KERNEL_H_
