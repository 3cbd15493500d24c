// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_RANDOM_GAMMA_H_
#define TFPLUG_OP_KERNELS_RANDOM_GAMMA_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "tfplug/ir/scalar_code.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/philox.h"
#include "tfplug/op_kernels/read_then_host_kernel.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace op_kernels_internal {

// Random numbers of double on the host: TensorFlow's distributions, which take
// them from the end of each pair.
class GammaNumbers {
 public:
  explicit GammaNumbers(const PhiloxState& state) : state_(state) {}

  double Uniform() {
    if (uniforms_left_ == 0) {
      const std::array<uint32_t, 4> w = Next();
      uniforms_ = {ToDouble(w[0], w[1]), ToDouble(w[2], w[3])};
      uniforms_left_ = 2;
    }
    return uniforms_[--uniforms_left_];
  }
  double Normal() {
    if (normals_left_ == 0) {
      const std::array<uint32_t, 4> w = Next();
      const double radius =
          std::sqrt(-2 * std::log(std::max(ToDouble(w[0], w[1]), 1.0e-7)));
      const double angle = ToDouble(w[2], w[3]) * 6.283185307179586477;
      normals_ = {std::sin(angle) * radius, std::cos(angle) * radius};
      normals_left_ = 2;
    }
    return normals_[--normals_left_];
  }

 private:
  static double ToDouble(uint32_t high, uint32_t low) {
    const uint64_t bits = uint64_t{high & 0xfffff} << 32 | low;
    return static_cast<double>(bits) * 0x1p-52;
  }
  std::array<uint32_t, 4> Next() {
    const std::array<uint32_t, 4> words = PhiloxOf(state_);
    if (++state_.low == 0) ++state_.high;
    return words;
  }

  PhiloxState state_;
  std::array<double, 2> uniforms_ = {}, normals_ = {};
  size_t uniforms_left_ = 0, normals_left_ = 0;
};

// Returns a number of the gamma distribution, by rejection (Marsaglia and
// Tsang, "A simple method for generating gamma variables", 2000).
inline double GammaOf(double alpha, GammaNumbers numbers) {
  if (alpha == 1) return -std::log1p(-numbers.Uniform());
  const bool is_small = alpha < 1;
  const double d = alpha + (is_small ? 2.0 / 3 : -1.0 / 3);
  const double c = 1.0 / 3 / std::sqrt(d);
  for (;;) {
    const double x = numbers.Normal();
    double v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = numbers.Uniform();
    if (u < 1 - 0.0331 * (x * x) * (x * x) ||
        std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) {
      return is_small ? d * v * std::pow(numbers.Uniform(), 1 / alpha) : d * v;
    }
  }
}

// StatelessRandomGammaV2, with a seed, and -V3, with a key and a counter. How
// many random numbers a result takes is known only when it is accepted, so the
// host computes them.
class RandomGammaKernel final : public ReadThenHostKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    takes_key_ = op == "StatelessRandomGammaV3";
    return absl::OkStatus();
  }
  bool IsInputOnHost(int i) const override {
    return i == 0 || i == (takes_key_ ? 3 : 1);
  }

  absl::Status Compute(absl::Span<const HostArray> inputs,
                       HostOutputs& outputs) const override {
    const auto at = [](const HostArray& array, int64_t i) {
      return array.type == DataType::kInt32 ? array.as<int32_t>()[i]
                                            : array.as<int64_t>()[i];
    };
    PhiloxState state;
    if (takes_key_) {
      const int64_t algorithm = at(inputs[3], 0);
      if (inputs[1].shape != Shape{1} || inputs[2].shape.rank() != 1 ||
          inputs[2].shape.dim(0) < 2 || inputs[3].shape.rank() != 0 ||
          (algorithm != 1 && algorithm != 3)) {
        return absl::InvalidArgumentError(
            "key must have shape [1], counter shape [2], and alg must be "
            "Philox, not " +
            inputs[1].shape.ToString() + ", " + inputs[2].shape.ToString() +
            " and " + std::to_string(algorithm));
      }
      state = {inputs[1].as<uint64_t>()[0], inputs[2].as<uint64_t>()[0],
               inputs[2].as<uint64_t>()[1]};
    } else {
      if (inputs[1].shape != Shape{2}) {
        return absl::InvalidArgumentError("seed must have shape [2], not " +
                                          inputs[1].shape.ToString());
      }
      state = ScrambleSeed(at(inputs[1], 0), at(inputs[1], 1));
    }
    const HostArray& alpha = inputs.back();
    if (inputs[0].shape.rank() != 1) {
      return absl::InvalidArgumentError("shape must be a vector, not " +
                                        inputs[0].shape.ToString());
    }
    Ints sizes(static_cast<size_t>(inputs[0].shape.dim(0)));
    for (size_t i = 0; i < sizes.size(); ++i) {
      sizes[i] = at(inputs[0], static_cast<int64_t>(i));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, ToShape(sizes));
    const int outer = shape.rank() - alpha.shape.rank();
    if (outer < 0 || Shape(shape.dims().subspan(static_cast<size_t>(outer))) !=
                         alpha.shape) {
      return absl::InvalidArgumentError(
          "Shape passed in must end with broadcasted shape of alpha: " +
          shape.ToString() + " and " + alpha.shape.ToString());
    }
    const HostArray& y = outputs.Add(alpha.type, shape);
    const int64_t alphas = alpha.shape.num_elements();
    const int64_t samples = alphas == 0 ? 0 : shape.num_elements() / alphas;
    ir::VisitStored(alpha.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t a = 0; a < alphas; ++a) {
        const auto value = static_cast<double>(alpha.as<T>()[a]);
        for (int64_t i = 0; i < samples; ++i) {
          // TensorFlow reserves as many random numbers for each result.
          PhiloxState own = state;
          const auto skip = static_cast<uint64_t>(256 * (a * samples + i));
          own.low += skip;
          if (own.low < skip) ++own.high;
          y.as<T>()[i * alphas + a] =
              ir::Convert<T>(GammaOf(value, GammaNumbers(own)));
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  bool takes_key_ = false;
};

}  // namespace op_kernels_internal

inline void RandomGammaOps(const Registrar& registrar) {
  using op_kernels_internal::RandomGammaKernel;
  constexpr uint64_t kTypes =
      kernel::SetOf(DataType::kFloat, DataType::kHalf, DataType::kDouble);
  registrar.Add<RandomGammaKernel>(KernelDef("StatelessRandomGammaV2")
                                       .HostMemory("shape")
                                       .HostMemory("seed"),
                                   "dtype", kTypes);
  registrar.Add<RandomGammaKernel>(
      KernelDef("StatelessRandomGammaV3").HostMemory("shape").HostMemory("alg"),
      "dtype", kTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_RANDOM_GAMMA_H_
