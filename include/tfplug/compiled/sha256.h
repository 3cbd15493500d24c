// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_SHA256_H_
#define TFPLUG_COMPILED_SHA256_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

#pragma GCC visibility push(hidden)

namespace tfplug::compiled_internal {

// The hash SHA-256 of FIPS 180-4: here, because a plug-in needs no library that
// has it, and static archives of distributions are not position-independent.
class Sha256 {
 public:
  // Appends bytes to the hashed text.
  void Add(absl::string_view bytes) {
    size_ += bytes.size();
    while (!bytes.empty()) {
      const size_t n = std::min(bytes.size(), sizeof(block_) - used_);
      std::memcpy(block_ + used_, bytes.data(), n);
      used_ += n;
      bytes.remove_prefix(n);
      if (used_ == sizeof(block_)) AddBlock();
    }
  }

  // Returns the 32 bytes of the hash. Call it once.
  std::string Finish() {
    const uint64_t bits = uint64_t{size_} * 8;
    Add(absl::string_view("\x80", 1));
    while (used_ != sizeof(block_) - sizeof(bits)) Add({"\0", 1});
    std::string hash;
    AppendWord(static_cast<uint32_t>(bits >> 32), &hash);
    AppendWord(static_cast<uint32_t>(bits), &hash);
    Add(std::exchange(hash, ""));
    for (const uint32_t word : state_) AppendWord(word, &hash);
    return hash;
  }

 private:
  static constexpr uint32_t kConstants[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
      0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
      0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
      0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
      0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
      0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
      0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
      0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
      0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
  };

  static void AppendWord(uint32_t word, std::string* bytes) {
    for (const int shift : {24, 16, 8, 0}) {
      bytes->push_back(static_cast<char>(word >> shift));
    }
  }
  static uint32_t Rotated(uint32_t word, int n) {
    return word >> n | word << (32 - n);
  }

  void AddBlock() {
    uint32_t words[64];
    for (size_t i = 0; i < 16; ++i) {
      const unsigned char* const at = block_ + 4 * i;
      words[i] = uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 |
                 uint32_t{at[2]} << 8 | uint32_t{at[3]};
    }
    for (size_t i = 16; i < 64; ++i) {
      const uint32_t x = words[i - 15], y = words[i - 2];
      words[i] = words[i - 16] + (Rotated(x, 7) ^ Rotated(x, 18) ^ x >> 3) +
                 words[i - 7] + (Rotated(y, 17) ^ Rotated(y, 19) ^ y >> 10);
    }
    std::array<uint32_t, 8> next = state_;
    auto& [a, b, c, d, e, f, g, h] = next;
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t t1 = h +
                          (Rotated(e, 6) ^ Rotated(e, 11) ^ Rotated(e, 25)) +
                          ((e & f) ^ (~e & g)) + kConstants[i] + words[i];
      const uint32_t t2 = (Rotated(a, 2) ^ Rotated(a, 13) ^ Rotated(a, 22)) +
                          ((a & b) ^ (a & c) ^ (b & c));
      next = {t1 + t2, a, b, c, d + t1, e, f, g};
    }
    for (size_t i = 0; i < next.size(); ++i) state_[i] += next[i];
    used_ = 0;
  }

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                    0xa54ff53a, 0x510e527f, 0x9b05688c,
                                    0x1f83d9ab, 0x5be0cd19};
  unsigned char block_[64];
  size_t used_ = 0;  // bytes of the block
  size_t size_ = 0;  // of the text
};

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_SHA256_H_
