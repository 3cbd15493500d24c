// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_GRAPH_HASH_H_
#define TFPLUG_INTERNAL_GRAPH_HASH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>

#include "absl/base/optimization.h"
#include "absl/numeric/int128.h"
#include "absl/strings/string_view.h"
#include "tfplug/internal/graph_memory.h"

// Tables from names to numbers. The hash depends on a number that is drawn
// anew in each process, so that no graph can be made in which all names
// collide.
namespace tfplug::internal {

inline uint64_t HashSeed() {
  static const uint64_t seed = [] {
    std::random_device device;
    return static_cast<uint64_t>(device()) << 32 | device();
  }();
  return seed;
}

// Both halves of the product, folded: each bit of the result depends on each
// bit of `a` and `b`.
inline uint64_t Mix(uint64_t a, uint64_t b) {
  const absl::uint128 product = absl::uint128(a) * b;
  return absl::Uint128Low64(product) ^ absl::Uint128High64(product);
}
template <class Word>
Word LoadWord(const char* from) {
  Word word;
  memcpy(&word, from, sizeof(word));
  return word;
}

inline uint64_t Hash(absl::string_view bytes, uint64_t seed) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  const char* p = bytes.data();
  const size_t size = bytes.size();
  const auto word = [](const char* at) { return LoadWord<uint64_t>(at); };
  if (ABSL_PREDICT_TRUE(size >= 16)) {
    uint64_t hash = seed ^ size;
    const char* const last = p + size - 16;
    for (; p + 16 < last; p += 32) {
      hash = Mix(word(p) ^ seed, word(p + 8) ^ kOdd ^ hash) ^
             Mix(word(p + 16) ^ kOdd, word(p + 24) ^ seed);
    }
    if (p < last) hash = Mix(word(p) ^ seed, word(p + 8) ^ kOdd ^ hash);
    // The last 16 bytes; some of them are perhaps in the hash already.
    return Mix(word(last) ^ seed, word(last + 8) ^ kOdd ^ hash);
  }
  uint64_t a = 0, b = 0;
  if (size >= 8) {
    a = LoadWord<uint64_t>(p);
    b = LoadWord<uint64_t>(p + size - 8);
  } else if (size >= 4) {
    a = LoadWord<uint32_t>(p);
    b = LoadWord<uint32_t>(p + size - 4);
  } else if (size > 0) {
    a = static_cast<unsigned char>(p[0]);
    b = static_cast<uint64_t>(static_cast<unsigned char>(p[size / 2])) << 8 |
        static_cast<unsigned char>(p[size - 1]);
  }
  return Mix(a ^ seed ^ size, b ^ kOdd ^ seed);
}

// Numbers below 2^32 - 1 by the hash of what they stand for. Open addressing,
// at most half full.
class HashTable {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  bool empty() const { return slots_.empty(); }

  // Makes room for `count` numbers, and forgets all that there were.
  void Reset(size_t count) {
    size_t size = 16;
    while (size < count * 2) size *= 2;
    slots_.clear();
    slots_.Resize(size);
    memset(slots_.data(), 0xff, size * sizeof(Slot));  // No number: kNone.
    mask_ = size - 1;
    used_ = 0;
  }
  void Clear() { slots_.clear(); }
  size_t bytes() const { return slots_.size() * sizeof(Slot); }

  void Prefetch(uint64_t hash) const {
    __builtin_prefetch(&slots_[Home(hash)]);
  }
  // The first number with this hash for which `is_it(number)`; or kNone.
  template <class F>
  uint32_t Find(uint64_t hash, const F& is_it) const {
    for (size_t i = Home(hash);; i = (i + 1) & mask_) {
      const Slot slot = slots_[i];
      if (ABSL_PREDICT_TRUE(slot.check == Check(hash)) &&
          slot.number != kNone && is_it(slot.number)) {
        return slot.number;
      }
      if (ABSL_PREDICT_FALSE(slot.number == kNone)) return kNone;
    }
  }
  // The first number with this hash, of which the caller finds out whether it
  // is the one; mostly it is.
  uint32_t Candidate(uint64_t hash) const {
    return Find(hash, [](uint32_t) { return true; });
  }

  // Unless there is one for which `is_it`; returns that, or kNone.
  template <class F>
  uint32_t Insert(uint64_t hash, uint32_t number, const F& is_it) {
    size_t i = Home(hash);
    for (; slots_[i].number != kNone; i = (i + 1) & mask_) {
      const Slot slot = slots_[i];
      if (slot.check == Check(hash) && is_it(slot.number)) {
        return slot.number;
      }
    }
    slots_[i] = Slot{Check(hash), number};
    ++used_;
    return kNone;
  }
  // Whether Insert() has room for one more.
  bool HasRoom() const { return (used_ + 1) * 2 <= slots_.size(); }

 private:
  struct Slot {
    uint32_t check;
    uint32_t number;
  };

  // The place and the check are of different bits of the hash.
  size_t Home(uint64_t hash) const { return hash & mask_; }
  static uint32_t Check(uint64_t hash) {
    return static_cast<uint32_t>(hash >> 32);
  }

  Array<Slot> slots_;
  size_t mask_ = 0;
  size_t used_ = 0;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_INTERNAL_GRAPH_HASH_H_
