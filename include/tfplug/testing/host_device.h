// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_HOST_DEVICE_H_
#define TFPLUG_TESTING_HOST_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tfplug/testing/event_manager.h"
#include "tfplug/testing/fake_device.h"
#include "tfplug/testing/guards.h"
#include "tfplug/testing/internal/jitter.h"
#include "tfplug/testing/internal/tensor_allocator.h"
#include "tfplug/testing/release.h"
#include "tfplug/testing/tensor.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// What TensorFlow makes of a plug-in's device (PluggableDevice): the allocators
// of its tensors and of the host memory of copies, an event manager, and copies,
// with TensorFlow's calls in TensorFlow's order. tests/testing/replay_test.cc
// compares them with what stock releases do. Each copy waits on the host for the
// event after it. Thread-safe. Tensors must be destroyed before the device.
class HostDevice : public TensorMemory {
 public:
  struct Options {
    Release release = capi::kNewestRelease;
    // SP_Platform::use_bfc_allocator. Otherwise each tensor is an allocation of
    // the plug-in's.
    bool use_bfc_allocator = true;
    // Whether memory grows on demand, as with set_memory_growth or
    // SP_Platform::force_memory_growth.
    bool grows = false;
    // If not 0, selects pauses that let events complete late, host tasks run late
    // and threads come in another order.
    uint64_t jitter_seed = 0;
  };
  // `device` must have its streams and must outlive this object. Devices that share
  // one of the plug-in's have the event manager of the first.
  HostDevice(FakeDevice& device, const Options& options,
             const HostDevice* first = nullptr)
      : device_(device),
        options_(options),
        jitter_(first != nullptr
                    ? first->jitter_
                    : std::make_shared<Jitter>(options.jitter_seed)),
        events_(first != nullptr
                    ? first->events_
                    : std::make_shared<EventManager>(device, jitter_.get())),
        memory_(device, *events_, options.release, options.use_bfc_allocator,
                options.grows) {
    device_.set_tensor_memory(this);
    device_.set_jitter(jitter_);
  }
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;
  ~HostDevice() override {
    events_->Wait();
    device_.set_tensor_memory(nullptr);
    device_.set_jitter(nullptr);
  }

  FakeDevice& device() { return device_; }
  // Returns whether both are on the same device of the plug-in's.
  bool SharesDevice(const FakeDevice& device) const {
    return device_.SharesDevice(device);
  }
  EventManager& events() { return *events_; }
  Jitter& jitter() { return *jitter_; }

  // Allocates memory for a tensor; null if there is none. It is free again when
  // the last tensor has gone, also if work that uses it is enqueued: what uses it
  // next waits for the compute stream.
  std::shared_ptr<TensorBuffer> Allocate(size_t size) override {
    return memory_.Allocate(size);
  }

  // Copies a tensor in host memory to the device.
  absl::StatusOr<TF_Tensor> CopyFromHost(const TF_Tensor& tensor) {
    auto copy = AllocateLike(tensor);
    if (!copy.ok() || tensor.buffer->size == 0) return copy;
    absl::Status status = CopyFromHost(tensor, *copy);
    if (!status.ok()) return status;
    return copy;
  }

  // Copies a constant of a graph to the device through host memory of the
  // plug-in's. Unlike other copies, this one waits for no other stream.
  absl::StatusOr<TF_Tensor> CopyConstant(const TF_Tensor& tensor) {
    if (tensor.buffer->size == 0) return AllocateLike(tensor);
    auto staged = AllocateOnHost(tensor);
    if (!staged.ok()) return staged;
    std::memcpy(staged->buffer->data, tensor.buffer->data, tensor.buffer->size);
    auto copy = AllocateLike(tensor);
    if (!copy.ok()) return copy;
    absl::Status status = EnqueueFromHost(*staged, *copy);
    if (!status.ok()) return status;
    return copy;
  }

  // Copies a tensor to host memory. Tensor.numpy() waits for the device first.
  absl::StatusOr<TF_Tensor> CopyToHost(const TF_Tensor& tensor,
                                       bool waits_for_device = true) {
    TF_Tensor copy(tensor.dtype, tensor.dims,
                   TensorBuffer::OnHost(tensor.buffer->size));
    if (tensor.buffer->size == 0) return copy;
    absl::Status status;
    if (waits_for_device) status = SynchronizeAll();
    if (status.ok()) status = CopyToHost(tensor, copy);
    if (!status.ok()) return status;
    return copy;
  }

  // Copies a tensor to another device: of the same plug-in directly, of another
  // one through host memory of this device.
  absl::StatusOr<TF_Tensor> CopyTo(HostDevice& to, const TF_Tensor& tensor,
                                   bool waits_for_device = true) {
    auto copy = to.AllocateLike(tensor);
    if (!copy.ok() || tensor.buffer->size == 0) return copy;
    absl::Status status;
    if (waits_for_device) status = SynchronizeAll();
    if (!status.ok()) return status;
    const bool is_same_plugin = &device_.fns() == &to.device_.fns();
    status = is_same_plugin ? CopyDirectly(to, tensor, *copy)
                            : CopyThroughHost(to, tensor, *copy);
    if (!status.ok()) return status;
    return copy;
  }

  // Returns the first mistake on which TensorFlow would abort without a call that
  // reports it: memory that is not aligned, or the status of an event; or a failure
  // to check what ScopedGuards adds to tensors.
  // Waits until the events are polled, if ScopedGuards checks what was released.
  absl::Status Problems() {
    if (ScopedGuards::AreActive()) events_->Wait();
    const absl::Status status = memory_.status();
    return status.ok() ? events_->status() : status;
  }

 private:
  absl::StatusOr<TF_Tensor> AllocateLike(const TF_Tensor& tensor) {
    auto buffer = AllocateOnDevice(device_, tensor.buffer->size);
    if (buffer == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("OOM when allocating ", tensor.buffer->size,
                       " bytes of device memory"));
    }
    return TF_Tensor(tensor.dtype, tensor.dims, std::move(buffer));
  }
  // Allocates host memory of the plug-in's, for a copy.
  absl::StatusOr<TF_Tensor> AllocateOnHost(const TF_Tensor& tensor) {
    auto buffer = memory_.AllocateOnHost(tensor.buffer->size);
    if (buffer == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("OOM when allocating ", tensor.buffer->size,
                       " bytes of host memory"));
    }
    return TF_Tensor(tensor.dtype, tensor.dims, std::move(buffer));
  }
  static DeviceMemory MemoryOf(const TF_Tensor& tensor) {
    return DeviceMemory(tensor.buffer->data, tensor.buffer->size);
  }

  // Up to 2.21, TensorFlow replaces the plug-in's message.
  absl::Status SynchronizeAll() {
    if (!(options_.release < Release{2, 22})) {
      return device_.compute().BlockHostUntilDone();
    }
    if (device_.SynchronizeAllActivity().ok()) return absl::OkStatus();
    return absl::InternalError("PluggableDevice SyncAll failed.");
  }

  // Waits for the copy that a call with this status enqueued. In old releases,
  // TensorFlow looks at the status after that, and aborts.
  absl::Status Finish(FakeStream& stream, const absl::Status& copied) {
    const bool aborts = options_.release < Release{2, 16};
    if (!copied.ok() && !aborts) return copied;
    std::promise<void> is_done;
    absl::Status status =
        events_->ThenExecute(stream, [&] { is_done.set_value(); });
    if (status.ok()) {
      is_done.get_future().wait();
    } else {  // The copy may run, and its memory is the caller's.
      stream.BlockHostUntilDone().IgnoreError();
    }
    if (copied.ok()) return status;
    return absl::AbortedError(absl::StrCat(
        "TensorFlow would abort: Memcpy failed: ", copied.message()));
  }

  absl::Status CopyFromHost(const TF_Tensor& from, const TF_Tensor& to) {
    absl::Status status =
        device_.host_to_device().WaitForStream(device_.compute());
    return status.ok() ? EnqueueFromHost(from, to) : status;
  }
  absl::Status EnqueueFromHost(const TF_Tensor& from, const TF_Tensor& to) {
    FakeStream& stream = device_.host_to_device();
    absl::Status status = stream.CopyHostToDevice(
        MemoryOf(to), from.buffer->data, from.buffer->size);
    return Finish(stream, status);
  }
  absl::Status CopyToHost(const TF_Tensor& from, const TF_Tensor& to) {
    FakeStream& stream = device_.device_to_host();
    absl::Status status = stream.WaitForStream(device_.compute());
    if (!status.ok()) return status;
    status = stream.CopyDeviceToHost(to.buffer->data, MemoryOf(from),
                                     from.buffer->size);
    return Finish(stream, status);
  }
  absl::Status CopyDirectly(HostDevice& device, const TF_Tensor& from,
                            const TF_Tensor& to) {
    FakeStream& stream = device_.device_to_device();
    absl::Status status = stream.WaitForStream(device_.compute());
    if (status.ok()) status = stream.WaitForStream(device.device_.compute());
    if (!status.ok()) return status;
    status = stream.CopyDeviceToDevice(MemoryOf(to), MemoryOf(from),
                                       from.buffer->size);
    return Finish(stream, status);
  }
  absl::Status CopyThroughHost(HostDevice& device, const TF_Tensor& from,
                               const TF_Tensor& to) {
    auto copy = AllocateOnHost(from);
    if (!copy.ok()) return copy.status();
    absl::Status status = CopyToHost(from, *copy);
    return status.ok() ? device.CopyFromHost(*copy, to) : status;
  }

  FakeDevice& device_;
  const Options options_;
  const std::shared_ptr<Jitter> jitter_;  // also of host tasks that run late
  const std::shared_ptr<EventManager> events_;
  TensorAllocator memory_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_HOST_DEVICE_H_
