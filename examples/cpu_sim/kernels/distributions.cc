// SPDX-License-Identifier: Apache-2.0
#include "kernels/distributions.h"

#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/random.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include "cpu_sim.h"
#include "kernels/host_tensor.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// The tensors of one run of an op, and its stream.
struct RandomRun {
  tfplug::Tensor key, counter, y;
  Stream* stream = nullptr;
};

// Reads the inputs that all of these ops share, shape, key, counter and
// algorithm, and allocates the output.
absl::StatusOr<RandomRun> Begin(tfplug::KernelContext& context) {
  constexpr int32_t kAnyAlgorithm = 3;  // the device chooses
  using Op = ops::StatelessRandomUniformV2;
  TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor dims, context.GetInput(Op::shape));
  TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor alg_tensor, context.GetInput(Op::alg));
  TFPLUG_ASSIGN_OR_RETURN(const Dims alg, ReadDims(alg_tensor));
  if (alg.size() != 1 || (alg[0] != kPhilox && alg[0] != kAnyAlgorithm)) {
    return absl::InvalidArgumentError(
        "Philox is the only random algorithm on this device");
  }
  RandomRun run;
  TFPLUG_ASSIGN_OR_RETURN(run.key, context.GetInput(Op::key));
  TFPLUG_ASSIGN_OR_RETURN(run.counter, context.GetInput(Op::counter));
  if (run.key.num_elements() != 1 || run.counter.num_elements() < 2) {
    return absl::InvalidArgumentError(
        "key must have shape [1] and counter shape [2], not " +
        run.key.shape().ToString() + " and " + run.counter.shape().ToString());
  }
  TFPLUG_ASSIGN_OR_RETURN(const tfplug::Shape shape, ReadShape(dims));
  TFPLUG_ASSIGN_OR_RETURN(run.y, context.AllocateOutput(0, shape));
  TFPLUG_ASSIGN_OR_RETURN(run.stream, context.GetStream<Stream>());
  return run;
}

// A function of distributions.h.
template <typename T>
using FillFunction = void (*)(T*, int64_t, const uint64_t*, const uint64_t*);

template <typename T, FillFunction<T> fill>
class Random final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const RandomRun run, Begin(context));
    return run.stream->Launch(fill, run.y.flat<T>(), run.y.num_elements(),
                              run.key.flat<uint64_t>(),
                              run.counter.flat<uint64_t>());
  }
};

template <class Op, typename T, FillFunction<T> fill>
bool Register() {
  return tfplug::RegisterKernel<Random<T, fill>>(
      Op().template dtype<T>().HostMemory(Op::shape).HostMemory(Op::alg));
}

template <typename T>
class RandomInteger final : public tfplug::Kernel {
 public:
  using Op = ops::StatelessRandomUniformIntV2;

  absl::Status Compute(tfplug::KernelContext& context) override {
    using Unsigned = std::make_unsigned_t<T>;
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor low, context.GetInput(Op::minval));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor high, context.GetInput(Op::maxval));
    if (low.num_elements() != 1 || high.num_elements() != 1 ||
        low.scalar<T>() >= high.scalar<T>()) {
      return absl::InvalidArgumentError(
          "minval and maxval must be scalars with minval < maxval");
    }
    const T from = low.scalar<T>();
    const Unsigned range =
        static_cast<Unsigned>(high.scalar<T>()) - static_cast<Unsigned>(from);
    TFPLUG_ASSIGN_OR_RETURN(const RandomRun run, Begin(context));
    return run.stream->Launch(&FillInteger<T, Unsigned>, run.y.flat<T>(),
                              run.y.num_elements(), run.key.flat<uint64_t>(),
                              run.counter.flat<uint64_t>(), from, range);
  }
};

template <typename... Types>
bool RegisterInteger() {
  return (tfplug::RegisterKernel<RandomInteger<Types>>(
              ops::StatelessRandomUniformIntV2()
                  .template dtype<Types>()
                  .HostMemory(ops::StatelessRandomUniformIntV2::shape)
                  .HostMemory(ops::StatelessRandomUniformIntV2::alg)
                  .HostMemory(ops::StatelessRandomUniformIntV2::minval)
                  .HostMemory(ops::StatelessRandomUniformIntV2::maxval)) &&
          ...);
}

template <typename... Types>
bool RegisterBits() {
  return (Register<ops::StatelessRandomUniformFullIntV2, Types,
                   &FillBits<Types>>() &&
          ...);
}

[[maybe_unused]] const bool kernels =
    Register<ops::StatelessRandomUniformV2, float, &FillUniform>() &&
    Register<ops::StatelessRandomNormalV2, float, &FillNormal>() &&
    Register<ops::StatelessTruncatedNormalV2, float, &FillTruncatedNormal>() &&
    RegisterInteger<int32_t, int64_t>() &&
    RegisterBits<int32_t, uint32_t, int64_t, uint64_t>();

}  // namespace
}  // namespace cpu_sim
