// SPDX-License-Identifier: Apache-2.0
#include <tfplug/register_kernel.h>
#include <tfplug/status_macros.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "cpu_sim.h"
#include "kernels/host_tensor.h"

// Random numbers that depend on nothing but a seed, equal to those of
// TensorFlow's own devices: Philox 4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011).
namespace cpu_sim {
namespace {

constexpr int32_t kPhilox = 1;  // TensorFlow's number for the algorithm

// ---- On the device ---------------------------------------------------------

using Block = std::array<uint32_t, 4>;
using Key = std::array<uint32_t, 2>;

// The block of random bits that belongs to a counter.
Block Philox(Block counter, Key key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

Block ToBlock(uint64_t low, uint64_t high) {
  return {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
          static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)};
}

uint64_t Join(uint32_t low, uint32_t high) {
  return uint64_t{high} << 32 | low;
}

// Mixes a seed, so that all of its bits matter alike.
void MakeKeyAndCounter(uint64_t* key, uint64_t* counter, int64_t seed_0,
                       int64_t seed_1) {
  const Block mix = Philox(
      ToBlock(static_cast<uint64_t>(seed_0), static_cast<uint64_t>(seed_1)),
      {0x3EC8F720, 0x02461E29});
  key[0] = Join(mix[0], mix[1]);
  counter[0] = 0;
  counter[1] = Join(mix[2], mix[3]);
}

// Evenly from [0, 1): the 23 low bits as the fraction of a number in [1, 2).
void FillUniform(float* y, int64_t size, const uint64_t* key,
                 const uint64_t* counter) {
  uint64_t low = counter[0], high = counter[1];
  const Block key_bits = ToBlock(key[0], 0);
  for (int64_t i = 0; i < size; i += 4) {
    const Block bits = Philox(ToBlock(low, high), {key_bits[0], key_bits[1]});
    if (++low == 0) ++high;
    for (int64_t k = 0; k < std::min<int64_t>(4, size - i); ++k) {
      const uint32_t one_to_two = 0x3F800000 | (bits[k] & 0x7FFFFF);
      float value;
      memcpy(&value, &one_to_two, sizeof(value));
      y[i + k] = value - 1;
    }
  }
}

// ---- On the host -----------------------------------------------------------

class GetKeyCounter final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor seed_tensor, context.input(0));
    TFPLUG_ASSIGN_OR_RETURN(const Dims seed, ReadDims(seed_tensor));
    if (seed.size() != 2) {
      return absl::InvalidArgumentError("seed must have shape [2], not " +
                                        seed_tensor.shape().ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor key,
                            context.allocate_output(0, {1}));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor counter,
                            context.allocate_output(1, {2}));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.stream<Stream>());
    return stream->Launch(&MakeKeyAndCounter, key.flat<uint64_t>(),
                          counter.flat<uint64_t>(), seed[0], seed[1]);
  }
};
TFPLUG_REGISTER_KERNEL(GetKeyCounter,
                       tfplug::KernelDef("StatelessRandomGetKeyCounter")
                           .TypeConstraint<int32_t, int64_t>("Tseed")
                           .HostMemory("seed"));

class GetAlg final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor alg, context.allocate_output(0, {}));
    alg.flat<int32_t>()[0] = kPhilox;
    return absl::OkStatus();
  }
};
TFPLUG_REGISTER_KERNEL(
    GetAlg, tfplug::KernelDef("StatelessRandomGetAlg").HostMemory("alg"));

class Uniform final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dims, context.input(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor key, context.input(1));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor counter, context.input(2));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor alg_tensor, context.input(3));
    TFPLUG_ASSIGN_OR_RETURN(const Dims alg, ReadDims(alg_tensor));
    if (alg.size() != 1 || (alg[0] != kPhilox && alg[0] != kAnyAlgorithm)) {
      return absl::InvalidArgumentError(
          "this device has no random algorithm but Philox");
    }
    if (key.num_elements() != 1 || counter.num_elements() < 2) {
      return absl::InvalidArgumentError(
          "want a key of shape [1] and a counter of shape [2], not " +
          key.shape().ToString() + " and " + counter.shape().ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Shape shape, ReadShape(dims));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.allocate_output(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.stream<Stream>());
    return stream->Launch(&FillUniform, y.flat<float>(), y.num_elements(),
                          key.flat<uint64_t>(), counter.flat<uint64_t>());
  }

 private:
  static constexpr int32_t kAnyAlgorithm = 3;  // "choose for the device"
};
TFPLUG_REGISTER_KERNEL(Uniform, tfplug::KernelDef("StatelessRandomUniformV2")
                                    .TypeConstraint<float>("dtype")
                                    .HostMemory("shape")
                                    .HostMemory("alg"));

}  // namespace
}  // namespace cpu_sim
