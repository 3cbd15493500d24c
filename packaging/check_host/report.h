// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_CHECK_REPORT_H_
#define TFPLUG_CHECK_REPORT_H_

#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <string>

#include "absl/status/status.h"

// Writes what a check finds as lines of JSON, which check.py reads. Each line is
// written at once, so that a crash loses none.
namespace tfplug::check {

class Report {
 public:
  // Takes over the file descriptor `fd`.
  explicit Report(int fd) : fd_(fd) {}

  // The plug-in does what TensorFlow does not survive, or computes nonsense.
  void Error(const std::string& text) { Write("error", text); }
  // The plug-in does what some release or another plug-in does not survive.
  void Warning(const std::string& text) { Write("warning", text); }
  // A fact about a sound plug-in.
  void Note(const std::string& text) { Write("note", text); }
  // Passes data on to check.py, which judges it.
  void Data(const std::string& text) { Write("data", text); }
  // The check does not apply to the plug-in.
  void Skip(const std::string& text) { Write("skipped", text); }
  // Names what runs next: a crash is reported with it, and with what is logged
  // after the mark that this writes into the log.
  void Step(const std::string& text) {
    Write("step", text);
    constexpr char kMark[] = "\x1e\n";
    if (write(STDERR_FILENO, kMark, sizeof(kMark) - 1) < 0) _exit(3);
  }

  // Reports an error unless the status is OK. Returns whether it is.
  bool Ok(const absl::Status& status, const std::string& what) {
    if (!status.ok()) Error(what + ": " + status.ToString());
    return status.ok();
  }
  // Reports an error unless `condition` is true. Returns it.
  bool Expect(bool condition, const std::string& text) {
    if (!condition) Error(text);
    return condition;
  }

 private:
  void Write(const char* level, const std::string& text) {
    std::string line =
        std::string("{\"level\": \"") + level + "\", \"text\": \"";
    for (const char c : text) {
      const auto code = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') line += '\\';
      if (code >= 0x20 && code < 0x7f) {
        line += c;
      } else {
        char escaped[8];
        std::snprintf(escaped, sizeof(escaped), "\\u%04x", code);
        line += escaped;
      }
    }
    line += "\"}\n";
    std::lock_guard<std::mutex> lock(mutex_);
    if (write(fd_, line.data(), line.size()) < 0) _exit(3);
  }

  const int fd_;
  std::mutex mutex_;
};

}  // namespace tfplug::check

#endif  // TFPLUG_CHECK_REPORT_H_
