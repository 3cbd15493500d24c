// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_HOST_TASKS_H_
#define TFPLUG_TESTING_INTERNAL_HOST_TASKS_H_

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "tfplug/testing/internal/jitter.h"
#include "tfplug/testing/internal/status_functions.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// The host tasks that were enqueued on a device. TensorFlow frees a task after
// its run, so that a second run crashes, and it waits forever for a task that
// never runs. The fake counts the runs instead. Thread-safe.
class HostTasks {
 public:
  // Delays each task. Null for none.
  void set_jitter(std::shared_ptr<Jitter> jitter) {
    std::lock_guard<std::mutex> lock(mutex_);
    jitter_ = std::move(jitter);
  }

  // Adds a task. Returns the argument to pass to Run, an SE_StatusCallbackFn.
  void* Add(std::function<absl::Status()> function) {
    std::lock_guard<std::mutex> lock(mutex_);
    tasks_.emplace_back();
    tasks_.back().owner = this;
    tasks_.back().function = std::move(function);
    return &tasks_.back();
  }

  // Records that the plug-in did not accept the task.
  void Reject(void* argument) {
    std::lock_guard<std::mutex> lock(mutex_);
    static_cast<Task*>(argument)->is_rejected = true;
  }

  static void Run(void* argument, capi::TF_Status* status) {
    auto* task = static_cast<Task*>(argument);
    std::shared_ptr<Jitter> jitter;
    {
      std::lock_guard<std::mutex> lock(task->owner->mutex_);
      if (task->runs++ > 0) return;
      jitter = task->owner->jitter_;
    }
    if (jitter != nullptr) jitter->Pause();
    WriteStatus(task->function(), status);
  }

  // Returns OK if every accepted task has run once and no rejected task has
  // run.
  absl::Status Check() const {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const Task& task : tasks_) {
      if (task.runs == (task.is_rejected ? 0 : 1)) continue;
      return absl::InternalError(std::string("a host task that was ") +
                                 (task.is_rejected ? "rejected" : "accepted") +
                                 " ran " + std::to_string(task.runs) +
                                 " times");
    }
    return absl::OkStatus();
  }

 private:
  struct Task {
    HostTasks* owner = nullptr;
    std::function<absl::Status()> function;
    int runs = 0;
    bool is_rejected = false;
  };

  mutable std::mutex mutex_;
  std::list<Task> tasks_;
  std::shared_ptr<Jitter> jitter_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_HOST_TASKS_H_
