// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_ASK_IN_CHILD_H_
#define TFPLUG_BASE_ASK_IN_CHILD_H_

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/internal/guard.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace internal {

// Writes the code of the status, and the text or the message.
inline void WriteAnswer(int pipe, const absl::StatusOr<std::string>& answer) {
  const auto code = static_cast<char>(answer.status().code());
  std::string bytes(1, code);
  bytes += answer.ok() ? *answer : std::string(answer.status().message());
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(pipe, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno != EINTR) return;
    if (n > 0) done += static_cast<size_t>(n);
  }
}

// How long a child may take to answer. Tests wait less.
inline int answer_milliseconds = 60'000;

// Reads until the child has closed the pipe. Returns false if that takes too
// long.
inline bool ReadAnswer(int pipe, std::string& bytes) {
  pollfd polled = {pipe, POLLIN, 0};
  char buffer[4096];
  for (;;) {
    const int ready = poll(&polled, 1, answer_milliseconds);
    if (ready == 0) return false;
    if (ready < 0 && errno == EINTR) continue;
    const ssize_t n = read(pipe, buffer, sizeof(buffer));
    if (n == 0 || (n < 0 && errno != EINTR)) return true;
    if (n > 0) bytes.append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace internal

// Calls ask() in a forked child of the process and returns its result. If that
// is an error, calls ask() in this process: if another library has used the
// driver here, the driver works here and not in children.
//
// After a driver has been used in a process, it does not work in children that
// are forked later. TensorFlow counts the devices when it is imported. If a
// platform counts them with this function and loads the driver in Device::Init,
// a child that is forked before the first use of a device can use the devices
// itself. A driver that crashes or hangs, for a minute, becomes a status.
//
// Threads: any.
inline absl::StatusOr<std::string> AskInChild(
    const std::function<absl::StatusOr<std::string>()>& ask) {
  int ends[2];
  if (pipe(ends) != 0) return absl::ErrnoToStatus(errno, "pipe");
  const pid_t child = fork();
  if (child < 0) {
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    return absl::ErrnoToStatus(error, "fork");
  }
  const auto answer = [&]() -> absl::StatusOr<std::string> {
    TFPLUG_INTERNAL_TRY { return ask(); }
    TFPLUG_INTERNAL_CATCH_ALL { return internal::CurrentException(); }
  };
  if (child == 0) {
    internal::WriteAnswer(ends[1], answer());
    _exit(0);
  }
  close(ends[1]);
  std::string bytes;
  const bool in_time = internal::ReadAnswer(ends[0], bytes);
  close(ends[0]);
  if (!in_time) kill(child, SIGKILL);
  int result = 0;
  while (waitpid(child, &result, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    return absl::DeadlineExceededError(
        "the driver did not answer within a minute");
  }
  if (bytes.empty()) {
    return absl::InternalError(WIFSIGNALED(result)
                                   ? std::string("the driver crashed: ") +
                                         strsignal(WTERMSIG(result))
                                   : "the driver exited from the process");
  }
  const auto code = static_cast<absl::StatusCode>(bytes[0]);
  bytes.erase(0, 1);
  return code == absl::StatusCode::kOk ? bytes : answer();
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_ASK_IN_CHILD_H_
