// SPDX-License-Identifier: Apache-2.0
#include "kernels/simd/code.h"

namespace cpu_sim::CPU_SIM_LEVEL {
namespace {

using Row = Eigen::Map<Eigen::Array<float, 1, Eigen::Dynamic>>;
using ConstRow = Eigen::Map<const Eigen::Array<float, 1, Eigen::Dynamic>>;

// NaN stays NaN.
void Activate(const Epilogue& epilogue, Row y) {
  const auto constant = [&](float value) {
    return Eigen::Array<float, 1, Eigen::Dynamic>::Constant(y.size(), value);
  };
  switch (epilogue.activation) {
    case Activation::kNone:
      return;
    case Activation::kRelu:
      y = (y < 0).select(constant(0), y);
      return;
    case Activation::kRelu6:
      y = (y < 0).select(constant(0), (y > 6).select(constant(6), y));
      return;
    case Activation::kLeakyRelu:
      y = (y < 0).select(y * epilogue.alpha, y);
      return;
    case Activation::kElu:
      y = (y < 0).select(y.expm1(), y);
      return;
    case Activation::kTanh:
      y = y.tanh();
      return;
    case Activation::kSigmoid:
      y = y.logistic();
      return;
  }
}

}  // namespace

void Apply(const Epilogue& epilogue, int64_t rows, int64_t depth,
           const float* x, float* y) {
  if (epilogue.shift == nullptr && epilogue.scale == nullptr &&
      epilogue.activation == Activation::kNone && x == y) {
    return;
  }
  for (int64_t r = 0; r < rows; ++r, x += depth, y += depth) {
    const ConstRow in(x, depth), scale(epilogue.scale, depth),
        shift(epilogue.shift, depth);
    Row out(y, depth);
    if (epilogue.scale == nullptr && epilogue.shift == nullptr) {
      if (x != y) out = in;
    } else if (epilogue.scale == nullptr) {
      out = in + shift;
    } else {
      out = in * scale + shift;
    }
    Activate(epilogue, out);
  }
}

}  // namespace cpu_sim::CPU_SIM_LEVEL
