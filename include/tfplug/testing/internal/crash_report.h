// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_CRASH_REPORT_H_
#define TFPLUG_TESTING_INTERNAL_CRASH_REPORT_H_

#include <signal.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// While it lives, a crash of any thread first writes `text` to standard error.
// There may be one at a time.
class CrashReport {
 public:
  explicit CrashReport(std::string text) {
    State().text = std::move(text);
    struct sigaction action = {};
    action.sa_handler = &Report;
    for (size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], &action, &State().before[i]);
    }
  }
  CrashReport(const CrashReport&) = delete;
  ~CrashReport() { Restore(); }

 private:
  static constexpr std::array<int, 5> kSignals = {SIGSEGV, SIGBUS, SIGFPE,
                                                  SIGILL, SIGABRT};
  struct Shared {
    std::string text;
    std::array<struct sigaction, kSignals.size()> before;
  };
  static Shared& State() {
    static Shared state;
    return state;
  }

  static void Restore() {
    for (size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], &State().before[i], nullptr);
    }
  }
  // The signal comes again after it, and has the effect that it had before.
  static void Report(int signal) {
    const std::string& text = State().text;
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    static_cast<void>(written);
    Restore();
    raise(signal);
  }
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_CRASH_REPORT_H_
