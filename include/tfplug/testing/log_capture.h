// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_LOG_CAPTURE_H_
#define TFPLUG_TESTING_LOG_CAPTURE_H_

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "tfplug/testing/internal/fake_function.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// Captures the messages logged through TF_Log while the object exists, which
// then do not reach standard error. Only one may exist at a time. Releases from
// 2.21 on have no TF_Log, and tfplug then writes to standard error itself.
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
  // Returns all lines, each with a newline.
  std::string text() const {
    std::string text;
    for (const std::string& line : lines()) text += line + "\n";
    return text;
  }

  // Is called by TF_Log.
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
    static auto* const mutex = new std::mutex;
    return *mutex;
  }
  static LogCapture*& current() {
    static LogCapture* current = nullptr;
    return current;
  }

  std::vector<std::string> lines_;
};

TFPLUG_FAKE_FUNCTION void TF_Log(capi::TF_LogLevel level, const char* format,
                                 ...) {
  va_list arguments;
  va_start(arguments, format);
  LogCapture::Write(level, format, arguments);
  va_end(arguments);
}
// Verbose logging is off, which is TensorFlow's default.
TFPLUG_FAKE_FUNCTION void TF_VLog(int /*level*/, const char* /*format*/, ...) {}
TFPLUG_FAKE_FUNCTION void TF_DVLog(int /*level*/, const char* /*format*/, ...) {
}

inline void InstallLogFunctions(capi::Functions& functions) {
  TFPLUG_FAKE_INSTALL(TF_Log);
  TFPLUG_FAKE_INSTALL(TF_VLog);
  TFPLUG_FAKE_INSTALL(TF_DVLog);
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_LOG_CAPTURE_H_
