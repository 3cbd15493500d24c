// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_HOST_TASKS_H_
#define TFPLUG_TESTING_HOST_TASKS_H_

#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "tfplug/testing/fake_status.h"

namespace tfplug::testing {

// The host tasks that a device was given. Core frees a task when it runs, so
// one that runs twice crashes there, and one that never runs is waited for
// without end; here they are kept, and counted. Thread-safe.
class HostTasks {
 public:
  // The argument for Run, an SE_StatusCallbackFn.
  void* Add(std::function<absl::Status()> function) {
    std::lock_guard<std::mutex> lock(mutex_);
    tasks_.emplace_back();
    tasks_.back().owner = this;
    tasks_.back().function = std::move(function);
    return &tasks_.back();
  }

  // The plug-in has said that it will not run it.
  void Refused(void* argument) {
    std::lock_guard<std::mutex> lock(mutex_);
    static_cast<Task*>(argument)->refused = true;
  }

  static void Run(void* argument, capi::TF_Status* status) {
    auto* task = static_cast<Task*>(argument);
    {
      std::lock_guard<std::mutex> lock(task->owner->mutex_);
      if (task->runs++ > 0) return;
    }
    ToCore(task->function(), status);
  }

  // OK when every accepted task has run once by now, and no refused one.
  absl::Status Check() const {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const Task& task : tasks_) {
      if (task.runs == (task.refused ? 0 : 1)) continue;
      return absl::InternalError(std::string("a host task that was ") +
                                 (task.refused ? "refused" : "accepted") +
                                 " has run " + std::to_string(task.runs) +
                                 " times");
    }
    return absl::OkStatus();
  }

 private:
  struct Task {
    HostTasks* owner = nullptr;
    std::function<absl::Status()> function;
    int runs = 0;
    bool refused = false;
  };

  mutable std::mutex mutex_;
  std::list<Task> tasks_;
};

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTING_HOST_TASKS_H_
