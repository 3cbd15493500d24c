// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_PHILOX_H_
#define TFPLUG_OP_KERNELS_PHILOX_H_

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "tfplug/ir/value.h"

#pragma GCC visibility push(hidden)

// Random numbers that depend only on a key and a counter, equal to those of
// TensorFlow's own devices: Philox 4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011) on the host and as an expression, and
// TensorFlow's distributions.
namespace tfplug::op_kernels_internal {

// A key, and a counter as its low and high half.
struct PhiloxState {
  uint64_t key = 0;
  uint64_t low = 0, high = 0;
};

// Returns Philox of four words; W is uint32_t or Value, and multiply(constant,
// word) returns the low and the high word of a product.
template <class W, class Multiply, class Add>
std::array<W, 4> PhiloxRounds(std::array<W, 4> counter, std::array<W, 2> key,
                              Multiply multiply, Add add) {
  for (int round = 0; round < 10; ++round) {
    const std::array<W, 2> a = multiply(0xD2511F53u, counter[0]);
    const std::array<W, 2> b = multiply(0xCD9E8D57u, counter[2]);
    counter = {b[1] ^ counter[1] ^ key[0], b[0], a[1] ^ counter[3] ^ key[1],
               a[0]};
    key = {add(key[0], 0x9E3779B9u), add(key[1], 0xBB67AE85u)};
  }
  return counter;
}

inline std::array<uint32_t, 4> PhiloxOf(const PhiloxState& state) {
  const auto low = [](uint64_t word) { return static_cast<uint32_t>(word); };
  const auto high = [](uint64_t word) {
    return static_cast<uint32_t>(word >> 32);
  };
  return PhiloxRounds<uint32_t>(
      {low(state.low), high(state.low), low(state.high), high(state.high)},
      {low(state.key), high(state.key)},
      [&](uint32_t constant, uint32_t word) {
        const uint64_t product = uint64_t{constant} * word;
        return std::array<uint32_t, 2>{low(product), high(product)};
      },
      [](uint32_t word, uint32_t constant) { return word + constant; });
}

// The key with which seeds of stateless ops are scrambled.
inline constexpr int64_t kSeedKey = 0x02461E293EC8F720;

// Derives key and counter from the seed of a stateless op.
inline PhiloxState ScrambleSeed(int64_t seed_0, int64_t seed_1) {
  const std::array<uint32_t, 4> mix =
      PhiloxOf({uint64_t{kSeedKey}, static_cast<uint64_t>(seed_0),
                static_cast<uint64_t>(seed_1)});
  return {uint64_t{mix[1]} << 32 | mix[0], 0, uint64_t{mix[3]} << 32 | mix[2]};
}

using Words = std::array<Value, 4>;

// Returns the words for the counter plus `skip`; all are of uint64.
inline Words PhiloxWords(Value key, Value counter_low, Value counter_high,
                         Value skip) {
  constexpr DataType kUint32 = DataType::kUint32, kUint64 = DataType::kUint64;
  const Value at = counter_low + skip;
  const Value carried = counter_high + Cast(at < counter_low, kUint64);
  const auto low = [](Value word) { return Cast(word, kUint32); };
  const auto high = [](Value word) { return Cast(word >> 32, kUint32); };
  return PhiloxRounds<Value>(
      {low(at), high(at), low(carried), high(carried)}, {low(key), high(key)},
      [&](uint32_t constant, Value word) {
        const Value product = Cast(word, kUint64) * int64_t{constant};
        return std::array<Value, 2>{low(product), high(product)};
      },
      [](Value word, uint32_t constant) { return word + int64_t{constant}; });
}

// Returns key and counter of a seed, as ScrambleSeed does; all are of uint64.
inline std::array<Value, 3> ScrambleSeed(Value seed_0, Value seed_1) {
  const Words mix =
      PhiloxWords(seed_0.Like(kSeedKey), seed_0, seed_1, seed_0.Like(0));
  const auto join = [](Value low, Value high) {
    return Cast(high, DataType::kUint64) << 32 | Cast(low, DataType::kUint64);
  };
  return {join(mix[0], mix[1]), seed_0.Like(0), join(mix[2], mix[3])};
}

// Returns a number in [0, 1) of the lowest bits, as many as a fraction of
// `type` has; double uses two words.
inline Value UniformOf(DataType type, Value word, Value second) {
  switch (type) {
    case DataType::kDouble: {
      const Value bits = Cast(word & 0xfffff, DataType::kUint64) << 32 |
                         Cast(second, DataType::kUint64);
      return Cast(bits, DataType::kDouble) * 0x1p-52;
    }
    case DataType::kHalf:
      return Cast(word & 0x3ff, DataType::kFloat) * 0x1p-10;
    case DataType::kBfloat16:
      return Cast(word & 0x7f, DataType::kFloat) * 0x1p-7;
    default:
      return Cast(word & 0x7fffff, DataType::kFloat) * 0x1p-23;
  }
}

// Returns 2 pi times a fraction of 23 bits, rounded once: TensorFlow multiplies
// in double. The products of `upper` with 8 bits each are exact.
inline Value AngleOf(Value fraction) {
  if (fraction.type() == DataType::kDouble) {
    return fraction * 6.283185307179586477;
  }
  const Value upper = Floor(fraction * 0x1p16) * 0x1p-16;
  const Value a = upper * 6.28125, b = upper * (253 * 0x1p-17);
  const Value sum = a + b, error = b - (sum - a);
  return sum + (error + (upper * 5.07036318e-6 +
                         (fraction - upper) * 6.283185307179586477));
}

// Returns two normally distributed numbers, by the method of Box and Muller.
inline std::array<Value, 2> NormalOf(Value uniform_0, Value uniform_1) {
  const Value radius = Sqrt(-2 * Log(Max(uniform_0, 1.0e-7)));
  const Value angle = AngleOf(uniform_1);
  return {Sin(angle) * radius, Cos(angle) * radius};
}

enum class Distribution { kUniform, kNormal, kTruncatedNormal, kBits };

// Returns the numbers of a block: four, or two of 64 bits; truncated normals
// are always four. words(i) returns the words of the i-th block from the first
// on.
template <class GetWords>
std::vector<Value> NumbersOf(Distribution distribution, DataType type,
                             GetWords words) {
  const Words w = words(0);
  const DataType narrow =
      type == DataType::kDouble ? DataType::kDouble : DataType::kFloat;
  if (distribution == Distribution::kBits) {
    if (DataTypeSize(type) == 4) return {w.begin(), w.end()};
    const auto join = [](Value low, Value high) {
      return Cast(high, DataType::kUint64) << 32 | Cast(low, DataType::kUint64);
    };
    return {join(w[0], w[1]), join(w[2], w[3])};
  }
  if (distribution == Distribution::kUniform) {
    if (type == DataType::kDouble) {
      return {UniformOf(type, w[0], w[1]), UniformOf(type, w[2], w[3])};
    }
    std::vector<Value> all;
    for (const Value& word : w) all.push_back(UniformOf(type, word, word));
    return all;
  }
  const auto normal = [&](const Words& from) {
    std::vector<Value> all;
    const auto add = [&](Value x, Value y) {
      for (Value z : NormalOf(x, y)) all.push_back(z);
    };
    if (type == DataType::kDouble) {
      add(UniformOf(type, from[0], from[1]), UniformOf(type, from[2], from[3]));
    } else {
      add(UniformOf(narrow, from[0], from[0]),
          UniformOf(narrow, from[1], from[1]));
      add(UniformOf(narrow, from[2], from[2]),
          UniformOf(narrow, from[3], from[3]));
    }
    return all;
  };
  if (distribution == Distribution::kNormal) return normal(w);
  // Takes the first numbers within [-2, 2]: more than one in twenty is outside.
  // The probability that these blocks do not suffice is below 1e-13.
  const size_t size = type == DataType::kDouble ? 2 : 4;
  const int blocks = type == DataType::kDouble ? 10 : 5;
  std::vector<Value> taken(size, w[0]);
  Value count = w[0].Like(0);
  for (size_t k = 0; k < size; ++k) {
    taken[k] = Cast(w[0].Like(0), narrow);
  }
  for (int block = 0; block < blocks; ++block) {
    for (Value z : normal(words(block))) {
      const Value is_inside = Abs(z) < 2;
      for (size_t k = 0; k < size; ++k) {
        const Value is_next = is_inside & (count == static_cast<int>(k));
        taken[k] = Select(is_next, z, taken[k]);
      }
      count = count + Cast(is_inside, DataType::kUint32);
    }
  }
  return taken;
}

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_PHILOX_H_
