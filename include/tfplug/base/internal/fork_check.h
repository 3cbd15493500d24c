// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_FORK_CHECK_H_
#define TFPLUG_BASE_INTERNAL_FORK_CHECK_H_

#include <pthread.h>

#include <string>

#include "absl/base/optimization.h"
#include "absl/status/status.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Returns the error of something that a forked child cannot do.
[[gnu::cold, gnu::noinline]] inline absl::Status ForkedError(const char* what) {
  return absl::FailedPreconditionError(
      std::string(what) +
      ": the process was forked after the device's driver was used, and the "
      "child has no threads of the driver; use the device in the child only "
      "(for example with the multiprocessing start method \"spawn\")");
}

// Fails in forked children what needs a thread or a lock of the parent: a thread
// that the child does not have may have held the lock at the time of the fork.
class ForkCheck {
 public:
  // Lets Check fail in children that are forked from now on. Thread-safe.
  static void FailInForkedChildren() {
    [[maybe_unused]] static const int registered =
        pthread_atfork(nullptr, nullptr, [] { is_child_ = true; });
  }

  // FAILED_PRECONDITION in such a child; `what` begins the message.
  static absl::Status Check(const char* what) {
    return ABSL_PREDICT_TRUE(!is_child_) ? absl::OkStatus() : ForkedError(what);
  }

 private:
  // Is set before the child has a second thread.
  inline static bool is_child_ = false;
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_FORK_CHECK_H_
