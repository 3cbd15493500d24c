// SPDX-License-Identifier: Apache-2.0
#include "tfplug/base/ask_in_child.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

namespace tfplug::ask_in_child_test {
namespace {

using Answer = absl::StatusOr<std::string>;

TEST_CASE("AskInChild returns the answer, and the process stays as it was") {
  static int calls = 0;
  const Answer answer = tfplug::AskInChild([]() -> Answer {
    return std::to_string(++calls) + std::string("\0 devices", 9);
  });
  CHECK(answer.value() == std::string("1\0 devices", 10));
  CHECK(calls == 0);
  CHECK(tfplug::AskInChild([]() -> Answer { return ""; }).value().empty());
  // More than a pipe holds.
  const std::string large(1 << 20, 'x');
  CHECK(tfplug::AskInChild([&]() -> Answer { return large; }).value() == large);
}

TEST_CASE("AskInChild: the child ends, and no file stays open") {
  const auto unused_file = [] {
    const int file = dup(0);
    close(file);
    return file;
  };
  const int file = unused_file();
  int returned[2];
  REQUIRE(pipe2(returned, O_NONBLOCK) == 0);
  const int other = unused_file();
  const pid_t here = getpid();
  CHECK(tfplug::AskInChild([]() -> Answer { return ""; }).ok());
  if (getpid() != here) {
    (void)!write(returned[1], "x", 1);
    _exit(0);
  }
  CHECK(unused_file() == other);
  char byte;
  CHECK(read(returned[0], &byte, 1) == -1);
  close(returned[0]);
  close(returned[1]);
  CHECK(unused_file() == file);
}

TEST_CASE("AskInChild returns the error with its code") {
  CHECK(tfplug::AskInChild([]() -> Answer {
          return absl::NotFoundError("no driver");
        }).status() == absl::NotFoundError("no driver"));
}

TEST_CASE("AskInChild: a driver that exits or crashes becomes a status") {
  CHECK(tfplug::AskInChild([]() -> Answer { _exit(0); }).status() ==
        absl::InternalError("the driver exited from the process"));
  const absl::Status crashed = tfplug::AskInChild([]() -> Answer {
                                 signal(SIGTERM, SIG_DFL);
                                 raise(SIGTERM);
                                 return "";
                               }).status();
  CHECK(crashed == absl::InternalError("the driver crashed: Terminated"));
}

TEST_CASE("AskInChild: a driver that hangs is killed and becomes a status") {
  const int before = std::exchange(internal::answer_milliseconds, 1);
  const absl::Status hung = tfplug::AskInChild([]() -> Answer {
                              for (;;) pause();
                            }).status();
  internal::answer_milliseconds = before;
  CHECK(hung == absl::DeadlineExceededError(
                    "the driver did not answer within a minute"));
}

TEST_CASE("ReadAnswer ends when nothing can be read") {
  std::string bytes;
  errno = EINTR;                                         // of an earlier call
  CHECK(internal::ReadAnswer(/*pipe=*/1 << 20, bytes));  // not open
  CHECK(bytes.empty());
}

TEST_CASE("AskInChild asks here if the driver works only here") {
  const pid_t here = getpid();
  int calls = 0;
  const Answer answer = tfplug::AskInChild([&]() -> Answer {
    ++calls;
    if (getpid() != here) return absl::UnavailableError("driver in use");
    return "2 devices";
  });
  CHECK(answer.value() == "2 devices");
  CHECK(calls == 1);
}

#if defined(__cpp_exceptions)
TEST_CASE("AskInChild: an exception becomes a status") {
  const auto ask = []() -> Answer { throw std::runtime_error("no driver"); };
  CHECK(tfplug::AskInChild(ask).status() ==
        absl::InternalError("C++ exception: no driver"));
}
#endif

}  // namespace
}  // namespace tfplug::ask_in_child_test
