// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PROFILER_INTERNAL_THREAD_BUFFER_H_
#define TFPLUG_PROFILER_INTERNAL_THREAD_BUFFER_H_

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "absl/strings/string_view.h"
#include "tfplug/base/internal/profiling.h"

#pragma GCC visibility push(hidden)

namespace tfplug::profiler_internal {

// The memory that all buffers of this library may take together. It is reused
// by the next profile and never freed.
inline constexpr uint64_t kMaxTraceBytes = uint64_t{128} << 20;
inline std::atomic<uint64_t> trace_bytes{0};

// Returns null when the memory is exhausted.
inline void* AllocateForTrace(size_t size) {
  if (trace_bytes.fetch_add(size) + size <= kMaxTraceBytes) {
    if (void* const memory = std::malloc(size)) return memory;
  }
  trace_bytes.fetch_sub(size);
  return nullptr;
}

// The records of one thread, which alone adds to them, without a lock. Another
// thread may read the records of a profile that has been stopped: `count` is
// stored after the record.
//
// Each profile has a number, its generation. The thread itself discards the
// records of an older generation, when it adds the first record of a new one.
class ThreadBuffer {
 public:
  static constexpr size_t kChunkSize = 1024;  // records
  static constexpr size_t kTextSize = 32 << 10;

  // Adds a record with a copy of `node`, or counts it as dropped.
  void Add(uint64_t generation, internal::Record record,
           absl::string_view node) {
    if (generation_.load(std::memory_order_relaxed) != generation) {
      Restart(generation);
    }
    const uint64_t at = count_.load(std::memory_order_relaxed);
    if (at % kChunkSize == 0 && at > 0 && !NextChunk()) return Drop();
    if (chunk_ == nullptr && !FirstChunk()) return Drop();
    record.node = node.empty() ? nullptr : Copy(node);
    chunk_->records[at % kChunkSize] = record;
    count_.store(at + 1, std::memory_order_release);
  }

  // Calls use(record) for each record of the generation.
  template <class Use>
  void ForEach(uint64_t generation, Use use) const {
    if (generation_.load(std::memory_order_acquire) != generation) return;
    const uint64_t count = count_.load(std::memory_order_acquire);
    const Chunk* chunk = first_.load(std::memory_order_acquire);
    for (uint64_t i = 0; i < count; ++i) {
      if (i > 0 && i % kChunkSize == 0) {
        chunk = chunk->next.load(std::memory_order_acquire);
      }
      use(chunk->records[i % kChunkSize]);
    }
  }
  uint64_t Dropped(uint64_t generation) const {
    if (generation_.load(std::memory_order_acquire) != generation) return 0;
    return dropped_.load(std::memory_order_relaxed);
  }
  uint64_t generation() const {
    return generation_.load(std::memory_order_acquire);
  }

  // Returns the id of the thread, as in TensorFlow's profiles.
  int64_t thread() const { return thread_.load(std::memory_order_relaxed); }

  // A buffer belongs to one thread at a time; a thread that exits gives it up.
  bool TryOwn() {
    bool expected = false;
    if (!is_owned_.compare_exchange_strong(expected, true,
                                           std::memory_order_acquire)) {
      return false;
    }
    const std::hash<std::thread::id> hash;
    thread_.store(static_cast<int64_t>(hash(std::this_thread::get_id())),
                  std::memory_order_relaxed);
    return true;
  }
  void Disown() { is_owned_.store(false, std::memory_order_release); }

  ThreadBuffer* next = nullptr;  // set before others see the buffer

 private:
  struct Chunk {
    internal::Record records[kChunkSize];
    std::atomic<Chunk*> next{nullptr};
  };
  struct Text {
    Text* next;
    char bytes[kTextSize];
  };

  void Restart(uint64_t generation) {
    count_.store(0, std::memory_order_relaxed);
    dropped_.store(0, std::memory_order_relaxed);
    chunk_ = first_.load(std::memory_order_relaxed);
    text_ = first_text_;
    text_used_ = 0;
    std::memset(copies_, 0, sizeof(copies_));
    generation_.store(generation, std::memory_order_release);
  }
  void Drop() { dropped_.fetch_add(1, std::memory_order_relaxed); }

  static Chunk* NewChunk() {
    void* const memory = AllocateForTrace(sizeof(Chunk));
    return memory == nullptr ? nullptr : new (memory) Chunk;
  }
  bool FirstChunk() {
    chunk_ = NewChunk();
    first_.store(chunk_, std::memory_order_release);
    return chunk_ != nullptr;
  }
  bool NextChunk() {
    Chunk* following = chunk_->next.load(std::memory_order_relaxed);
    if (following == nullptr) {
      following = NewChunk();
      if (following == nullptr) return false;
      chunk_->next.store(following, std::memory_order_release);
    }
    chunk_ = following;
    return true;
  }

  // Returns a copy of `text` that lives until the next profile, or null without
  // memory. Names of nodes repeat in each step, so recent copies are reused.
  const char* Copy(absl::string_view text) {
    size_t hash = text.size();
    for (const char c : text) hash = hash * 31 + static_cast<unsigned char>(c);
    const char*& copy = copies_[hash % kCopies];
    if (copy != nullptr && text == copy) return copy;
    const size_t size = text.size() + 1;
    if (size > kTextSize) return nullptr;
    if (text_ == nullptr || text_used_ + size > kTextSize) {
      if (!NextText()) return nullptr;
    }
    char* const to = text_->bytes + text_used_;
    std::memcpy(to, text.data(), text.size());
    to[text.size()] = '\0';
    text_used_ += size;
    return copy = to;
  }
  bool NextText() {
    Text* following = text_ == nullptr ? first_text_ : text_->next;
    if (following == nullptr) {
      following = static_cast<Text*>(AllocateForTrace(sizeof(Text)));
      if (following == nullptr) return false;
      following->next = nullptr;
      (text_ == nullptr ? first_text_ : text_->next) = following;
    }
    text_ = following;
    text_used_ = 0;
    return true;
  }

  static constexpr size_t kCopies = 512;

  std::atomic<bool> is_owned_{false};
  std::atomic<int64_t> thread_{0};
  std::atomic<uint64_t> generation_{0};
  std::atomic<uint64_t> count_{0};
  std::atomic<uint64_t> dropped_{0};
  std::atomic<Chunk*> first_{nullptr};
  Chunk* chunk_ = nullptr;  // of the next record
  Text* first_text_ = nullptr;
  Text* text_ = nullptr;
  size_t text_used_ = 0;
  const char* copies_[kCopies] = {};
};

}  // namespace tfplug::profiler_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PROFILER_INTERNAL_THREAD_BUFFER_H_
