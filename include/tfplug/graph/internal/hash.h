// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_HASH_H_
#define TFPLUG_GRAPH_INTERNAL_HASH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>

#if __has_include(<sys/random.h>)
#include <sys/random.h>
#endif

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/internal/memory.h"

#pragma GCC visibility push(hidden)

// Hash tables of names. The hash depends on a random key per process, so that
// nobody can craft a graph in which all names collide.
namespace tfplug::graph_internal {

__extension__ typedef unsigned __int128 Uint128;
inline uint64_t Low(Uint128 value) { return static_cast<uint64_t>(value); }
inline uint64_t High(Uint128 value) {
  return static_cast<uint64_t>(value >> 64);
}

// Multiplies `a` by `b` and combines both halves of the product, so that each
// bit of the result depends on each bit of `a` and `b`.
inline uint64_t Mix(uint64_t a, uint64_t b) {
  const Uint128 product = Uint128{a} * b;
  return Low(product) ^ High(product);
}

struct HashKey {
  static constexpr size_t kWords = 16;  // One for each word of a chunk.

  uint64_t words[kWords];
  uint64_t last[2];
  uint64_t length;
};
struct RandomWords {
  RandomWords() {
#if __has_include(<sys/random.h>)
    // Ten times as fast as std::random_device, which queries the processor.
    if (getentropy(words, sizeof(words)) == 0) return;
#endif
    std::random_device device;
    for (uint64_t& word : words) word = uint64_t{device()} << 32 | device();
  }
  uint64_t words[2];
};
inline const HashKey& ProcessHashKey() {
  static const HashKey key = [] {
    const RandomWords random;
    uint64_t count = 0;
    const auto word = [&] {
      ++count;
      return Mix(random.words[0] + count, random.words[1] ^ count << 32);
    };
    HashKey result;
    for (uint64_t& each : result.words) each = word();
    for (uint64_t& each : result.last) each = word();
    result.length = word();
    return result;
  }();
  return key;
}

template <class Word>
Word LoadWord(const char* from) {
  Word word;
  memcpy(&word, from, sizeof(word));
  return word;
}

// Compares texts of the same size.
inline bool SameBytes(const char* p, const char* q, size_t size) {
  if (size < 16) {
    if (size >= 8) {
      return ((LoadWord<uint64_t>(p) ^ LoadWord<uint64_t>(q)) |
              (LoadWord<uint64_t>(p + size - 8) ^
               LoadWord<uint64_t>(q + size - 8))) == 0;
    }
    if (size >= 4) {
      return ((LoadWord<uint32_t>(p) ^ LoadWord<uint32_t>(q)) |
              (LoadWord<uint32_t>(p + size - 4) ^
               LoadWord<uint32_t>(q + size - 4))) == 0;
    }
    return size == 0 || (p[0] == q[0] && p[size / 2] == q[size / 2] &&
                         p[size - 1] == q[size - 1]);
  }
  typedef uint64_t Words __attribute__((vector_size(16)));
  const auto differ = [&](size_t at) {
    return LoadWord<Words>(p + at) ^ LoadWord<Words>(q + at);
  };
  // The 16-byte pieces may overlap, which saves branches.
  Words difference = differ(0) | differ(size - 16);
  if (size > 32) {
    difference |= differ(16) | differ(size - 32);
    if (size > 64) {
      difference |=
          differ(32) | differ(48) | differ(size - 64) | differ(size - 48);
      for (size_t at = 64; at + 64 < size; at += 16) difference |= differ(at);
    }
  }
  return (difference[0] | difference[1]) == 0;
}
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool SameText(absl::string_view a,
                                                  absl::string_view b) {
  return a.size() == b.size() && SameBytes(a.data(), b.data(), a.size());
}

// Adds a word of the key to each word of the text, and sums the products of
// pairs of these. Two given texts of the same length collide for only one key
// in 2^64. HashInline() is for loops over all names of a graph.
uint64_t HashInline(absl::string_view text, const HashKey& key);
ABSL_ATTRIBUTE_NOINLINE inline uint64_t Hash(absl::string_view text,
                                             const HashKey& key) {
  return HashInline(text, key);
}

// Returns the product of the words of 16 bytes, to which two words of the key
// are added.
inline Uint128 HashPair(const char* at, const uint64_t* key) {
  return Uint128{LoadWord<uint64_t>(at) + key[0]} *
         (LoadWord<uint64_t>(at + 8) + key[1]);
}
// Hashes the first 32 and the last 32 of at least 16 bytes. The 16-byte pieces
// may overlap, which saves branches: lengths are hard to predict.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline Uint128 HashEnds(const char* p, size_t size,
                                                     const HashKey& key) {
  const size_t second = size < 32 ? size - 16 : 16;
  const char* const last = p + size - 16;
  Uint128 sum = HashPair(p, key.words);
  sum += HashPair(last, key.words + 2);
  sum += HashPair(p + second, key.words + 4);
  sum += HashPair(last - second, key.words + 6);
  return sum;
}
ABSL_ATTRIBUTE_NOINLINE inline uint64_t HashFewBytes(absl::string_view text,
                                                     const HashKey& key) {
  const char* const p = text.data();
  const size_t size = text.size();
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
  return Mix(a + key.words[0] + size, b + key.words[1]);
}
ABSL_ATTRIBUTE_NOINLINE inline uint64_t HashManyBytes(absl::string_view text,
                                                      const HashKey& key) {
  constexpr size_t kChunk = HashKey::kWords * sizeof(uint64_t);
  uint64_t hash = key.length ^ text.size();
  const char* p = text.data();
  size_t size = text.size();
  if (size > kChunk) {
    for (; size > kChunk; size -= kChunk, p += kChunk) {
      Uint128 sum = 0;
      for (size_t i = 0; i < HashKey::kWords; i += 2) {
        sum += HashPair(p + i * 8, key.words + i);
      }
      hash = Mix(Low(sum) ^ hash, High(sum) ^ key.last[0]);
    }
    p -= kChunk - size;  // The last chunk.
    size = kChunk;
  }
  const char* const end = p + size;
  const Uint128 sum = HashEnds(p, size, key) + HashPair(p + 32, key.words + 8) +
                      HashPair(end - 48, key.words + 10) +
                      HashPair(p + 48, key.words + 12) +
                      HashPair(end - 64, key.words + 14);
  return Mix(Low(sum) ^ hash, High(sum) ^ key.last[1]);
}
ABSL_ATTRIBUTE_ALWAYS_INLINE inline uint64_t HashInline(absl::string_view text,
                                                        const HashKey& key) {
  // Most names have 16 to 64 bytes. Other lengths have functions of their own,
  // so that this one need not save registers.
  if (ABSL_PREDICT_FALSE(text.size() < 16)) return HashFewBytes(text, key);
  if (text.size() > 64) return HashManyBytes(text, key);
  const Uint128 sum = HashEnds(text.data(), text.size(), key);
  return Mix(Low(sum) ^ key.length ^ text.size(), High(sum) ^ key.last[1]);
}

// A table from hashes to indices. The caller stores the keys, by index. Uses
// open addressing and is at most half full. A slot holds the index in the bits
// that select a slot, and the remaining bits of the hash: together with its
// position, it determines nearly all of the hash.
class HashTable {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  bool empty() const { return slots_.empty(); }

  // Removes all entries and makes room for `count` new ones.
  void Reset(size_t count) {
    size_t size = 16;
    while (size < count * 2) size *= 2;
    slots_.clear();
    slots_.Resize(size);
    memset(slots_.data(), 0xff, size * sizeof(uint64_t));
    mask_ = size - 1;
    used_ = 0;
    is_exact_ = true;
  }
  void Clear() { slots_.clear(); }
  size_t bytes() const { return slots_.size() * sizeof(uint64_t); }

  void Prefetch(uint64_t hash) const {
    graph_internal::Prefetch(&slots_[hash & mask_]);
  }
  // Returns the first index with this hash for which is_it(index) is true, or
  // kNone.
  template <class F>
  uint32_t Find(uint64_t hash, const F& is_it) const {
    return Reader(*this).Find(hash, is_it);
  }
  // Returns whether no two keys in the table have the same hash, as far as the
  // slots hold it. If so, Reader::Find(hash) returns the index of each key in
  // the table without a comparison of keys. It returns kNone for other keys,
  // except for one in about 2^60.
  bool is_exact() const { return is_exact_; }
  // Reads a table that does not change. A copy in a loop's local variable stays
  // in registers.
  class Reader {
   public:
    explicit Reader(const HashTable& table)
        : slots_(table.slots_.data()), mask_(table.mask_) {}

    void Prefetch(uint64_t hash) const {
      graph_internal::Prefetch(&slots_[hash & mask_]);
    }
    template <class F>
    ABSL_ATTRIBUTE_ALWAYS_INLINE uint32_t Find(uint64_t hash,
                                               const F& is_it) const {
      for (size_t i = hash & mask_;; i = (i + 1) & mask_) {
        const uint64_t slot = slots_[i];
        if (ABSL_PREDICT_FALSE(slot == kEmpty)) return kNone;
        if (ABSL_PREDICT_TRUE((slot ^ hash) <= mask_) &&
            is_it(static_cast<uint32_t>(slot & mask_))) {
          return static_cast<uint32_t>(slot & mask_);
        }
      }
    }
    ABSL_ATTRIBUTE_ALWAYS_INLINE uint32_t Find(uint64_t hash) const {
      return Find(hash, [](uint32_t) { return true; });
    }

   private:
    const uint64_t* slots_;
    size_t mask_;
  };

  // Inserts `index` unless the table has an index with this hash for which
  // is_it() is true. Returns that index, or kNone after an insertion.
  template <class F>
  uint32_t Insert(uint64_t hash, uint32_t index, const F& is_it) {
    size_t i = hash & mask_;
    for (; slots_[i] != kEmpty; i = (i + 1) & mask_) {
      if (ABSL_PREDICT_TRUE((slots_[i] ^ hash) > mask_)) continue;
      const auto other = static_cast<uint32_t>(slots_[i] & mask_);
      if (is_it(other)) return other;
      is_exact_ = false;
    }
    slots_[i] = (hash & ~uint64_t{mask_}) | index;
    ++used_;
    return kNone;
  }
  // Returns whether Insert() has room for `index`.
  bool HasRoom(uint32_t index) const {
    return (used_ + 1) * 2 <= slots_.size() && index < mask_;
  }

 private:
  // No entry has these bits, because each index is below mask_.
  static constexpr uint64_t kEmpty = ~uint64_t{0};

  Array<uint64_t> slots_;
  size_t mask_ = 0;
  size_t used_ = 0;
  bool is_exact_ = true;
};

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_HASH_H_
