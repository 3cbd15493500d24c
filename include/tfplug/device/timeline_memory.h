// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_TIMELINE_MEMORY_H_
#define TFPLUG_DEVICE_TIMELINE_MEMORY_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/internal/fork_check.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/device/address_space.h"
#include "tfplug/device/buffer_stream.h"
#include "tfplug/device/internal/timeline.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// What the streams and the memory of a device with TimelineStreams share: the
// addresses of buffers, and the buffers that were released while work might
// still use them. Thread-safe. The author derives from it a base of the device;
// timeline_stream.h describes that class. The driver's objects have to outlive
// the buffers: they belong in an earlier base.
template <class BufferT, class BatchT, class CounterT>
class TimelineMachine {
 public:
  using Buffer = BufferT;
  using Batch = BatchT;
  using Counter = CounterT;
  using Location = typename AddressSpace<Buffer*>::Location;

  // A wait of a batch for a stream.
  struct Wait {
    Counter* counter;
    uint64_t value;
  };

  TimelineMachine() { internal::ForkCheck::FailInForkedChildren(); }

  AddressSpace<Buffer*> addresses;

  // Called by streams. Recording and submitting need the lock.
  std::mutex& stream_mutex() { return stream_mutex_; }
  void AddStream(std::shared_ptr<device_internal::Progress> stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    streams_.push_back(std::move(stream));
  }
  void RemoveStream(const device_internal::Progress* stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    streams_.erase(
        std::find_if(streams_.begin(), streams_.end(),
                     [&](const auto& each) { return each.get() == stream; }));
  }

  // Destroys the buffer once all work that has been enqueued is done, in this
  // call or a later one. Waits for nothing: TensorFlow holds the lock of its
  // allocator, for which a task of a stream may wait.
  void Retire(std::unique_ptr<Buffer> buffer) {
    Retired retired{std::move(buffer), {}};
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const auto& stream : streams_) {
        retired.uses.push_back({stream, stream->added()});
      }
    }
    if (!IsOver(retired)) {
      const std::lock_guard<std::mutex> lock(mutex_);
      retired_.push_back(std::move(retired));
    }
    Collect();
  }
  // Destroys the buffers that are out of use.
  void Collect() {
    std::vector<Retired> over;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto end =
        std::partition(retired_.begin(), retired_.end(),
                       [](Retired& each) { return !IsOver(each); });
    std::move(end, retired_.end(), std::back_inserter(over));
    retired_.erase(end, retired_.end());
  }
  // Does the same after the work that the device has begun.
  void WaitAndCollect() {
    std::vector<Use> uses;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const Retired& each : retired_) {
        uses.insert(uses.end(), each.uses.begin(), each.uses.end());
      }
    }
    for (const Use& use : uses) use.stream->BlockHostForDevice(use.step);
    Collect();
  }

 private:
  struct Use {
    std::shared_ptr<device_internal::Progress> stream;
    uint64_t step;  // the last one that may use the buffer
  };
  struct Retired {
    std::unique_ptr<Buffer> buffer;
    std::vector<Use> uses;
  };

  static bool IsOver(Retired& retired) {
    auto& uses = retired.uses;
    while (!uses.empty() && uses.back().stream->IsOver(uses.back().step)) {
      uses.pop_back();
    }
    return uses.empty();
  }

  std::mutex stream_mutex_;
  std::mutex mutex_;  // of what follows
  std::vector<std::shared_ptr<device_internal::Progress>> streams_;
  std::vector<Retired> retired_;
};

// The memory of a device with TimelineStreams. Buffers are destroyed when no work
// uses them any more.
template <class Machine>
class TimelineAllocator final
    : public BufferAllocator<TimelineAllocator<Machine>,
                             typename Machine::Buffer*> {
  using Buffer = typename Machine::Buffer;

 public:
  explicit TimelineAllocator(Machine& machine)
      : BufferAllocator<TimelineAllocator, Buffer*>(machine.addresses),
        machine_(machine) {}

  absl::StatusOr<Buffer*> CreateBuffer(uint64_t size) override {
    TFPLUG_RETURN_IF_ERROR(internal::ForkCheck::Check("an allocation"));
    machine_.Collect();
    auto buffer = machine_.MakeBuffer(size, /*is_for_host=*/false);
    if (absl::IsResourceExhausted(buffer.status())) {
      machine_.WaitAndCollect();
      buffer = machine_.MakeBuffer(size, false);
    }
    if (!buffer.ok()) return buffer.status();
    return buffer->release();
  }
  absl::StatusOr<uint64_t> TotalMemory() override {
    return machine_.TotalMemory();
  }
  absl::Status ReleaseBuffer(Buffer* buffer) override {
    TFPLUG_RETURN_IF_ERROR(internal::ForkCheck::Check("a release of memory"));
    machine_.Retire(std::unique_ptr<Buffer>(buffer));
    return absl::OkStatus();
  }

 private:
  Machine& machine_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_TIMELINE_MEMORY_H_
