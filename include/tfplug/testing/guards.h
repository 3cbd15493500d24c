// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_GUARDS_H_
#define TFPLUG_TESTING_GUARDS_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/base/internal/os.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// While it exists, TensorFlow's structs, its buffers and the tensors in host
// memory are right in front of a page that nothing may access: a plug-in that
// reads or writes behind one crashes in that instruction. For structs and tensors,
// behind means behind the next multiple of their alignment (64 bytes for tensors);
// a write into the bytes before it is reported. The tensors on devices
// (HostDevice) are between bytes that are checked when the tensor is released.
// Each call takes some microseconds longer. One at a time.
//
//   testing::ScopedGuards guards;
//   ...
//   CHECK(process.Problems().ok());
class ScopedGuards {
 public:
  ScopedGuards() {
    std::lock_guard<std::mutex> lock(state().mutex);
    first_ = state().problems.size();
    state().is_active = true;
  }
  ScopedGuards(const ScopedGuards&) = delete;
  ScopedGuards& operator=(const ScopedGuards&) = delete;
  ~ScopedGuards() { state().is_active = false; }

  static bool AreActive() { return state().is_active; }
  // Returns the first mistake that was reported since the object was constructed:
  // a write beside memory, noticed when that is released.
  absl::Status Problem() const { return ProblemAfter(first_); }
  // Returns the same for the reports after the first `count`. Process::Problems
  // includes those since the process was constructed.
  static absl::Status ProblemAfter(size_t count) {
    std::lock_guard<std::mutex> lock(state().mutex);
    return count < state().problems.size()
               ? absl::InternalError(state().problems[count])
               : absl::OkStatus();
  }
  static size_t CountReports() {
    std::lock_guard<std::mutex> lock(state().mutex);
    return state().problems.size();
  }
  static void Report(std::string problem) {
    std::lock_guard<std::mutex> lock(state().mutex);
    state().problems.push_back(std::move(problem));
  }

 private:
  struct State {
    std::atomic<bool> is_active{false};
    std::mutex mutex;
    std::vector<std::string> problems;  // of the whole program
  };
  static State& state() {
    static auto* const state = new State;
    return *state;
  }

  size_t first_ = 0;
};

// The bytes beside memory, which reveal a write.
inline constexpr unsigned char kCanary = 0xA5;
inline bool AreCanaries(const void* begin, size_t size) {
  const auto* const bytes = static_cast<const unsigned char*>(begin);
  return std::all_of(bytes, bytes + size,
                     [](unsigned char c) { return c == kCanary; });
}

// Zeroed memory between canary bytes and, while a ScopedGuards exists, in front of
// a page that nothing may access.
class GuardedBlock {
 public:
  // `alignment` is a power of 2 of at most 256; `margin` bytes, a multiple of it,
  // are in front and, without a guard page, behind. data() is null if there is no
  // memory.
  explicit GuardedBlock(size_t size, size_t alignment = 64, size_t margin = 64)
      : size_(size), margin_(margin) {
    if (size > kMostBytes) return;
    const size_t rounded = (size + alignment - 1) / alignment * alignment;
    slack_ = rounded - size;
    if (ScopedGuards::AreActive()) {
      const size_t used = (margin + rounded + kPage - 1) / kPage * kPage;
      pages_ = internal::ReserveAddresses(used + kPage);
      reserved_ = used + kPage;
      if (pages_ != nullptr && internal::AllowAccess(pages_, used)) {
        data_ = static_cast<unsigned char*>(pages_) + used - rounded;
      }
    }
    if (data_ == nullptr) {
      slack_ += margin;
      size_t space = margin + size + slack_ + alignment;
      heap_ = std::calloc(space, 1);
      if (heap_ == nullptr) return;
      void* begin = heap_;
      std::align(alignment, 1, begin, space);
      data_ = static_cast<unsigned char*>(begin) + margin;
    }
    std::memset(data_ - margin, kCanary, margin);
    std::memset(data_ + size, kCanary, slack_);
  }
  GuardedBlock(const GuardedBlock&) = delete;
  GuardedBlock& operator=(const GuardedBlock&) = delete;
  ~GuardedBlock() {
    if (pages_ != nullptr) internal::ReleaseAddresses(pages_, reserved_);
    std::free(heap_);
  }

  // The largest block, which leaves room for margins and pages.
  static constexpr size_t kMostBytes = PTRDIFF_MAX - (1 << 20);

  unsigned char* data() const { return data_; }
  size_t size() const { return size_; }
  // Returns whether all canary bytes are intact.
  bool intact() const {
    return AreCanaries(data_ - margin_, margin_) &&
           AreCanaries(data_ + size_, slack_);
  }

 private:
  // The size of a page, or a multiple of it, on every processor.
  static constexpr size_t kPage = 64 << 10;

  const size_t size_, margin_;
  size_t slack_ = 0;  // canary bytes behind
  unsigned char* data_ = nullptr;
  void* pages_ = nullptr;
  size_t reserved_ = 0;
  void* heap_ = nullptr;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_GUARDS_H_
