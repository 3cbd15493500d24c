// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_HASH_H_
#define TFPLUG_OP_KERNELS_HASH_H_

#include <charconv>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tfplug/op_kernels/host_task_kernel.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Hashes of integers. TensorFlow's graph optimizer replaces AsString and
// StringToHashBucketFast, of which keras.layers.Hashing consists, by one op on
// the device of the integers.
namespace tfplug {
namespace op_kernels_internal {

// Fingerprint64 of FarmHash (https://github.com/google/farmhash), which
// StringToHashBucketFast uses, for texts of up to 32 bytes.
class Fingerprint {
 public:
  static uint64_t Of(const char* text, size_t size) {
    const Fingerprint of(text, size);
    return size > 16  ? of.Longest()
           : size > 7 ? of.Long()
           : size > 3 ? of.Short()
           : size > 0 ? of.Shortest()
                      : k2;
  }

 private:
  static constexpr uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273,
                            k2 = 0x9ae16a3b2f90404f;

  Fingerprint(const char* text, size_t size)
      : text_(text), size_(size), factor_(k2 + 2 * size) {}

  template <class Word>
  Word At(size_t i) const {
    Word word;
    std::memcpy(&word, text_ + i, sizeof(word));
    return word;
  }
  template <class Word>
  Word FromEnd(size_t i) const {
    return At<Word>(size_ - i);
  }
  static uint64_t Rotate(uint64_t x, int bits) {
    return x >> bits | x << (64 - bits);
  }
  static uint64_t Mix(uint64_t x) { return x ^ x >> 47; }
  uint64_t Combine(uint64_t x, uint64_t y) const {
    return Mix((Mix((x ^ y) * factor_) ^ y) * factor_) * factor_;
  }

  uint64_t Shortest() const {
    const uint32_t ends = At<uint8_t>(0) + (At<uint8_t>(size_ / 2) << 8);
    const uint32_t last =
        static_cast<uint32_t>(size_) + (FromEnd<uint8_t>(1) << 2);
    return Mix(ends * k2 ^ last * k0) * k2;
  }
  uint64_t Short() const {
    return Combine(size_ + (uint64_t{At<uint32_t>(0)} << 3),
                   FromEnd<uint32_t>(4));
  }
  uint64_t Long() const {
    const uint64_t first = At<uint64_t>(0) + k2, last = FromEnd<uint64_t>(8);
    return Combine(Rotate(last, 37) * factor_ + first,
                   (Rotate(first, 25) + last) * factor_);
  }
  uint64_t Longest() const {
    const uint64_t a = At<uint64_t>(0) * k1, b = At<uint64_t>(8);
    const uint64_t c = FromEnd<uint64_t>(8) * factor_;
    const uint64_t d = FromEnd<uint64_t>(16) * k2;
    return Combine(Rotate(a + b, 43) + Rotate(c, 30) + d,
                   a + Rotate(b + k2, 18) + c);
  }

  const char* const text_;
  const size_t size_;
  const uint64_t factor_;
};

// The remainder of the fingerprint of each integer's decimal digits.
class HashBucketKernel final : public HostTaskKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const int64_t buckets,
                            construction.GetAttr<int64_t>("num_buckets"));
    buckets_ = static_cast<uint64_t>(buckets);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Shape>> ShapesOf(
      absl::Span<const Shape> inputs) const override {
    return std::vector<Shape>{inputs[0]};
  }

  absl::Status Compute(absl::Span<const HostArray> inputs,
                       absl::Span<const HostArray> outputs) const override {
    const HostArray &from = inputs[0], &to = outputs[0];
    switch (from.type) {
      case DataType::kInt8:
        return Hash<int8_t>(from, to);
      case DataType::kInt16:
        return Hash<int16_t>(from, to);
      case DataType::kInt32:
        return Hash<int32_t>(from, to);
      case DataType::kInt64:
        return Hash<int64_t>(from, to);
      case DataType::kUint8:
        return Hash<uint8_t>(from, to);
      case DataType::kUint16:
        return Hash<uint16_t>(from, to);
      case DataType::kUint32:
        return Hash<uint32_t>(from, to);
      default:
        return Hash<uint64_t>(from, to);
    }
  }

 private:
  template <class T>
  absl::Status Hash(const HostArray& from, const HostArray& to) const {
    for (int64_t i = 0; i < to.shape.num_elements(); ++i) {
      char digits[20];
      const char* const end =
          std::to_chars(digits, digits + sizeof(digits), from.as<T>()[i]).ptr;
      to.as<int64_t>()[i] = static_cast<int64_t>(
          Fingerprint::Of(digits, static_cast<size_t>(end - digits)) %
          buckets_);
    }
    return absl::OkStatus();
  }

  uint64_t buckets_ = 1;
};

}  // namespace op_kernels_internal

inline void HashOps(const Registrar& registrar) {
  registrar.Add<op_kernels_internal::HashBucketKernel>(
      KernelDef("_TensorToHashBucketFast"), "T", kIntegerTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_HASH_H_
