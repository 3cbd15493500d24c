// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/plugin.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

#include "copy_hooks.h"
#include "flag.h"

// A device that provokes races: each stream is a thread, each addition starts a
// second late, and freed memory is the first to be reused. The macro
// UPLOADS_WAIT is the value of the device's kUploadsWaitForKernels.
namespace late {

class Event : public tfplug::Event {
 public:
  absl::StatusOr<tfplug::EventStatus> Poll() override {
    return flag()->is_set() ? tfplug::EventStatus::kComplete
                            : tfplug::EventStatus::kPending;
  }
  absl::Status BlockHost() override {
    flag()->Wait();
    return absl::OkStatus();
  }

  std::shared_ptr<Flag> flag() {
    std::lock_guard<std::mutex> lock(mutex_);
    return flag_;
  }
  void set_flag(std::shared_ptr<Flag> flag) {
    std::lock_guard<std::mutex> lock(mutex_);
    flag_ = std::move(flag);
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<Flag> flag_ = std::make_shared<Flag>();
};

class Stream : public CopyHooks<Stream, Event> {
 public:
  Stream() : thread_([this] { Run(); }) {}
  ~Stream() override {
    Enqueue(nullptr).IgnoreError();
    thread_.join();
  }

  absl::Status GetStatus() override { return absl::OkStatus(); }
  absl::Status RecordEvent(Event& event) override {
    auto flag = std::make_shared<Flag>();
    event.set_flag(flag);
    return Enqueue([flag] { flag->Set(); });
  }
  absl::Status WaitForEvent(Event& event) override {
    return Enqueue([flag = event.flag()] { flag->Wait(); });
  }
  absl::Status Copy(void* dst, const void* src, uint64_t size) {
    return Enqueue([=] { std::memmove(dst, src, size); });
  }
  absl::Status Memset(tfplug::DeviceMemory dst, tfplug::BytePattern pattern,
                      uint64_t size) override {
    return Enqueue([=] { std::memset(dst.opaque(), pattern.value, size); });
  }
  absl::Status RunOnHost(tfplug::HostTask task) override {
    auto shared = std::make_shared<tfplug::HostTask>(std::move(task));
    return Enqueue([shared] { shared->Run().IgnoreError(); });
  }

  // A null `work` stops the thread.
  absl::Status Enqueue(std::function<void()> work) {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.push(std::move(work));
    enqueued_.notify_one();
    return absl::OkStatus();
  }

 private:
  void Run() {
    for (;;) {
      std::function<void()> work;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        enqueued_.wait(lock, [&] { return !queue_.empty(); });
        work = std::move(queue_.front());
        queue_.pop();
      }
      if (work == nullptr) return;
      work();
    }
  }

  std::mutex mutex_;
  std::condition_variable enqueued_;
  std::queue<std::function<void()>> queue_;
  std::thread thread_;
};

class Memory : public tfplug::Allocator {
 public:
  absl::StatusOr<tfplug::DeviceMemory> Allocate(uint64_t size,
                                                int64_t) override {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<void*>& free = free_[size];
    if (free.empty()) {
      void* const block = std::aligned_alloc(256, (size + 255) / 256 * 256);
      sizes_[block] = size;
      free.push_back(block);
    }
    void* const memory = free.back();
    free.pop_back();
    return tfplug::DeviceMemory(memory, size);
  }
  absl::Status Deallocate(tfplug::DeviceMemory memory) override {
    std::lock_guard<std::mutex> lock(mutex_);
    free_[sizes_[memory.opaque()]].push_back(memory.opaque());
    return absl::OkStatus();
  }
  absl::StatusOr<tfplug::MemoryUsage> Usage() override {
    return tfplug::MemoryUsage{int64_t{1} << 28, int64_t{1} << 28};
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, std::vector<void*>> free_;
  // Sizes by address, which TensorFlow does not pass to Deallocate.
  std::map<void*, uint64_t> sizes_;
};

class Device : public tfplug::Device<Stream, Memory> {
 public:
  static constexpr bool kUploadsWaitForKernels = UPLOADS_WAIT;

  // TensorFlow synchronizes before reads only to collect errors, and this
  // device reports none.
  absl::Status SynchronizeAllActivity() override { return absl::OkStatus(); }
};

class Platform : public tfplug::Platform<Device> {
 public:
  static constexpr char kName[] = "LATE", kType[] = "LATE";
  tfplug::PlatformOptions Options() override {
    tfplug::PlatformOptions options;
    options.use_bfc_allocator = false;
    return options;
  }
  absl::StatusOr<int> DeviceCount() override { return 1; }
};

class Add : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor y, context.GetInput(1));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor sum,
                            context.AllocateOutput(0, x.shape()));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    const auto a = x.flat<float>(), b = y.flat<float>();
    const auto out = sum.flat<float>();
    return stream->Enqueue([=] {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      for (size_t i = 0; i < out.size(); ++i) out[i] = a[i] + b[i];
    });
  }
};

}  // namespace late

TFPLUG_REGISTER_DEVICE(late::Platform);
TFPLUG_REGISTER_KERNEL(late::Add,
                       tfplug::KernelDef("AddV2").TypeConstraint<float>("T"));
