// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_LOG_H_
#define TFPLUG_TESTING_FAKE_LOG_H_

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "tfplug/abi/functions.h"
#include "tfplug/testing/fake_status.h"

namespace tfplug::testing {

// While it lives, lines that are logged through TF_Log come here and not to
// standard error; one at a time. TF_Log is in releases up to 2.20: a newer core
// has none, and tfplug writes to standard error itself.
class LogCapture {
 public:
  LogCapture() {
    std::lock_guard<std::mutex> lock(mutex());
    current() = this;
  }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
  ~LogCapture() {
    std::lock_guard<std::mutex> lock(mutex());
    current() = nullptr;
  }

  std::vector<std::string> lines() const {
    std::lock_guard<std::mutex> lock(mutex());
    return lines_;
  }
  // All lines, each with its end.
  std::string text() const {
    std::string text;
    for (const std::string& line : lines()) text += line + "\n";
    return text;
  }

  // For TF_Log and friends.
  static void Write(capi::TF_LogLevel level, const char* format,
                    va_list arguments) {
    char line[1024];
    std::vsnprintf(line, sizeof(line), format, arguments);
    {
      std::lock_guard<std::mutex> lock(mutex());
      if (current() != nullptr) {
        current()->lines_.push_back(line);
      } else {
        std::fprintf(stderr, "%s\n", line);
      }
    }
    if (level == capi::TF_FATAL) std::abort();
  }

 private:
  static std::mutex& mutex() {
    static std::mutex* const mutex = new std::mutex;
    return *mutex;
  }
  static LogCapture*& current() {
    static LogCapture* current = nullptr;
    return current;
  }

  std::vector<std::string> lines_;
};

TFPLUG_TESTING_CORE_FUNCTION void TF_Log(capi::TF_LogLevel level,
                                         const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  LogCapture::Write(level, format, arguments);
  va_end(arguments);
}

// Verbose logging is off, as it is in core unless someone asks for it.
TFPLUG_TESTING_CORE_FUNCTION void TF_VLog(int /*level*/, const char* /*format*/,
                                          ...) {}
TFPLUG_TESTING_CORE_FUNCTION void TF_DVLog(int /*level*/,
                                           const char* /*format*/, ...) {}

inline void InstallLogFunctions(capi::Functions& core) {
  core.TF_Log = &TF_Log;
  core.TF_VLog = &TF_VLog;
  core.TF_DVLog = &TF_DVLog;
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTING_FAKE_LOG_H_
