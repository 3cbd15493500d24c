// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_HEAP_BINS_H_
#define TFPLUG_DEVICE_INTERNAL_HEAP_BINS_H_

#include <array>
#include <cstdint>

#include "tfplug/device/internal/heap_chunks.h"

namespace tfplug::internal {

// The power of two that `size`, which is not 0, falls into.
inline int SizeClassOf(uint64_t size) { return 63 - __builtin_clzll(size); }

// The free chunks, by size. There is one bin for each power of two, and a
// bitmap of the bins that hold something. A bin is a treap over its chunks:
// ordered by (size, address) from left to right, and by the records' random
// priorities from the root down, which keeps it balanced. Of the chunks that
// fit best, the one at the lowest address is taken: that keeps what is in use
// together, so that more of what is free can be merged.
//
// Everything takes logarithmic time in the number of free chunks of one size
// class, and no memory.
class FreeBins {
 public:
  explicit FreeBins(ChunkTable& chunks) : chunks_(chunks) {}

  void Insert(uint32_t chunk) {
    const int bin = SizeClassOf(chunks_[chunk].size);
    filled_ |= uint64_t{1} << bin;
    uint32_t* link = &roots_[bin];
    const uint32_t priority = chunks_[chunk].priority;
    while (*link != 0 && chunks_[*link].priority > priority) {
      link = Less(chunk, *link) ? &chunks_[*link].left : &chunks_[*link].right;
    }
    // The chunk goes here, and what stood here is split in two below it.
    uint32_t rest = *link;
    *link = chunk;
    uint32_t* smaller = &chunks_[chunk].left;
    uint32_t* larger = &chunks_[chunk].right;
    while (rest != 0) {
      if (Less(rest, chunk)) {
        *smaller = rest;
        smaller = &chunks_[rest].right;
        rest = *smaller;
      } else {
        *larger = rest;
        larger = &chunks_[rest].left;
        rest = *larger;
      }
    }
    *smaller = 0;
    *larger = 0;
  }

  void Remove(uint32_t chunk) {
    const int bin = SizeClassOf(chunks_[chunk].size);
    uint32_t* link = &roots_[bin];
    while (*link != chunk) {
      link = Less(chunk, *link) ? &chunks_[*link].left : &chunks_[*link].right;
    }
    // The two subtrees are merged in its place.
    uint32_t smaller = chunks_[chunk].left;
    uint32_t larger = chunks_[chunk].right;
    while (smaller != 0 && larger != 0) {
      if (chunks_[smaller].priority > chunks_[larger].priority) {
        *link = smaller;
        link = &chunks_[smaller].right;
        smaller = *link;
      } else {
        *link = larger;
        link = &chunks_[larger].left;
        larger = *link;
      }
    }
    *link = smaller != 0 ? smaller : larger;
    if (roots_[bin] == 0) filled_ &= ~(uint64_t{1} << bin);
  }

  // The smallest chunk of at least `size` bytes, or none.
  uint32_t BestFit(uint64_t size) const {
    const int bin = SizeClassOf(size);
    uint32_t best = 0;
    for (uint32_t chunk = roots_[bin]; chunk != 0;) {
      if (chunks_[chunk].size >= size) {
        best = chunk;
        chunk = chunks_[chunk].left;
      } else {
        chunk = chunks_[chunk].right;
      }
    }
    if (best != 0) return best;
    const uint64_t larger = filled_ & (~uint64_t{1} << bin);
    if (larger == 0) return 0;
    best = roots_[__builtin_ctzll(larger)];
    while (chunks_[best].left != 0) best = chunks_[best].left;
    return best;
  }

  // The size of the largest free chunk; 0 when there is none.
  uint64_t LargestSize() const {
    if (filled_ == 0) return 0;
    uint32_t largest = roots_[SizeClassOf(filled_)];
    while (chunks_[largest].right != 0) largest = chunks_[largest].right;
    return chunks_[largest].size;
  }

 private:
  bool Less(uint32_t a, uint32_t b) const {
    const Chunk& x = chunks_[a];
    const Chunk& y = chunks_[b];
    return x.size != y.size ? x.size < y.size : x.address < y.address;
  }

  ChunkTable& chunks_;
  uint64_t filled_ = 0;
  std::array<uint32_t, 64> roots_ = {};
};

}  // namespace tfplug::internal

#endif  // TFPLUG_DEVICE_INTERNAL_HEAP_BINS_H_
