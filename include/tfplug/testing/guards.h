// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_GUARDS_H_
#define TFPLUG_TESTING_GUARDS_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "tfplug/base/internal/os.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// While it exists, TensorFlow's structs, its buffers and the tensors in host
// memory are right in front of a page that nothing may access: a plug-in that
// reads or writes behind one crashes in that instruction. The tensors on devices
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
    state().problem = absl::OkStatus();
    state().is_active = true;
  }
  ScopedGuards(const ScopedGuards&) = delete;
  ScopedGuards& operator=(const ScopedGuards&) = delete;
  ~ScopedGuards() { state().is_active = false; }

  static bool AreActive() { return state().is_active; }
  // Returns the first write beside a buffer that was released since the last
  // object was constructed. Process::Problems includes it.
  static absl::Status Problem() {
    std::lock_guard<std::mutex> lock(state().mutex);
    return state().problem;
  }
  static void Report(const char* what) {
    std::lock_guard<std::mutex> lock(state().mutex);
    state().problem.Update(
        absl::InternalError(std::string("the plug-in wrote beside ") + what));
  }

 private:
  struct State {
    std::atomic<bool> is_active{false};
    std::mutex mutex;
    absl::Status problem;
  };
  static State& state() {
    static auto* const state = new State;
    return *state;
  }
};

// Memory between canary bytes and, while a ScopedGuards exists, in front of a
// page that nothing may access. Not initialized.
class GuardedBlock {
 public:
  // `alignment` is a power of 2 of at most 256; `margin` bytes, a multiple of it,
  // are in front and, without a guard page, behind.
  explicit GuardedBlock(size_t size, size_t alignment = 64, size_t margin = 64)
      : size_(size), margin_(margin) {
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
      heap_.reset(new unsigned char[margin + size + slack_ + alignment]);
      void* begin = heap_.get();
      size_t space = margin + size + slack_ + alignment;
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
  }

  unsigned char* data() const { return data_; }
  size_t size() const { return size_; }
  // Returns whether all canary bytes are intact.
  bool intact() const {
    const auto is_canary = [](unsigned char c) { return c == kCanary; };
    return std::all_of(data_ - margin_, data_, is_canary) &&
           std::all_of(data_ + size_, data_ + size_ + slack_, is_canary);
  }

 private:
  // The size of a page, or a multiple of it, on every processor.
  static constexpr size_t kPage = 64 << 10;
  static constexpr unsigned char kCanary = 0xA5;

  const size_t size_, margin_;
  size_t slack_ = 0;  // canary bytes behind
  unsigned char* data_ = nullptr;
  void* pages_ = nullptr;
  size_t reserved_ = 0;
  std::unique_ptr<unsigned char[]> heap_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_GUARDS_H_
