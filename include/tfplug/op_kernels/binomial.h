// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_BINOMIAL_H_
#define TFPLUG_OP_KERNELS_BINOMIAL_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "tfplug/ir/scalar_code.h"
#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/philox.h"
#include "tfplug/op_kernels/read_then_host_kernel.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// StatelessRandomBinomial, on the host: a sample takes as many random numbers as
// it happens to need. It gives the numbers of TensorFlow's CPU.
namespace tfplug {
namespace op_kernels_internal {

// Uniformly distributed numbers in [0, 1).
class UniformNumbers {
 public:
  UniformNumbers(PhiloxState state, uint64_t blocks) : state_(state) {
    state_.low += blocks;
    if (state_.low < blocks) ++state_.high;
  }
  // Returns the two numbers of a block, the second one first.
  double Next() {
    if (rest_ == 0) {
      words_ = PhiloxOf(state_);
      if (++state_.low == 0) ++state_.high;
      rest_ = 2;
    }
    --rest_;
    const uint64_t high = words_[2 * rest_] & 0xfffff;
    return static_cast<double>(high << 32 | words_[2 * rest_ + 1]) * 0x1p-52;
  }

 private:
  PhiloxState state_;
  std::array<uint32_t, 4> words_ = {};
  size_t rest_ = 0;
};

// Counts geometrically distributed numbers until their sum exceeds the count.
inline double BinomialByInversion(double count, double probability,
                                  UniformNumbers uniform) {
  double sum = 0;
  for (int found = 0;; ++found) {
    sum += std::ceil(std::log(uniform.Next()) / std::log1p(-probability));
    if (sum > count) return found;
  }
}

// Returns the error of Stirling's approximation of log(k!).
inline double StirlingTail(double k) {
  constexpr double kTails[] = {0.0810614667953272,  0.0413406959554092,
                               0.0276779256849983,  0.02079067210376509,
                               0.0166446911898211,  0.0138761288230707,
                               0.0118967099458917,  0.0104112652619720,
                               0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return kTails[static_cast<size_t>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Rejects numbers of a transformed distribution (Hormann, "The generation of
// binomial random variates", 1993, algorithm BTRS). Needs a mean of 10.
inline double BinomialByRejection(double count, double probability,
                                  UniformNumbers uniform) {
  const double deviation = std::sqrt(count * probability * (1 - probability));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * probability;
  const double center = count * probability + 0.5;
  const double limit = 0.92 - 4.2 / b;
  const double odds = probability / (1 - probability);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor((count + 1) * probability);
  while (true) {
    const double u = uniform.Next() - 0.5;
    const double v = uniform.Next();
    const double distance = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / distance + b) * u + center);
    if (distance >= 0.07 && v <= limit) return k;
    // NaN, too.
    if (!(k >= 0 && k <= count)) continue;
    const double bound =
        (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
        (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
        (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) +
        StirlingTail(mode) + StirlingTail(count - mode) - StirlingTail(k) -
        StirlingTail(count - k);
    if (std::log(v * alpha / (a / (distance * distance) + b)) <= bound) {
      return k;
    }
  }
}

class BinomialKernel final : public ReadThenHostKernel {
 public:
  bool IsInputOnHost(int i) const override { return i < 2; }
  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    if (in[1].shape != Shape{2}) {
      return absl::InvalidArgumentError("seed must have shape [2], not " +
                                        in[1].shape.ToString());
    }
    if (in[0].shape.rank() != 1) {
      return absl::InvalidArgumentError(
          "Input shape should be a vector, got shape: " +
          in[0].shape.ToString());
    }
    const std::vector<int64_t> sizes = IntegersOf(in[0]);
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, ToShape(sizes));
    Shape batch = in[2].shape;
    if (!BroadcastShape(in[3].shape, &batch).ok()) {
      return absl::InvalidArgumentError(
          "counts and probs must have compatible batch dimensions: " +
          in[2].shape.ToString() + " vs. " + in[3].shape.ToString());
    }
    bool ends_with_batch = batch.rank() <= shape.rank();
    for (int d = 1; ends_with_batch && d <= batch.rank(); ++d) {
      ends_with_batch =
          batch.dim(batch.rank() - d) == shape.dim(shape.rank() - d);
    }
    if (!ends_with_batch) {
      return absl::InvalidArgumentError(
          "Shape passed in must end with broadcasted shape.");
    }
    const std::vector<int64_t> seed = IntegersOf(in[1]);
    const PhiloxState state = ScrambleSeed(seed[0], seed[1]);
    const HostArray& y = outputs.Add(output_, shape);
    std::vector<double> samples(static_cast<size_t>(shape.num_elements()));
    ir::VisitStored(in[2].type, [&](auto from) {
      using T = typename decltype(from)::type;
      if constexpr (std::is_floating_point_v<ir::Computed<T>>) {
        Fill(in[2].as<T>(), in[3].as<T>(), in[2].shape, in[3].shape, batch,
             state, samples);
      }
    });
    ir::VisitStored(output_, [&](auto to) {
      using R = typename decltype(to)::type;
      for (size_t i = 0; i < samples.size(); ++i) {
        y.as<R>()[i] = ir::Convert<R>(samples[i]);
      }
    });
    return absl::OkStatus();
  }
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(output_, construction.GetAttr<DataType>("dtype"));
    return absl::OkStatus();
  }

 private:
  // Returns the index in `shape`, which broadcasts to the batch, of element `i`
  // of the batch.
  static int64_t IndexIn(const Shape& shape, const Shape& batch, int64_t i) {
    int64_t index = 0, stride = 1;
    for (int d = batch.rank(), own = shape.rank(); --own >= 0;) {
      --d;
      if (shape.dim(own) > 1) index += i % batch.dim(d) * stride;
      i /= batch.dim(d);
      stride *= shape.dim(own);
    }
    return index;
  }

  // Each element of the batch has its samples one after the other in the
  // generator's sequence.
  template <class T>
  static void Fill(const T* counts, const T* probabilities,
                   const Shape& count_shape, const Shape& probability_shape,
                   const Shape& batch, const PhiloxState& state,
                   std::vector<double>& y) {
    using C = ir::Computed<T>;
    const int64_t batches = batch.num_elements();
    const int64_t samples =
        batches == 0 ? 0 : static_cast<int64_t>(y.size()) / batches;
    for (int64_t b = 0; b < batches; ++b) {
      const auto count = static_cast<C>(counts[IndexIn(count_shape, batch, b)]);
      const auto p =
          static_cast<C>(probabilities[IndexIn(probability_shape, batch, b)]);
      for (int64_t s = 0; s < samples; ++s) {
        const auto index = static_cast<uint64_t>(b * samples + s);
        y[static_cast<size_t>(s * batches + b)] =
            Sample<T>(count, p, state, index);
      }
    }
  }
  template <class T, class C>
  static double Sample(C count, C p, const PhiloxState& state, uint64_t index) {
    const auto n = static_cast<double>(count);
    if (n <= 0 || p <= 0) return 0;
    if (p >= 1) return n;
    if (p != p) return std::numeric_limits<double>::quiet_NaN();
    const bool is_likely = !(p <= C(0.5));
    // In the type T, as is the mean.
    const C q = is_likely ? static_cast<C>(T(1 - p)) : p;
    const double found =
        static_cast<C>(T(count * q)) >= 10
            ? BinomialByRejection(n, static_cast<double>(q),
                                  UniformNumbers(state, 256 * index))
            : BinomialByInversion(n, static_cast<double>(q),
                                  UniformNumbers(state, 42 * index));
    return is_likely ? n - found : found;
  }

  DataType output_{};
};

}  // namespace op_kernels_internal

inline void BinomialOps(const Registrar& registrar) {
  const std::vector<DataType> results = registrar.Supported(
      (kFloatTypes | kIndexTypes) & ~kernel::SetOf(DataType::kBfloat16));
  if (results.empty()) return;
  registrar.Add<op_kernels_internal::BinomialKernel>(
      KernelDef("StatelessRandomBinomial")
          .TypeConstraint("dtype", results)
          .HostMemory("shape")
          .HostMemory("seed"),
      "T", kernel::SetOf(DataType::kFloat, DataType::kDouble, DataType::kHalf));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_BINOMIAL_H_
