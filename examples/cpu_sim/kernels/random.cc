// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>

#include <cstdint>

#include "cpu_sim.h"
#include "kernels/host_tensor.h"
#include "kernels/philox.h"

// Ops that derive a key and a counter from a seed, for the ops of
// distributions.cc.
namespace cpu_sim {
namespace {

// Scrambles a seed so that all of its bits contribute equally.
void MakeKeyAndCounter(uint64_t* key, uint64_t* counter, int64_t seed_0,
                       int64_t seed_1) {
  const PhiloxBlock mix = Philox(
      ToBlock(static_cast<uint64_t>(seed_0), static_cast<uint64_t>(seed_1)),
      Join(0x3EC8F720, 0x02461E29));
  key[0] = Join(mix[0], mix[1]);
  counter[0] = 0;
  counter[1] = Join(mix[2], mix[3]);
}

class GetKeyCounter final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor seed_tensor, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const Dims seed, ReadDims(seed_tensor));
    if (seed.size() != 2) {
      return absl::InvalidArgumentError("seed must have shape [2], not " +
                                        seed_tensor.shape().ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor key, context.AllocateOutput(0, {1}));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor counter,
                            context.AllocateOutput(1, {2}));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
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
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor alg, context.AllocateOutput(0, {}));
    alg.flat<int32_t>()[0] = kPhilox;
    return absl::OkStatus();
  }
};
TFPLUG_REGISTER_KERNEL(
    GetAlg, tfplug::KernelDef("StatelessRandomGetAlg").HostMemory("alg"));

}  // namespace
}  // namespace cpu_sim
