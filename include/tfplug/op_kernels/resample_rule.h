// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_RESAMPLE_RULE_H_
#define TFPLUG_OP_KERNELS_RESAMPLE_RULE_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/kernel_construction.h"
#include "tfplug/op_kernels/resize_rule.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// The weights with which the elements of one dimension of an image become those
// of a resized one, computed in float, as in TensorFlow.
class ResampleRule {
 public:
  // The weight of an element of the original dimension.
  struct Tap {
    int64_t from;
    float weight;
  };
  using Taps = std::vector<std::vector<Tap>>;
  // The operands of ScaleAndTranslate.
  struct Move {
    float scale, translation;
  };

  absl::Status Init(KernelConstruction& construction) {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    if (construction.HasAttr("kernel_type")) {
      TFPLUG_ASSIGN_OR_RETURN(antialias_,
                              construction.GetAttr<bool>("antialias"));
      TFPLUG_ASSIGN_OR_RETURN(const auto name,
                              construction.GetAttr<std::string>("kernel_type"));
      kind_ = Kind::kFilter;
      for (const Filter& filter : kFilters) {
        if (name == filter.name) filter_ = &filter;
      }
      return filter_ != nullptr ? absl::OkStatus()
                                : absl::InvalidArgumentError(
                                      "Unrecognized kernel type: " + name);
    }
    kind_ = op == "ResizeArea" ? Kind::kArea : Kind::kCubic;
    return scale_.Init(construction);
  }

  // Returns the taps of each element of a dimension of size `out`.
  Taps TapsOf(int64_t in, int64_t out, Move move) const {
    Taps taps(static_cast<size_t>(out));
    for (int64_t i = 0; i < out; ++i) {
      std::vector<Tap>& to = taps[static_cast<size_t>(i)];
      switch (kind_) {
        case Kind::kArea:
          AddArea(i, in, scale_(in, out), to);
          break;
        case Kind::kCubic:
          AddCubic(i, in, scale_(in, out), to);
          break;
        default:
          AddFiltered(i, in, move, to);
      }
    }
    return taps;
  }

 private:
  enum class Kind : uint8_t { kArea, kCubic, kFilter };
  struct Filter {
    const char* name;
    float radius;
    float (*weight)(float distance);  // which is not negative
  };

  template <int kRadius>
  static float Lanczos(float x) {
    constexpr float kPi = 3.14159265359f;
    if (x > kRadius) return 0;
    if (x <= 1e-3f) return 1;
    return kRadius * std::sin(kPi * x) * std::sin(kPi * x / kRadius) /
           (kPi * kPi * x * x);
  }
  static float Gaussian(float x) {
    return x < 1.5f ? static_cast<float>(std::exp(-x * x / 0.5)) : 0;
  }
  static float Box(float x) { return x < 0.5f ? 1 : x == 0.5f ? 0.5f : 0; }
  static float Triangle(float x) { return x < 1 ? 1 - x : 0; }
  static float Keys(float x) {
    if (x >= 2) return 0;
    if (x >= 1) return ((-0.5f * x + 2.5f) * x - 4) * x + 2;
    return (1.5f * x - 2.5f) * x * x + 1;
  }
  static float Mitchell(float x) {
    if (x >= 2) return 0;
    if (x >= 1) {
      return ((-7.0f / 18 * x + 2) * x - 10.0f / 3) * x + 16.0f / 9;
    }
    return (7.0f / 6 * x - 2) * x * x + 8.0f / 9;
  }
  static constexpr Filter kFilters[] = {
      {"lanczos1", 1, &Lanczos<1>},
      {"lanczos3", 3, &Lanczos<3>},
      {"lanczos5", 5, &Lanczos<5>},
      {"gaussian", 1.5f, &Gaussian},
      {"box", 1, &Box},
      {"triangle", 1, &Triangle},
      {"keyscubic", 2, &Keys},
      {"mitchellcubic", 2, &Mitchell},
  };

  static int64_t Bound(int64_t i, int64_t size) {
    return std::clamp<int64_t>(i, 0, size - 1);
  }
  // Divides the weights by their sum, unless it is nearly 0.
  static bool Normalize(std::vector<Tap>& taps) {
    float sum = 0;
    for (const Tap& tap : taps) sum += tap.weight;
    if (!(std::fabs(sum) >= 1000 * std::numeric_limits<float>::min())) {
      return false;
    }
    const float factor = 1 / sum;
    for (Tap& tap : taps) tap.weight *= factor;
    return true;
  }

  // Adds the part of each element that [i, i + 1) * scale covers, divided by the
  // scale.
  static void AddArea(int64_t i, int64_t in, float scale,
                      std::vector<Tap>& taps) {
    if (scale == 0) return taps.push_back({0, 1});  // one aligned element
    const float begin = static_cast<float>(i) * scale;
    const float end = static_cast<float>(i + 1) * scale;
    const auto first = static_cast<int64_t>(std::floor(begin));
    const auto last = static_cast<int64_t>(std::ceil(end));
    for (int64_t k = first; k < last; ++k) {
      const auto low = static_cast<float>(k), high = static_cast<float>(k + 1);
      const float covered = low < begin ? (high > end ? scale : high - begin)
                                        : (high > end ? end - low : 1);
      taps.push_back({Bound(k, in), covered / scale});
    }
  }

  // Weights from a table of 1024 distances, of which TensorFlow uses the
  // nearest one.
  void AddCubic(int64_t i, int64_t in, float scale,
                std::vector<Tap>& taps) const {
    const float index = static_cast<float>(i);
    const float at = scale_.half_pixel_centers ? (index + 0.5f) * scale - 0.5f
                                               : index * scale;
    const auto floor = static_cast<int64_t>(std::floor(at));
    const auto part = static_cast<float>(
        std::lrint((at - static_cast<float>(floor)) * 1024) / 1024.0);
    const double a = scale_.half_pixel_centers ? -0.5 : -0.75;
    const auto near = [a](float x) {
      return static_cast<float>(((a + 2) * x - (a + 3)) * x * x + 1);
    };
    const auto far = [a](float x) {
      x += 1;
      return static_cast<float>(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
    };
    const float weights[] = {far(part), near(part), near(1 - part),
                             far(1 - part)};
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t from = Bound(floor - 1 + k, in);
      // Elements beyond the border count only for legacy scales.
      if (scale_.half_pixel_centers && from != floor - 1 + k) continue;
      taps.push_back({from, weights[k]});
    }
    if (scale_.half_pixel_centers) Normalize(taps);
  }

  void AddFiltered(int64_t i, int64_t in, Move move,
                   std::vector<Tap>& taps) const {
    const float scale = static_cast<float>(1.0 / move.scale);
    const float shift = -scale * move.translation;
    const float width = antialias_ ? std::max(scale, 1.0f) : 1.0f;
    const float at = (static_cast<float>(i) + 0.5f) * scale + shift;
    const auto size = static_cast<float>(in);
    // Nothing is sampled outside of the image, nor at NaN.
    if (!(at >= 0 && at <= size)) return;
    const float reach = filter_->radius * width;
    // In the image before it becomes an integer, which the reach may not be.
    const auto bound = [&](float x) {
      return static_cast<int64_t>(std::clamp(x, 0.0f, size - 1));
    };
    const int64_t first = bound(std::ceil(at - reach - 0.5f));
    const int64_t last = bound(std::floor(at + reach - 0.5f));
    const float factor = 1 / width;
    for (int64_t k = first; k <= last; ++k) {
      const float distance = static_cast<float>(k) + 0.5f - at;
      taps.push_back({k, filter_->weight(std::fabs(distance * factor))});
    }
    if (!Normalize(taps)) taps.clear();
  }

  Kind kind_ = Kind::kCubic;
  ResizeScale scale_;
  bool antialias_ = false;
  const Filter* filter_ = nullptr;
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_RESAMPLE_RULE_H_
