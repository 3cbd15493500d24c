// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_GENERATOR_H_
#define TFPLUG_OP_KERNELS_GENERATOR_H_

#include <array>
#include <cstdint>
#include <string>

#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/variables.h"

#pragma GCC visibility push(hidden)

// The state of tf.random.Generator: a variable of int64 with the counter's low
// and high half, and the key of Philox. The numbers themselves are those of
// stateless ops. TensorFlow 2.19 to 2.21 export no function with which a kernel
// can update a variable; there, Python computes new states on a copy in host
// memory (base/internal/python_updates.h).
namespace tfplug {
namespace op_kernels_internal {

// RngReadAndSkip, whose output is the old state, and RngSkip: advance the
// counter.
class SkipKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction&) override {
    constexpr DataType kUint64 = DataType::kUint64;
    TFPLUG_ASSIGN_OR_RETURN(copy_, CastExpression(kUint64, kUint64));
    // TensorFlow adds words of 32 bits, and loses the carry of a negative skip.
    constexpr int64_t kWord = 0xffffffff;
    TFPLUG_ASSIGN_OR_RETURN(
        skip_, MakeExpression(
                   {kUint64, kUint64, kUint64}, {kUint64, kUint64},
                   [&](Value low, Value high, Value blocks) {
                     const Value carry =
                         ((low & kWord) + (blocks & kWord)) >> 32;
                     const Value upper = ((blocks >> 32) + carry) & kWord;
                     return std::array<Value, 2>{
                         low + blocks, high + (((low >> 32) + upper) >> 32)};
                   }));
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_RETURN_IF_ERROR(CheckAlgorithm(run));
    TFPLUG_ASSIGN_OR_RETURN(const Tensor delta, run.GetInput(2));
    if (delta.rank() != 0) {
      return absl::InvalidArgumentError("delta must be a scalar, got shape " +
                                        delta.shape().ToString());
    }
    const uint64_t numbers =
        delta.dtype() == DataType::kUint64
            ? delta.scalar<uint64_t>()
            : static_cast<uint64_t>(delta.scalar<int64_t>());
    using Code = BackendVariables;
    const auto lock = LockVariables<Code>(run.context(), {0}, true);
    if (lock.status().code() == absl::StatusCode::kUnimplemented) {
      return absl::UnimplementedError(
          std::string(lock.status().message()) +
          "; create the generator under tf.device(\"CPU:0\") instead");
    }
    if (!lock.ok()) return lock.status();
    TFPLUG_ASSIGN_OR_RETURN(
        const Tensor tensor,
        GetVariableTensor<Code>(run.context(), 0, /*lock_held=*/true));
    TFPLUG_RETURN_IF_ERROR(CheckState(tensor));
    TFPLUG_ASSIGN_OR_RETURN(Operand state, ViewOf(tensor));
    state.type = DataType::kUint64;
    TFPLUG_ASSIGN_OR_RETURN(Operand old, AllocateOld(run));
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().Map(copy_, {ir::Range(state, 0, 0, kStateSize)}, {old}));
    return run.launcher().Map(
        skip_,
        {ir::Range(old, 0, 0, 1), ir::Range(old, 0, 1, 2),
         Operand::Scalar(DataType::kUint64, numbers * kBlocksPerNumber)
             .AddDim(1, 0)},
        {ir::Range(state, 0, 0, 1), ir::Range(state, 0, 1, 2)});
  }

 private:
  static constexpr int64_t kStateSize = 3;
  // TensorFlow reserves this many for each number, whatever the distribution.
  static constexpr uint64_t kBlocksPerNumber = 256;

  static absl::Status CheckAlgorithm(OpRun& run) {
    TFPLUG_ASSIGN_OR_RETURN(const int64_t algorithm, run.GetScalar(1));
    constexpr int64_t kPhilox = 1, kThreeFry = 2, kAny = 3;
    if (algorithm == kPhilox || algorithm == kAny) return absl::OkStatus();
    if (algorithm == kThreeFry) {
      return absl::UnimplementedError(
          "Philox is the only random algorithm on this device");
    }
    return absl::InvalidArgumentError("Unsupported algorithm id: " +
                                      std::to_string(algorithm));
  }
  static absl::Status CheckState(const Tensor& state) {
    if (state.dtype() == DataType::kInt64 && state.rank() == 1 &&
        state.dim(0) >= kStateSize) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "the state of a random generator must be a vector of at least 3 int64, "
        "not ",
        state.shape().ToString(), " of ", DataTypeName(state.dtype())));
  }
  // Returns memory for the old state, which is the output of RngReadAndSkip.
  static absl::StatusOr<Operand> AllocateOld(OpRun& run) {
    if (run.context().num_outputs() == 0) {
      return run.launcher().Allocate(DataType::kUint64, {kStateSize});
    }
    TFPLUG_ASSIGN_OR_RETURN(Operand old, run.AllocateOutput(0, {kStateSize}));
    old.type = DataType::kUint64;
    return old;
  }

  Expression copy_, skip_;
};

}  // namespace op_kernels_internal

inline void GeneratorOps(const Registrar& registrar) {
  registrar.Add<op_kernels_internal::SkipKernel>(KernelDef("RngReadAndSkip")
                                                     .HostMemory("resource")
                                                     .HostMemory("alg")
                                                     .HostMemory("delta"));
  registrar.Add<op_kernels_internal::SkipKernel>(KernelDef("RngSkip")
                                                     .HostMemory("resource")
                                                     .HostMemory("algorithm")
                                                     .HostMemory("delta"));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_GENERATOR_H_
