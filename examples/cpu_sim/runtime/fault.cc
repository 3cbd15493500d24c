// SPDX-License-Identifier: Apache-2.0
#include "fault.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace cpu_sim::rt {
namespace {

FaultControl own_control;
std::mutex mutex;  // guards all of FaultControl but `armed`

constexpr std::pair<absl::string_view, FaultKind> kKinds[] = {
    {"error", FaultKind::kError},     {"oom", FaultKind::kOom},
    {"throw", FaultKind::kThrow},     {"bad_alloc", FaultKind::kBadAlloc},
    {"unknown", FaultKind::kUnknown},
};

bool ParseKind(absl::string_view text, FaultKind* kind) {
  for (const auto& [name, value] : kKinds) {
    if (name != text) continue;
    *kind = value;
    return true;
  }
  return false;
}

bool is_forked_child = false;

// Runs in a forked child. The new control block is private to the child, unlike
// a mapped one, and sends CheckFault to the slow path permanently.
void BreakChild() {
  static FaultControl broken;
  broken.armed.store(1, std::memory_order_relaxed);
  fault_internal::control = &broken;
  is_forked_child = true;
}

absl::Status Fail(FaultKind kind, const std::string& hook) {
  switch (kind) {
    case FaultKind::kOom:
      return absl::ResourceExhaustedError(
          absl::StrCat("injected: out of memory in ", hook));
#ifdef __cpp_exceptions
    case FaultKind::kThrow:
      throw std::runtime_error("injected: exception in " + hook);
    case FaultKind::kBadAlloc:
      throw std::bad_alloc();
    case FaultKind::kUnknown:
      throw 719;
#endif
    default:
      return absl::InternalError(
          absl::StrCat("injected: ", hook, " failed with driver error 719"));
  }
}

}  // namespace

namespace fault_internal {

FaultControl* control = &own_control;

absl::Status Reach(const char* hook) {
  // This comes before the lock, which another thread may have held during the
  // fork.
  if (is_forked_child) {
    return absl::FailedPreconditionError(absl::StrCat(
        hook,
        ": the process was forked after cpu_sim was used, and the child has no "
        "device threads; use the device in the child only (for example with "
        "the multiprocessing start method \"spawn\")"));
  }
  FaultKind kind;
  {
    std::lock_guard<std::mutex> lock(mutex);
    FaultControl& fault = *control;
    if (fault.armed.load(std::memory_order_acquire) == 0) return {};
    if (strncmp(fault.hook, hook, sizeof(fault.hook)) != 0) return {};
    if (fault.after > 0) {
      --fault.after;
      return {};
    }
    kind = fault.kind;
    if (fault.times <= 1) {
      fault.armed.store(0, std::memory_order_release);
    } else {
      --fault.times;
    }
  }
  return Fail(kind, hook);
}

}  // namespace fault_internal

absl::Status InjectFault(absl::string_view text) {
  FaultKind kind = FaultKind::kError;
  uint32_t after = 0;
  uint32_t times = 1;
  absl::string_view hook;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const auto& [key, value] = field;
    if (key == "hook" && !value.empty() &&
        value.size() < sizeof(FaultControl::hook)) {
      hook = value;
    } else if (!(key == "after" && absl::SimpleAtoi(value, &after)) &&
               !(key == "times" && absl::SimpleAtoi(value, &times)) &&
               !(key == "kind" && ParseKind(value, &kind))) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot read \"", part, "\" of the fault \"", text,
                       "\"; expected hook=NAME,after=N,times=N,kind=error|oom|"
                       "throw|bad_alloc|unknown"));
    }
  }

  std::lock_guard<std::mutex> lock(mutex);
  FaultControl& fault = *fault_internal::control;
  fault.armed.store(0, std::memory_order_release);
  if (hook.empty() || times == 0) return {};
  fault.kind = kind;
  fault.after = after;
  fault.times = times;
  memset(fault.hook, 0, sizeof(fault.hook));
  memcpy(fault.hook, hook.data(), hook.size());
  fault.armed.store(1, std::memory_order_release);
  return {};
}

void FailAfterFork() {
  static const int registered = pthread_atfork(nullptr, nullptr, &BreakChild);
  (void)registered;
}

bool IsForkedChild() { return is_forked_child; }

bool FaultPending() {
  return fault_internal::control->armed.load(std::memory_order_acquire) != 0;
}

absl::Status InjectFaultsFromEnvironment(const std::string& prefix) {
  const std::string variable = prefix + "_FAULT";
  if (const char* path = getenv((variable + "_FILE").c_str())) {
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return absl::ErrnoToStatus(errno, path);
    struct stat info;
    void* page = MAP_FAILED;
    if (fstat(file, &info) == 0 &&
        info.st_size >= static_cast<off_t>(sizeof(FaultControl))) {
      page = mmap(nullptr, sizeof(FaultControl), PROT_READ | PROT_WRITE,
                  MAP_SHARED, file, 0);
    }
    close(file);
    if (page == MAP_FAILED) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " does not hold a FaultControl"));
    }
    // It is never unmapped.
    fault_internal::control = static_cast<FaultControl*>(page);
  }
  if (const char* text = getenv(variable.c_str())) return InjectFault(text);
  return {};
}

}  // namespace cpu_sim::rt
