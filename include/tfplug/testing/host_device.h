// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_HOST_DEVICE_H_
#define TFPLUG_TESTING_HOST_DEVICE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tfplug/testing/bfc_allocator.h"
#include "tfplug/testing/event_manager.h"
#include "tfplug/testing/fake_device.h"
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
  };
  // `device` must have its streams and must outlive this object.
  HostDevice(FakeDevice& device, const Options& options)
      : device_(device), options_(options), events_(device) {
    device_.set_tensor_memory(this);
  }
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;
  ~HostDevice() override {
    events_.Wait();
    device_.set_tensor_memory(nullptr);
  }

  FakeDevice& device() { return device_; }
  EventManager& events() { return events_; }

  // Allocates memory for a tensor; null if there is none. It is free again when
  // the last tensor has gone, also if work that uses it is enqueued: what uses it
  // next waits for the compute stream.
  std::shared_ptr<TensorBuffer> Allocate(size_t size) override {
    if (!options_.use_bfc_allocator) return AllocateByPlugin(size);
    BfcAllocator& memory = Memory();
    void* const allocated = memory.Allocate(size);
    if (allocated == nullptr) return nullptr;
    return std::make_shared<TensorBuffer>(
        allocated, size,
        [&memory, allocated] { memory.Deallocate(allocated); });
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
  // reports it: memory that is not aligned, or the status of an event.
  absl::Status Problems() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return problem_.ok() ? events_.status() : problem_;
  }

 private:
  // Returns how much of a device's free memory TensorFlow leaves to the system.
  // Recorded for 1 and 8 GiB.
  static int64_t MemoryOfSystem(int64_t available) {
    constexpr int64_t kMebi = int64_t{1} << 20;
    if (available < int64_t{1} << 31) return 255 * kMebi;
    return std::max(300 * kMebi, static_cast<int64_t>(
                                     static_cast<double>(available) * 0.06));
  }

  BfcAllocator& Memory() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (memory_ == nullptr) {
      int64_t limit = device_.free_at_start();
      if (limit > MemoryOfSystem(limit)) limit -= MemoryOfSystem(limit);
      memory_ = std::make_unique<BfcAllocator>(
          BfcAllocator::Options{static_cast<size_t>(limit), options_.grows},
          [this](size_t size) {
            return Checked("allocate", device_.Allocate(size).opaque());
          },
          [this](void* memory, size_t size) {
            device_.Deallocate(DeviceMemory(memory, size));
          });
    }
    return *memory_;
  }
  BfcAllocator& HostMemory() {
    constexpr size_t kLimit = size_t{64} << 30;
    std::lock_guard<std::mutex> lock(mutex_);
    if (host_memory_ == nullptr) {
      host_memory_ = std::make_unique<BfcAllocator>(
          BfcAllocator::Options{kLimit, /*grows=*/true},
          [this](size_t size) {
            return Checked("host_memory_allocate", device_.AllocateHost(size));
          },
          [this](void* memory, size_t) { device_.DeallocateHost(memory); });
    }
    return *host_memory_;
  }
  // Notes memory on which TensorFlow aborts from 2.22 on.
  void* Checked(const char* slot, void* memory) {
    const auto address = reinterpret_cast<uintptr_t>(memory);
    if (!(options_.release < Release{2, 22}) &&
        address % BfcAllocator::kUnit != 0) {
      std::lock_guard<std::mutex> lock(mutex_);
      problem_.Update(absl::AbortedError(
          absl::StrCat(slot, " returned memory that is not aligned to ",
                       BfcAllocator::kUnit, " bytes: TensorFlow would abort")));
    }
    return memory;
  }
  // TensorFlow passes no size to deallocate.
  std::shared_ptr<TensorBuffer> AllocateByPlugin(size_t size) {
    const DeviceMemory memory = device_.Allocate(size);
    if (memory.is_null()) return nullptr;
    return std::make_shared<TensorBuffer>(
        memory.opaque(), size, [this, memory] {
          device_.Deallocate(DeviceMemory(memory.opaque(), 0));
        });
  }

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
    BfcAllocator& memory = HostMemory();
    void* const host = memory.Allocate(tensor.buffer->size);
    if (host == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("OOM when allocating ", tensor.buffer->size,
                       " bytes of host memory"));
    }
    return TF_Tensor(tensor.dtype, tensor.dims,
                     std::make_shared<TensorBuffer>(
                         host, tensor.buffer->size,
                         [&memory, host] { memory.Deallocate(host); }));
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
        events_.ThenExecute(stream, [&] { is_done.set_value(); });
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
  mutable std::mutex mutex_;
  absl::Status problem_;
  std::unique_ptr<BfcAllocator> memory_, host_memory_;
  EventManager events_;  // last: what it runs uses the memory
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_HOST_DEVICE_H_
