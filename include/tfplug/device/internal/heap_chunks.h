// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_HEAP_CHUNKS_H_
#define TFPLUG_DEVICE_INTERNAL_HEAP_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tfplug::internal {

// A piece of device memory, free or handed out, as the host remembers it: the
// memory itself holds no headers, because the host may not touch it. Chunks
// name each other by their place in a ChunkTable; 0 is none.
struct Chunk {
  uintptr_t address = 0;
  uint64_t size = 0;       // in bytes
  uint64_t requested = 0;  // what was asked for; 0 while the chunk is free
  uint32_t region = 0;     // place in CachingHeap's regions
  uint32_t before = 0;     // the neighbours in the region, by address
  uint32_t after = 0;
  // Free: the subtrees in FreeBins. Handed out: `left` is the next chunk in the
  // same hash bucket. Neither: `left` is the next unused record.
  uint32_t left = 0;
  uint32_t right = 0;
  uint32_t priority = 0;  // in FreeBins' trees; random, belongs to the record

  bool in_use() const { return requested != 0; }
};

// The records of all chunks, and a hash table of those handed out, by address.
// Only Reserve allocates host memory.
class ChunkTable {
 public:
  Chunk& operator[](uint32_t chunk) { return chunks_[chunk]; }
  const Chunk& operator[](uint32_t chunk) const { return chunks_[chunk]; }

  // Makes room for `count` calls of New. Throws before it changes anything.
  void Reserve(size_t count) {
    if (unused_count_ < count) Grow();
  }

  // A record, whatever its last user left in it.
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

  // Enters a chunk that is handed out.
  void Enter(uint32_t chunk) {
    uint32_t& bucket = BucketOf(chunks_[chunk].address);
    chunks_[chunk].left = bucket;
    bucket = chunk;
  }

  // Takes the chunk that was handed out at `address` from the hash table. None:
  // nothing was, or it has been taken back.
  uint32_t Remove(uintptr_t address) {
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
  // Doubles: there are always as many buckets as records, so a bucket holds one
  // chunk or none as a rule.
  void Grow() {
    const size_t old_size = chunks_.size();
    const size_t size = old_size == 0 ? kFirstSize : 2 * old_size;
    std::vector<uint32_t> buckets(size);
    chunks_.resize(size);
    buckets_.swap(buckets);
    shift_ = old_size == 0 ? 64 - kFirstSizeLog2 : shift_ - 1;
    for (size_t i = 1; i < old_size; ++i) {
      if (chunks_[i].in_use()) Enter(static_cast<uint32_t>(i));
    }
    // Downwards, so that New gives the lowest places first.
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

  std::vector<Chunk> chunks_;  // the first is never used
  std::vector<uint32_t> buckets_;
  int shift_ = 64;
  uint32_t unused_ = 0;
  size_t unused_count_ = 0;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_DEVICE_INTERNAL_HEAP_CHUNKS_H_
