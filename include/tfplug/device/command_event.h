// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_COMMAND_EVENT_H_
#define TFPLUG_DEVICE_COMMAND_EVENT_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/device/event.h"
#include "tfplug/device/timer.h"

#pragma GCC visibility push(hidden)

// Events and timers for drivers that report on each command with an object of
// its own, such as OpenCL's cl_event. `Commands` is a struct of the author with
// static functions:
//
//   struct Commands {
//     using Handle = cl_event;
//     static void Release(Handle command);
//     static absl::StatusOr<tfplug::EventStatus> Poll(Handle command);
//     static absl::Status BlockHost(Handle command);
//     // When a command that is complete began and ended.
//     static absl::StatusOr<tfplug::WorkTimes> GetTimes(Handle command);
//   };
namespace tfplug {

// An event that refers to the command at which it was recorded last; complete
// if there is none. Thread-safe.
template <class Commands>
class CommandEvent : public Event {
 public:
  using Handle = typename Commands::Handle;
  // A command that others may wait for while the event is recorded again.
  using Command = std::shared_ptr<std::remove_pointer_t<Handle>>;

  absl::StatusOr<EventStatus> Poll() override {
    const Command command = Get();
    if (command == nullptr) return EventStatus::kComplete;
    return Commands::Poll(command.get());
  }
  absl::Status BlockHost() override {
    const Command command = Get();
    if (command == nullptr) return absl::OkStatus();
    return Commands::BlockHost(command.get());
  }

  // Returns the command, or null.
  Command Get() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return command_;
  }
  // Records the event at the command, which it owns from now on.
  void Set(Handle handle) {
    Command command(handle, &Commands::Release);
    const std::lock_guard<std::mutex> lock(mutex_);
    command_.swap(command);
  }

 private:
  mutable std::mutex mutex_;
  Command command_;
};

// A timer that keeps the commands that the calling thread enqueues between
// Start and Stop: the first and the last one, whose times the driver measures.
// Thread: that of Start, except that any thread may read the times.
template <class Commands>
class CommandTimer : public Timer {
 public:
  using Handle = typename Commands::Handle;

  CommandTimer() = default;
  CommandTimer(const CommandTimer&) = delete;
  CommandTimer& operator=(const CommandTimer&) = delete;
  ~CommandTimer() override {
    Stop();
    Release();
  }

  void Start() {
    Release();
    running_ = this;
  }
  void Stop() {
    if (running_ == this) running_ = nullptr;
  }

  // Returns whether a timer of the calling thread runs.
  static bool IsRunning() { return running_ != nullptr; }

  // Returns where the driver stores the handle of the calling thread's next
  // command; null if no timer runs.
  static Handle* Next() {
    CommandTimer* const timer = running_;
    return timer == nullptr ? nullptr : timer->NextOfThis();
  }

  absl::StatusOr<uint64_t> Nanoseconds() override {
    if (last() == nullptr) return 0;
    const absl::Status status = Commands::BlockHost(last());
    if (!status.ok()) return status;
    const absl::StatusOr<WorkTimes> times = GetTimes();
    if (!times.ok()) return times.status();
    return times->end_ns - times->begin_ns;
  }
  absl::StatusOr<WorkTimes> GetTimes() override {
    if (last() == nullptr) return absl::NotFoundError("nothing was enqueued");
    const absl::StatusOr<EventStatus> status = Commands::Poll(last());
    if (!status.ok()) return status.status();
    if (*status == EventStatus::kPending) {
      return absl::UnavailableError("not done");
    }
    const absl::StatusOr<WorkTimes> first = Commands::GetTimes(first_);
    if (!first.ok() || last_ == nullptr) return first;
    const absl::StatusOr<WorkTimes> last = Commands::GetTimes(last_);
    if (!last.ok()) return last;
    return WorkTimes{first->begin_ns, last->end_ns};
  }

 private:
  Handle last() const { return last_ != nullptr ? last_ : first_; }
  [[gnu::cold, gnu::noinline]] Handle* NextOfThis() {
    if (first_ == nullptr) return &first_;
    if (last_ != nullptr) Commands::Release(last_);
    last_ = nullptr;
    return &last_;
  }
  void Release() {
    for (Handle* const handle : {&first_, &last_}) {
      if (*handle != nullptr)
        Commands::Release(std::exchange(*handle, nullptr));
    }
  }

  static inline thread_local CommandTimer* running_ = nullptr;

  Handle first_ = nullptr, last_ = nullptr;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_COMMAND_EVENT_H_
