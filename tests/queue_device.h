// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_QUEUE_DEVICE_H_
#define TFPLUG_TESTS_QUEUE_DEVICE_H_

#include <tfplug/plugin.h>

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "copy_hooks.h"
#include "flag.h"
#include "minimal_device.h"

// A device in host memory whose streams are threads, and which can be told to
// make a mistake.
namespace queue {

enum class Mistake {
  kNone,
  kIgnoresWaitForStream,
  kIgnoresWaitForEvent,
  kRunsTasksAtOnce,
  kRefusesTasks,
  kCopiesAtOnce,
  kRecordsEventsEarly,
  kFillsTooLittle,
  kFillsWithBytes,
  kBlocksTooShort,
  kSynchronizesTooShort,
};
inline Mistake mistake = Mistake::kNone;
inline absl::Status stream_status;  // of all streams

// Work that a thread does in order.
class Queue {
 public:
  ~Queue() {
    Add(nullptr);
    thread_.join();
  }
  void Add(std::function<void()> work) {
    std::lock_guard<std::mutex> lock(mutex_);
    work_.push_back(std::move(work));
    changed_.notify_all();
  }
  // Returns a flag that is set once all work so far is done.
  std::shared_ptr<Flag> Mark() {
    auto flag = std::make_shared<Flag>();
    Add([flag] { flag->Set(); });
    return flag;
  }

 private:
  void Run() {
    while (true) {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return !work_.empty(); });
      const std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      if (work == nullptr) return;
      work();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::thread thread_{[this] { Run(); }};
};

class Event : public tfplug::Event {
 public:
  absl::StatusOr<tfplug::EventStatus> Poll() override {
    return flag == nullptr || flag->is_set() ? tfplug::EventStatus::kComplete
                                             : tfplug::EventStatus::kPending;
  }
  absl::Status BlockHost() override {
    if (flag != nullptr) flag->Wait();
    return absl::OkStatus();
  }

  std::shared_ptr<Flag> flag;  // of the last recording
};

class Device;

class Stream : public CopyHooks<Stream, Event> {
 public:
  explicit Stream(Device& device);
  ~Stream() override;

  absl::Status GetStatus() override { return stream_status; }
  absl::Status WaitForStream(Stream& other) override {
    if (mistake == Mistake::kIgnoresWaitForStream) return absl::OkStatus();
    work_.Add([flag = other.work_.Mark()] { flag->Wait(); });
    return absl::OkStatus();
  }
  absl::Status RecordEvent(Event& event) override {
    if (mistake == Mistake::kRecordsEventsEarly) {
      event.flag = std::make_shared<Flag>();
      event.flag->Set();
    } else {
      event.flag = work_.Mark();
    }
    return absl::OkStatus();
  }
  absl::Status WaitForEvent(Event& event) override {
    if (mistake == Mistake::kIgnoresWaitForEvent) return absl::OkStatus();
    if (event.flag != nullptr) {
      work_.Add([flag = event.flag] { flag->Wait(); });
    }
    return absl::OkStatus();
  }
  absl::Status Memset(tfplug::DeviceMemory dst, tfplug::BytePattern pattern,
                      uint64_t size) override {
    if (mistake == Mistake::kFillsTooLittle) --size;
    work_.Add([=] { std::memset(dst.opaque(), pattern.value, size); });
    return absl::OkStatus();
  }
  absl::Status Memset32(tfplug::DeviceMemory dst, tfplug::WordPattern pattern,
                        uint64_t size) override {
    if (mistake == Mistake::kFillsWithBytes) {
      return Memset(dst, {static_cast<uint8_t>(pattern.value)}, size);
    }
    work_.Add([=] {
      for (uint64_t i = 0; i < size; i += 4) {
        std::memcpy(static_cast<char*>(dst.opaque()) + i, &pattern.value, 4);
      }
    });
    return absl::OkStatus();
  }
  absl::Status RunOnHost(tfplug::HostTask task) override {
    if (mistake == Mistake::kRunsTasksAtOnce) return task.Run();
    if (mistake == Mistake::kRefusesTasks)
      return absl::InternalError("refused");
    const auto shared = std::make_shared<tfplug::HostTask>(std::move(task));
    work_.Add([shared] { shared->Run().IgnoreError(); });
    return absl::OkStatus();
  }
  absl::Status BlockHostUntilDone() override {
    if (mistake != Mistake::kBlocksTooShort) Wait();
    return absl::OkStatus();
  }

  absl::Status Copy(void* dst, const void* src, uint64_t size) {
    if (mistake == Mistake::kCopiesAtOnce) {
      std::memcpy(dst, src, size);
    } else {
      work_.Add([=] { std::memcpy(dst, src, size); });
    }
    return absl::OkStatus();
  }

  void Wait() { work_.Mark()->Wait(); }

 private:
  Device& device_;
  Queue work_;
};

class Device : public tfplug::Device<Stream, minimal::Memory> {
 public:
  absl::Status SynchronizeAllActivity() override {
    if (mistake == Mistake::kSynchronizesTooShort) return absl::OkStatus();
    for (Stream* stream : streams) stream->Wait();
    return absl::OkStatus();
  }

  absl::Status CopyHostToDeviceSync(tfplug::DeviceMemory dst, const void* src,
                                    uint64_t size) override {
    std::memcpy(dst.opaque(), src, size);
    return absl::OkStatus();
  }
  absl::Status CopyDeviceToHostSync(void* dst, tfplug::DeviceMemory src,
                                    uint64_t size) override {
    std::memcpy(dst, src.opaque(), size);
    return absl::OkStatus();
  }
  absl::Status CopyDeviceToDeviceSync(tfplug::DeviceMemory dst,
                                      tfplug::DeviceMemory src,
                                      uint64_t size) override {
    std::memcpy(dst.opaque(), src.opaque(), size);
    return absl::OkStatus();
  }

  std::set<Stream*> streams;  // created and destroyed by one thread
};

inline Stream::Stream(Device& device) : device_(device) {
  device.streams.insert(this);
}
inline Stream::~Stream() { device_.streams.erase(this); }

}  // namespace queue

#endif  // TFPLUG_TESTS_QUEUE_DEVICE_H_
