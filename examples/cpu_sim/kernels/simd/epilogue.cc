// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "kernels/simd/code.h"

namespace cpu_sim::CPU_SIM_LEVEL {
namespace {

using Row = Eigen::Map<Eigen::Array<float, 1, Eigen::Dynamic>>;

// Comparisons with NaN are false: a NaN argument stays NaN, and a NaN limit has
// no effect.
inline float Clamped(float x, float limit) {
  return x < 0 ? 0 : x > limit ? limit : x;
}

// y[i] = f(i, x[i])
template <typename F>
void Map(int64_t size, const float* x, float* y, F f) {
  CPU_SIM_NO_OVERLAP
  for (int64_t i = 0; i < size; ++i) y[i] = f(i, x[i]);
}

// y = activate(x * scale + shift) by row; activate works on one element.
template <typename Activate>
void MapRows(const Epilogue& epilogue, int64_t rows, int64_t depth,
             const float* x, float* y, Activate activate) {
  const float *scale = epilogue.scale, *shift = epilogue.shift;
  if (scale == nullptr && shift == nullptr) {  // independent of rows
    Map(rows * depth, x, y, [=](int64_t, float v) { return activate(v); });
    return;
  }
  for (int64_t r = 0; r < rows; ++r, x += depth, y += depth) {
    if (scale == nullptr) {
      Map(depth, x, y,
          [=](int64_t c, float v) { return activate(v + shift[c]); });
    } else {
      Map(depth, x, y, [=](int64_t c, float v) {
        return activate(v * scale[c] + shift[c]);
      });
    }
  }
}

}  // namespace

void Apply(const Epilogue& epilogue, int64_t rows, int64_t depth,
           const float* x, float* y) {
  const auto each = [&](auto activate) {
    MapRows(epilogue, rows, depth, x, y, activate);
  };
  const auto same = [](float v) { return v; };
  constexpr float kNoLimit = std::numeric_limits<float>::quiet_NaN();
  // This is applied to the result of each(same).
  Row all(y, rows * depth);
  switch (epilogue.activation) {
    case ActivationKind::kNone:
      if (epilogue.scale == nullptr && epilogue.shift == nullptr && x == y) {
        return;
      }
      return each(same);
    case ActivationKind::kRelu:
      return each([](float v) { return Clamped(v, kNoLimit); });
    case ActivationKind::kRelu6:
      return each([](float v) { return Clamped(v, 6); });
    case ActivationKind::kLeakyRelu:
      return each(
          [alpha = epilogue.alpha](float v) { return v < 0 ? v * alpha : v; });
    case ActivationKind::kElu:
      each(same);
      all = (all < 0).select(all.expm1(), all);
      return;
    case ActivationKind::kTanh:
      each(same);
      all = all.tanh();
      return;
    case ActivationKind::kSigmoid:
      each(same);
      all = all.logistic();
      return;
  }
}

}  // namespace cpu_sim::CPU_SIM_LEVEL
