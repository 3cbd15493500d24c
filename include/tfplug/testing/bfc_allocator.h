// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_BFC_ALLOCATOR_H_
#define TFPLUG_TESTING_BFC_ALLOCATOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// TensorFlow's allocator for the memory of a device (use_bfc_allocator) and for
// the host memory of its copies: best fit with coalescing, in regions that it
// requests from the plug-in and never returns. Addresses are those that
// TensorFlow's own allocator returns for the same requests. Thread-safe.
class BfcAllocator {
 public:
  static constexpr size_t kUnit = 256;

  struct Options {
    // The most bytes in all regions.
    size_t limit = 0;
    // Whether the first region has 2 MiB, and each further one twice the size of
    // the last, instead of one region of all bytes.
    bool grows = false;
  };
  // `allocate` returns a region, or null; `deallocate` gets it in the end.
  BfcAllocator(Options options, std::function<void*(size_t)> allocate,
               std::function<void(void*, size_t)> deallocate)
      : options_(options),
        allocate_(std::move(allocate)),
        deallocate_(std::move(deallocate)),
        next_region_(RoundUp(options.grows
                                 ? std::min(options.limit, kFirstRegion)
                                 : options.limit)) {}
  BfcAllocator(const BfcAllocator&) = delete;
  BfcAllocator& operator=(const BfcAllocator&) = delete;
  ~BfcAllocator() {
    for (const auto& [memory, size] : regions_) deallocate_(memory, size);
  }

  // Returns memory aligned as the regions are, at least to 256 bytes if they
  // are; null if there is none. TensorFlow first waits for up to 10 seconds.
  void* Allocate(size_t size) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (size == 0 || size > options_.limit) return nullptr;
    size = RoundUp(size);
    char* found = FindFree(size);
    if (found == nullptr && Extend(size)) found = FindFree(size);
    return found;
  }
  // Releases memory that Allocate returned.
  void Deallocate(void* memory) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto chunk = chunks_.find(static_cast<char*>(memory));
    chunk->second.is_free = true;
    const auto next = std::next(chunk);
    if (next != chunks_.end() && next->second.is_free &&
        next->second.region == chunk->second.region) {
      Merge(chunk, next);
    }
    if (chunk != chunks_.begin()) {
      const auto previous = std::prev(chunk);
      if (previous->second.is_free &&
          previous->second.region == chunk->second.region) {
        Merge(previous, chunk);
        chunk = previous;
      }
    }
    free_[BinOf(chunk->second.size)].insert({chunk->second.size, chunk->first});
  }

 private:
  static constexpr size_t kFirstRegion = size_t{2} << 20;
  static constexpr size_t kLargestWaste = size_t{128} << 20;
  static constexpr int kBins = 21;

  struct Chunk {
    size_t size;
    size_t region;
    bool is_free;
  };
  using Chunks = std::map<char*, Chunk>;

  static size_t RoundUp(size_t size) {
    return (size + kUnit - 1) / kUnit * kUnit;
  }
  // Bin i has chunks of 256 << i bytes or more.
  static int BinOf(size_t size) {
    int bin = 0;
    for (size_t units = size / kUnit; units > 1 && bin < kBins - 1; ++bin) {
      units /= 2;
    }
    return bin;
  }

  // Takes the smallest free chunk of at least `size` bytes, and splits it unless
  // little would be left.
  char* FindFree(size_t size) {
    for (int bin = BinOf(size); bin < kBins; ++bin) {
      const auto found = free_[bin].lower_bound({size, nullptr});
      if (found == free_[bin].end()) continue;
      char* const memory = found->second;
      free_[bin].erase(found);
      Chunk& chunk = chunks_[memory];
      chunk.is_free = false;
      if (chunk.size >= size * 2 || chunk.size - size >= kLargestWaste) {
        const Chunk rest{chunk.size - size, chunk.region, true};
        chunk.size = size;
        chunks_[memory + size] = rest;
        free_[BinOf(rest.size)].insert({rest.size, memory + size});
      }
      return memory;
    }
    return nullptr;
  }

  // Requests another region for `size` bytes. After the first failure, and only
  // then, requests a tenth less until the plug-in returns one.
  bool Extend(size_t size) {
    const size_t available = (options_.limit - total_) / kUnit * kUnit;
    if (size > available) return false;
    bool has_increased = false;
    while (size > next_region_) {
      next_region_ *= 2;
      has_increased = true;
    }
    size_t bytes = std::min(next_region_, available);
    void* memory = allocate_(bytes);
    if (memory == nullptr && !has_requested_less_) {
      has_requested_less_ = true;
      while (memory == nullptr) {
        const size_t less =
            RoundUp(static_cast<size_t>(static_cast<float>(bytes) * 0.9f));
        // TensorFlow would request the smallest region again and again.
        if (less < size || less == bytes) break;
        bytes = less;
        memory = allocate_(bytes);
      }
    }
    if (memory == nullptr) return false;
    if (!has_increased) next_region_ *= 2;
    total_ += bytes;
    auto* const address = static_cast<char*>(memory);
    chunks_[address] = {bytes, regions_.size(), true};
    regions_.emplace_back(memory, bytes);
    free_[BinOf(bytes)].insert({bytes, address});
    return true;
  }

  // Adds a chunk to the one before it. A free one leaves its bin; the result is
  // in none.
  void Merge(Chunks::iterator first, Chunks::iterator second) {
    for (const auto& chunk : {first, second}) {
      free_[BinOf(chunk->second.size)].erase(
          {chunk->second.size, chunk->first});
    }
    first->second.size += second->second.size;
    chunks_.erase(second);
  }

  const Options options_;
  const std::function<void*(size_t)> allocate_;
  const std::function<void(void*, size_t)> deallocate_;
  std::mutex mutex_;
  size_t next_region_, total_ = 0;
  bool has_requested_less_ = false;
  Chunks chunks_;
  std::set<std::pair<size_t, char*>> free_[kBins];
  std::vector<std::pair<void*, size_t>> regions_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_BFC_ALLOCATOR_H_
