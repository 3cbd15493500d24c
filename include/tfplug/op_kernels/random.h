// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_RANDOM_H_
#define TFPLUG_OP_KERNELS_RANDOM_H_

#include <array>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/ir/scalar_code.h"
#include "tfplug/kernel/memory_labels.h"
#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/philox.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Random numbers: stateless ops with a seed, or with a key and a counter, and
// stateful ones. All give the numbers of TensorFlow's CPU.
namespace tfplug {
namespace op_kernels_internal {

inline Operand Uint64Scalar(uint64_t value) {
  return Operand::Scalar(DataType::kUint64, value);
}

// Key and counter as operands: in device memory or known on the host.
struct PhiloxOperands {
  Operand key, low, high;
  static PhiloxOperands Of(const PhiloxState& state) {
    return {Uint64Scalar(state.key), Uint64Scalar(state.low),
            Uint64Scalar(state.high)};
  }
};

// Returns the seed in input `i`, a vector of two integers in host memory.
inline absl::StatusOr<PhiloxState> GetSeed(OpRun& run, int i) {
  TFPLUG_ASSIGN_OR_RETURN(const Ints seed,
                          run.GetVector(i, "seed must have shape [2], not "));
  if (seed.size() == 2) return ScrambleSeed(seed[0], seed[1]);
  return absl::InvalidArgumentError("seed must have shape [2], not [" +
                                    std::to_string(seed.size()) + "]");
}

// Returns whether tf.config.experimental.enable_op_determinism was called. There
// is no C function for this; TensorFlow exports its C++ function.
inline bool IsDeterminismRequired() {
  using Function = bool();
  static auto* const is_required = reinterpret_cast<Function*>(
      internal::FindInProcess("_ZN3tsl21OpDeterminismRequiredEv"));
  return is_required != nullptr && is_required();
}

// Returns the state of the attributes seed and seed2, or a random one if both
// are 0.
inline absl::StatusOr<PhiloxState> InitialState(
    KernelConstruction& construction) {
  TFPLUG_ASSIGN_OR_RETURN(int64_t seed, construction.GetAttr<int64_t>("seed"));
  TFPLUG_ASSIGN_OR_RETURN(int64_t seed2,
                          construction.GetAttr<int64_t>("seed2"));
  if (seed == 0 && seed2 == 0) {
    if (IsDeterminismRequired()) {
      return absl::InvalidArgumentError(
          "When determinism is enabled, random ops must have a seed "
          "specified.");
    }
    std::random_device device;
    const auto random = [&] {
      return static_cast<int64_t>(uint64_t{device()} << 32 | device());
    };
    seed = random();
    seed2 = random();
  }
  return PhiloxState{static_cast<uint64_t>(seed), 0,
                     static_cast<uint64_t>(seed2)};
}

// Advances the counter by this many blocks.
inline void Skip(PhiloxState& state, uint64_t blocks) {
  state.low += blocks;
  if (state.low < blocks) ++state.high;
}

// The base of the ops that fill a tensor.
class RandomKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    const auto has = [&](const char* text) { return op.find(text) != op.npos; };
    is_stateless_ = has("Stateless");
    takes_key_ = is_stateless_ && has("V2");
    in_range_ = has("UniformInt");
    distribution_ = has("Int")               ? Distribution::kBits
                    : has("TruncatedNormal") ? Distribution::kTruncatedNormal
                    : has("Normal")          ? Distribution::kNormal
                                             : Distribution::kUniform;
    const bool is_int = !is_stateless_ && in_range_;
    TFPLUG_ASSIGN_OR_RETURN(
        type_, construction.GetAttr<DataType>(is_int ? "Tout" : "dtype"));
    if (!is_stateless_) {
      TFPLUG_ASSIGN_OR_RETURN(state_, InitialState(construction));
    }
    return BuildExpression();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, GetShape(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand output, run.AllocateOutput(0, shape));
    const int64_t n = output.num_elements();
    Operand low = Operand::Scalar(type_, 0), range = low;
    if (in_range_) TFPLUG_RETURN_IF_ERROR(GetRange(run, n == 0, &low, &range));
    TFPLUG_ASSIGN_OR_RETURN(const PhiloxOperands from, GetState(run, n));
    const int64_t size = static_cast<int64_t>(expression_.outputs().size());
    const Operand y = ir::Flat(output);
    const int64_t blocks = n / size;
    const auto fill = [&](int64_t first, int64_t count, const Operand& to) {
      absl::InlinedVector<Operand, 4> inputs = {
          from.key, from.low, from.high,
          Operand::Index(first, DataType::kUint64)};
      if (in_range_) {
        inputs.push_back(low);
        inputs.push_back(range);
      }
      for (Operand& input : inputs) {
        input.rank = 0;
        input.AddDim(count, input.kind == Operand::Kind::kIndex ? 1 : 0);
      }
      absl::InlinedVector<Operand, 4> outputs;
      for (int64_t k = 0; k < size; ++k) {
        Operand part = to;
        part.Advance(k);
        part.dim(0) = count;
        part.stride(0) = size;
        outputs.push_back(part);
      }
      return run.launcher().Map(expression_, absl::MakeSpan(inputs),
                                absl::MakeSpan(outputs));
    };
    if (blocks > 0) TFPLUG_RETURN_IF_ERROR(fill(0, blocks, y));
    const int64_t rest = n - blocks * size;
    if (rest == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(const Operand block,
                            run.launcher().Allocate(type_, {size}));
    TFPLUG_RETURN_IF_ERROR(fill(blocks, 1, block));
    return Copy(run, ir::Range(block, 0, 0, rest),
                ir::Range(y, 0, n - rest, n));
  }

 private:
  // TensorFlow reserves this many words for each truncated normal.
  static constexpr int64_t kReserved = 256;

  absl::Status BuildExpression() {
    ExpressionBuilder builder;
    const Value key = builder.Input(DataType::kUint64);
    const Value low = builder.Input(DataType::kUint64);
    const Value high = builder.Input(DataType::kUint64);
    const Value index = builder.Input(DataType::kUint64);
    const bool skips = distribution_ == Distribution::kTruncatedNormal;
    const int64_t numbers_per_block = type_ == DataType::kDouble ? 2 : 4;
    const Value first =
        skips ? index * (numbers_per_block * kReserved / 4) : index;
    std::vector<Value> numbers =
        NumbersOf(distribution_, type_, [&](int block) {
          return PhiloxWords(key, low, high, first + int64_t{block});
        });
    if (in_range_) {
      const Value from = builder.Input(type_), range = builder.Input(type_);
      for (Value& number : numbers) {
        const DataType bits = number.type();
        number = Cast(number % Cast(range, bits), from.type()) + from;
      }
    }
    for (const Value& number : numbers) builder.Output(number, type_);
    TFPLUG_ASSIGN_OR_RETURN(expression_, std::move(builder).Build());
    return absl::OkStatus();
  }

  // Reads the bounds. Accepts any for no numbers, as TensorFlow does.
  absl::Status GetRange(OpRun& run, bool is_unused, Operand* low,
                        Operand* range) const {
    const int first = is_stateless_ ? (takes_key_ ? 4 : 2) : 1;
    uint64_t bounds[2];
    for (int i = 0; i < 2; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Tensor bound, run.GetInput(first + i));
      if (bound.num_elements() != 1 || bound.rank() != 0) {
        return absl::InvalidArgumentError(
            (i == 0 ? "minval must be 0-D, got shape "
                    : "maxval must be 0-D, got shape ") +
            bound.shape().ToString());
      }
      ir::VisitStored(type_, [&](auto tag) {
        using T = typename decltype(tag)::type;
        bounds[i] = static_cast<uint64_t>(
            ir::Convert<int64_t>(*static_cast<const T*>(bound.data())));
      });
    }
    const bool is_unsigned =
        type_ == DataType::kUint32 || type_ == DataType::kUint64;
    const bool is_empty = is_unsigned ? bounds[0] >= bounds[1]
                                      : static_cast<int64_t>(bounds[0]) >=
                                            static_cast<int64_t>(bounds[1]);
    if (is_empty && !is_unused) {
      const auto text = [&](uint64_t bound) {
        return is_unsigned ? std::to_string(bound)
                           : std::to_string(static_cast<int64_t>(bound));
      };
      return absl::InvalidArgumentError("Need minval < maxval, got " +
                                        text(bounds[0]) +
                                        " >= " + text(bounds[1]));
    }
    low->scalar = bounds[0];
    range->scalar = bounds[1] - bounds[0];
    return absl::OkStatus();
  }

  absl::StatusOr<PhiloxOperands> GetState(OpRun& run, int64_t n) {
    if (takes_key_) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand key, GetView(run, 1));
      TFPLUG_ASSIGN_OR_RETURN(const Operand counter, GetView(run, 2));
      TFPLUG_ASSIGN_OR_RETURN(const int64_t algorithm, run.GetScalar(3));
      constexpr int64_t kPhilox = 1, kAny = 3;
      if (algorithm != kPhilox && algorithm != kAny) {
        return absl::InvalidArgumentError(
            "Philox is the only random algorithm on this device");
      }
      if (key.rank != 1 || key.dim(0) != 1 || counter.rank != 1 ||
          counter.dim(0) < 2) {
        return absl::InvalidArgumentError(
            "key must have shape [1] and counter shape [2], not " +
            ShapeOf(key).ToString() + " and " + ShapeOf(counter).ToString());
      }
      return PhiloxOperands{key, counter, Operand(counter).Advance(1)};
    }
    if (is_stateless_) {
      TFPLUG_ASSIGN_OR_RETURN(const PhiloxState seed, GetSeed(run, 1));
      return PhiloxOperands::Of(seed);
    }
    // Reserves as many blocks as TensorFlow's kernels do.
    const std::lock_guard<std::mutex> lock(mutex_);
    const PhiloxState now = state_;
    Skip(state_, static_cast<uint64_t>(n) * kReserved);
    return PhiloxOperands::Of(now);
  }

  bool is_stateless_ = false, takes_key_ = false, in_range_ = false;
  Distribution distribution_ = Distribution::kUniform;
  DataType type_{};
  Expression expression_;
  std::mutex mutex_;
  PhiloxState state_;
};

// StatelessRandomGetKeyCounter and StatelessRandomGetKeyCounterAlg, with the seed in
// host memory.
class KeyCounterKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction&) override {
    constexpr DataType kType = DataType::kUint64;
    TFPLUG_ASSIGN_OR_RETURN(
        expression_,
        MakeExpression({kType, kType, kType}, {kType, kType, kType},
                       [](Value key, Value low, Value high) {
                         return std::array<Value, 3>{key, low, high};
                       }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) final {
    TFPLUG_ASSIGN_OR_RETURN(std::vector<Operand> from, GetInputs(run));
    TFPLUG_ASSIGN_OR_RETURN(const Operand key, run.AllocateOutput(0, {1}));
    TFPLUG_ASSIGN_OR_RETURN(const Operand counter, run.AllocateOutput(1, {2}));
    if (run.context().num_outputs() > 2) {
      TFPLUG_ASSIGN_OR_RETURN(const Tensor algorithm,
                              run.context().AllocateOutput(2, {}));
      algorithm.scalar<int32_t>() = 1;
    }
    Operand to[] = {key, ir::Range(counter, 0, 0, 1),
                    ir::Range(counter, 0, 1, 2)};
    return run.launcher().Map(expression_, absl::MakeSpan(from),
                              absl::MakeSpan(to));
  }

 protected:
  // Returns the inputs of the expression, vectors of one element.
  virtual absl::StatusOr<std::vector<Operand>> GetInputs(OpRun& run) const {
    TFPLUG_ASSIGN_OR_RETURN(const PhiloxState state, GetSeed(run, 0));
    std::vector<Operand> inputs;
    for (const uint64_t word : {state.key, state.low, state.high}) {
      inputs.push_back(Uint64Scalar(word).AddDim(1, 0));
    }
    return inputs;
  }

  Expression expression_;
};

// The same with the seed in device memory, for the label kOnDeviceLabel: Keras
// computes the seeds of its layers from variables.
class DeviceKeyCounterKernel final : public KeyCounterKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType type,
                            construction.GetAttr<DataType>("Tseed"));
    constexpr DataType kUint64 = DataType::kUint64;
    TFPLUG_ASSIGN_OR_RETURN(
        expression_, MakeExpression({type, type}, {kUint64, kUint64, kUint64},
                                    [](Value seed_0, Value seed_1) {
                                      return ScrambleSeed(
                                          Cast(seed_0, DataType::kUint64),
                                          Cast(seed_1, DataType::kUint64));
                                    }));
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<std::vector<Operand>> GetInputs(OpRun& run) const override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand seed, GetView(run, 0));
    if (seed.rank == 1 && seed.dim(0) == 2) {
      return std::vector<Operand>{ir::Range(seed, 0, 0, 1),
                                  ir::Range(seed, 0, 1, 2)};
    }
    return absl::InvalidArgumentError("seed must have shape [2], not " +
                                      ShapeOf(seed).ToString());
  }
};

class RandomAlgorithmKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor algorithm,
                            run.context().AllocateOutput(0, {}));
    algorithm.scalar<int32_t>() = 1;  // Philox
    return absl::OkStatus();
  }
};

}  // namespace op_kernels_internal

inline void RandomOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  constexpr uint64_t kRandomInts = kernel::SetOf(
      DataType::kInt32, DataType::kInt64, DataType::kUint32, DataType::kUint64);
  const auto def = [](const char* op) {
    return KernelDef(op).HostMemory("shape");
  };
  for (const char* op :
       {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
    registrar.Add<RandomKernel>(def(op), "dtype", kFloatTypes);
  }
  registrar.Add<RandomKernel>(
      def("RandomUniformInt").HostMemory("minval").HostMemory("maxval"), "Tout",
      kIndexTypes);
  for (const std::string op :
       {"StatelessRandomUniform", "StatelessRandomNormal",
        "StatelessTruncatedNormal"}) {
    registrar.Add<RandomKernel>(def(op.c_str()).HostMemory("seed"), "dtype",
                                kFloatTypes);
    registrar.Add<RandomKernel>(def((op + "V2").c_str()).HostMemory("alg"),
                                "dtype", kFloatTypes);
  }
  registrar.Add<RandomKernel>(def("StatelessRandomUniformInt")
                                  .HostMemory("seed")
                                  .HostMemory("minval")
                                  .HostMemory("maxval"),
                              "dtype", kIndexTypes);
  registrar.Add<RandomKernel>(def("StatelessRandomUniformIntV2")
                                  .HostMemory("alg")
                                  .HostMemory("minval")
                                  .HostMemory("maxval"),
                              "dtype", kRandomInts);
  registrar.Add<RandomKernel>(
      def("StatelessRandomUniformFullInt").HostMemory("seed"), "dtype",
      kRandomInts);
  registrar.Add<RandomKernel>(
      def("StatelessRandomUniformFullIntV2").HostMemory("alg"), "dtype",
      kRandomInts);
  registrar.Add<KeyCounterKernel>(
      KernelDef("StatelessRandomGetKeyCounter").HostMemory("seed"));
  registrar.Add<DeviceKeyCounterKernel>(
      KernelDef("StatelessRandomGetKeyCounter").Label(kOnDeviceLabel), "Tseed",
      kIndexTypes);
  registrar.Add<KeyCounterKernel>(KernelDef("StatelessRandomGetKeyCounterAlg")
                                      .HostMemory("seed")
                                      .HostMemory("alg"));
  registrar.Add<RandomAlgorithmKernel>(
      KernelDef("StatelessRandomGetAlg").HostMemory("alg"));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_RANDOM_H_
