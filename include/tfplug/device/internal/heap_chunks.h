// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_HEAP_CHUNKS_H_
#define TFPLUG_DEVICE_INTERNAL_HEAP_CHUNKS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// Describes a block of device memory, free or in use. The memory itself holds
// no headers, because the host may not be able to access it. Chunks refer to
// each other by their index in a ChunkTable; 0 means none.
struct Chunk {
  uintptr_t address = 0;
  uint64_t size = 0;       // in bytes
  uint64_t requested = 0;  // before rounding; 0 if the chunk is free
  uint32_t region = 0;     // index in HeapRegions
  uint32_t before = 0;     // the neighbors in the region, by address
  uint32_t after = 0;
  // The meaning depends on the state of the chunk. Free: the subtrees in
  // FreeChunks. In use: `left` is the next chunk in the hash bucket. Unused
  // record: `left` is the next unused record.
  uint32_t left = 0;
  uint32_t right = 0;
  uint32_t priority = 0;  // in FreeChunks; random, constant for each record

  bool in_use() const { return requested != 0; }
};

// The records of all chunks, and a hash table of the chunks in use, by address.
// Only Reserve allocates host memory.
class ChunkTable {
 public:
  Chunk& operator[](uint32_t chunk) { return chunks_[chunk]; }
  const Chunk& operator[](uint32_t chunk) const { return chunks_[chunk]; }

  // Allocates records for the next `count` calls of New. If that throws,
  // nothing has changed.
  void Reserve(size_t count) {
    if (unused_count_ < count) Grow();
  }

  // Returns an unused record, which is not in use but otherwise still holds the
  // values of its last use. Requires Reserve.
  uint32_t New() {
    const uint32_t chunk = unused_;
    unused_ = chunks_[chunk].left;
    --unused_count_;
    return chunk;
  }

  void Delete(uint32_t chunk) {
    chunks_[chunk].requested = 0;
    chunks_[chunk].left = unused_;
    unused_ = chunk;
    ++unused_count_;
  }

  // Adds a chunk to the hash table.
  void AddInUse(uint32_t chunk) {
    uint32_t& bucket = BucketOf(chunks_[chunk].address);
    chunks_[chunk].left = bucket;
    bucket = chunk;
  }

  // Removes the chunk at `address` from the hash table and returns it, or 0 if
  // no chunk in use begins there.
  uint32_t RemoveInUse(uintptr_t address) {
    if (buckets_.empty()) return 0;
    uint32_t* link = &BucketOf(address);
    while (*link != 0 && chunks_[*link].address != address) {
      link = &chunks_[*link].left;
    }
    const uint32_t chunk = *link;
    if (chunk != 0) *link = chunks_[chunk].left;
    return chunk;
  }

 private:
  // Doubles the number of records and of buckets. There are as many buckets as
  // records, so that few buckets hold more than one chunk.
  void Grow() {
    const size_t old_size = chunks_.size();
    const size_t size = old_size == 0 ? kFirstSize : 2 * old_size;
    std::vector<uint32_t> buckets(size);
    chunks_.resize(size);
    buckets_.swap(buckets);
    shift_ = old_size == 0 ? 64 - kFirstSizeLog2 : shift_ - 1;
    for (size_t i = 1; i < old_size; ++i) {
      if (chunks_[i].in_use()) AddInUse(static_cast<uint32_t>(i));
    }
    // In descending order, so that New returns the lowest index first.
    for (size_t i = size - 1; i >= old_size && i > 0; --i) {
      chunks_[i].priority = Mix(static_cast<uint32_t>(i));
      Delete(static_cast<uint32_t>(i));
    }
  }

  uint32_t& BucketOf(uintptr_t address) {
    return buckets_[(address * UINT64_C(0x9E3779B97F4A7C15)) >> shift_];
  }

  static uint32_t Mix(uint32_t i) {
    i = (i ^ (i >> 16)) * 0x7FEB352DU;
    i = (i ^ (i >> 15)) * 0x846CA68BU;
    return i ^ (i >> 16);
  }

  static constexpr int kFirstSizeLog2 = 8;
  static constexpr size_t kFirstSize = size_t{1} << kFirstSizeLog2;

  std::vector<Chunk> chunks_;  // index 0 is not used
  std::vector<uint32_t> buckets_;
  int shift_ = 64;
  uint32_t unused_ = 0;
  size_t unused_count_ = 0;
};

// Returns the binary logarithm of `size`, rounded down; `size` must not be 0.
inline int SizeClassOf(uint64_t size) { return 63 - __builtin_clzll(size); }

// The free chunks, ordered by size. There is a bin for each power of two, and a
// bitmap of the bins that are not empty. A bin is a treap: its chunks are
// ordered by (size, address) from left to right, and by random priority from
// the root down, which keeps the tree balanced. Of several chunks of the same
// size, the one at the lowest address is used first: memory in use stays
// together, so that free neighbors can be merged.
//
// Every function takes time that is logarithmic in the number of free chunks of
// a bin, and allocates no memory.
class FreeChunks {
 public:
  explicit FreeChunks(ChunkTable& chunks) : chunks_(chunks) {}

  void Insert(uint32_t chunk) {
    const int bin = SizeClassOf(chunks_[chunk].size);
    filled_ |= uint64_t{1} << bin;
    uint32_t* link = &roots_[bin];
    const uint32_t priority = chunks_[chunk].priority;
    while (*link != 0 && chunks_[*link].priority > priority) {
      link = Less(chunk, *link) ? &chunks_[*link].left : &chunks_[*link].right;
    }
    // Insert the chunk here and split the subtree in two below it.
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
    // Merge the two subtrees in its place.
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

  // Returns the smallest chunk of at least `size` bytes, or 0 if there is none.
  uint32_t FindBestFit(uint64_t size) const {
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

  // Returns the size of the largest chunk, 0 if there is none.
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

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_HEAP_CHUNKS_H_
