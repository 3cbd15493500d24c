// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_MEMORY_H_
#define TFPLUG_GRAPH_INTERNAL_MEMORY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/os.h"

#pragma GCC visibility push(hidden)

// Memory for a graph's tables. It is not released when the graph is cleared,
// but reused for the next graph.
namespace tfplug::graph_internal {

// Allocations of at least half a huge page request huge pages, which reduce
// page faults and make lookups faster.
inline constexpr size_t kHugePage = size_t{2} << 20;
inline bool IsLarge(size_t size) { return size >= kHugePage / 2; }
inline void* AllocateBlock(size_t size) {
  if (!IsLarge(size)) return ::operator new(size);
  void* const memory = ::operator new(size, std::align_val_t(kHugePage));
  internal::PreferHugePages(memory, size);
  return memory;
}
inline void FreeBlock(void* memory, size_t size) {
  if (!IsLarge(size)) return ::operator delete(memory);
  ::operator delete(memory, std::align_val_t(kHugePage));
}

// Prefetches memory that will be read soon.
inline void Prefetch(const void* memory) {
  __builtin_prefetch(memory);
  // Without this, GCC removes calls to functions that only prefetch.
  __asm__ volatile("");
}

// A growable array of trivially copyable values. New elements are not
// initialized.
template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { FreeBlock(data_, capacity_ * sizeof(T)); }

  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T* end() { return data_ + size_; }
  T& back() { return data_[size_ - 1]; }

  void clear() { size_ = 0; }
  void Resize(size_t size) {
    if (size > capacity_) Reserve(std::max(size, capacity_ * 2));
    size_ = size;
  }
  // New elements are copies of `value`.
  void Resize(size_t size, T value) {
    const size_t before = size_;
    Resize(size);
    if (size > before) std::fill(data_ + before, data_ + size, value);
  }
  // Replaces all elements with copies of `value`.
  void Assign(size_t size, T value) {
    clear();
    Resize(size, value);
  }
  void PushBack(T value) {
    if (ABSL_PREDICT_FALSE(size_ == capacity_)) {
      Reserve(std::max(size_ + 1, capacity_ * 2));
    }
    data_[size_++] = value;
  }
  ABSL_ATTRIBUTE_NOINLINE void Reserve(size_t capacity) {
    if (capacity <= capacity_) return;
    T* const data = static_cast<T*>(AllocateBlock(capacity * sizeof(T)));
    if (size_ > 0) memcpy(data, data_, size_ * sizeof(T));
    FreeBlock(data_, capacity_ * sizeof(T));
    data_ = data;
    capacity_ = capacity;
  }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// Allocates memory that stays valid until Clear(), aligned to 8 bytes.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    for (const Block& block : blocks_) FreeBlock(block.memory, block.size);
  }

  char* Allocate(size_t size) {
    size = (size + kAlignment - 1) / kAlignment * kAlignment;
    if (ABSL_PREDICT_FALSE(size > static_cast<size_t>(end_ - free_))) {
      NextBlock(size);
    }
    char* const memory = free_;
    free_ += size;
    return memory;
  }
  // Resizes the most recent allocation, `old_size` bytes at `memory`, in place.
  // Returns false if it is not the most recent one, or if there is no room.
  bool Resize(char* memory, size_t old_size, size_t size) {
    const auto aligned = [](size_t n) {
      return (n + kAlignment - 1) / kAlignment * kAlignment;
    };
    if (memory == nullptr || memory + aligned(old_size) != free_ ||
        aligned(size) > static_cast<size_t>(end_ - memory)) {
      return false;
    }
    free_ = memory + aligned(size);
    return true;
  }
  absl::string_view Copy(absl::string_view bytes) {
    char* const copy = Allocate(bytes.size());
    if (!bytes.empty()) memcpy(copy, bytes.data(), bytes.size());
    return absl::string_view(copy, bytes.size());
  }

  void Clear() {
    next_block_ = 0;
    free_ = end_ = nullptr;
  }

 private:
  static constexpr size_t kAlignment = 8;
  static constexpr size_t kFirstBlock = 4096;
  struct Block {
    char* memory;
    size_t size;
  };

  void NextBlock(size_t size) {
    // Blocks from before Clear() are reused, the smaller ones first.
    while (next_block_ < blocks_.size() && blocks_[next_block_].size < size) {
      ++next_block_;
    }
    if (next_block_ == blocks_.size()) {
      const size_t last = blocks_.empty() ? 0 : blocks_.back().size;
      const size_t next = std::max({last * 2, size, kFirstBlock});
      blocks_.push_back({static_cast<char*>(AllocateBlock(next)), next});
    }
    free_ = blocks_[next_block_].memory;
    end_ = free_ + blocks_[next_block_].size;
    ++next_block_;
  }

  std::vector<Block> blocks_;
  size_t next_block_ = 0;
  char* free_ = nullptr;
  char* end_ = nullptr;
};

// A growable list in an Arena. When it grows, its previous memory stays
// allocated until the arena is cleared.
template <class T>
class ArenaList {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

  ABSL_ATTRIBUTE_NOINLINE void Reserve(Arena& arena, uint32_t capacity) {
    if (capacity <= capacity_) return;
    char* const memory = reinterpret_cast<char*>(data_);
    if (!arena.Resize(memory, capacity_ * sizeof(T), capacity * sizeof(T))) {
      static_assert(alignof(T) <= 8);
      T* const data =
          reinterpret_cast<T*>(arena.Allocate(capacity * sizeof(T)));
      std::copy(begin(), end(), data);
      data_ = data;
    }
    capacity_ = capacity;
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void PushBack(Arena& arena, const T& value) {
    if (ABSL_PREDICT_FALSE(size_ == capacity_)) {
      const T copy = value;  // Which may be in the list.
      Reserve(arena, capacity_ == 0 ? 4 : capacity_ * 2);
      data_[size_++] = copy;
      return;
    }
    data_[size_++] = value;
  }
  void Truncate(uint32_t size) { size_ = size; }

 private:
  T* data_ = nullptr;
  uint32_t size_ = 0;
  uint32_t capacity_ = 0;
};

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_MEMORY_H_
