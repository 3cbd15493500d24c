// SPDX-License-Identifier: Apache-2.0
#include "kernels/simd.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "levels.h"

// Compares each SIMD level that this machine supports with loops in double
// precision that follow the comments in simd.h.

namespace cpu_sim::simd_test {
namespace {

TEST_CASE("a limit lowers the level; the default is the best one") {
  CHECK(std::string(SimdUpTo("baseline").level) == "baseline");
  CHECK(std::string(SimdUpTo("v3").level) <= "v3");
  CHECK(std::string(SimdUpTo("v9").level) == Simd().level);
}

TEST_CASE("gemm") {
  ForEachLevel([](const SimdCode& code) {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                                  {3, 4, 5},
                                  {70, 65, 33},
                                  {5, 1, 9},
                                  {1, 40, 7},
                                  {4, 3, 0},
                                  {130, 17, 300},
                                  {110, 150, 300},
                                  {7, 64, 130},
                                  {40, 3, 6}}) {
      for (int transposes = 0; transposes < 4; ++transposes) {
        const bool ta = (transposes & 1) != 0, tb = (transposes & 2) != 0;
        // Rows with a stride larger than their length.
        const int64_t as = (ta ? m : k) + 2, bs = (tb ? k : n) + 3, cs = n + 1;
        const Floats a = Draw((ta ? k : m) * as), b = Draw((tb ? n : k) * bs);
        Output assigned(m * cs), added(m * cs);
        code.gemm(m, n, k, {a.data(), as, ta}, {b.data(), bs, tb},
                  assigned.data(), cs, GemmMode::kAssign);
        code.gemm(m, n, k, {a.data(), as, ta}, {b.data(), bs, tb}, added.data(),
                  cs, GemmMode::kAdd);
        Doubles product(static_cast<size_t>(m * cs), 77), sum = product;
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            double dot = 0;
            for (int64_t p = 0; p < k; ++p) {
              dot += static_cast<double>(a[ta ? p * as + i : i * as + p]) *
                     b[tb ? j * bs + p : p * bs + j];
            }
            product[i * cs + j] = dot;
            sum[i * cs + j] += dot;
          }
        }
        assigned.Check(product);
        added.Check(sum);
      }
    }
  });
}

// Calls use(index in x, index in filter, index in y) for each product of a
// convolution.
template <typename Use>
void ForEachProduct(const Conv2D& conv, Use use) {
  const Window &rows = conv.rows, &cols = conv.cols;
  const int64_t in = conv.in_depth / conv.groups;
  const int64_t out = conv.out_depth / conv.groups;
  for (int64_t n = 0; n < conv.batch; ++n) {
    for (int64_t i = 0; i < rows.out * cols.out; ++i) {
      for (int64_t tap = 0; tap < rows.size * cols.size; ++tap) {
        const int64_t row = i / cols.out * rows.stride - rows.pad +
                            tap / cols.size * rows.dilation;
        const int64_t col = i % cols.out * cols.stride - cols.pad +
                            tap % cols.size * cols.dilation;
        if (row < 0 || row >= rows.in || col < 0 || col >= cols.in) continue;
        for (int64_t o = 0; o < conv.out_depth; ++o) {
          for (int64_t c = 0; c < in; ++c) {
            use(((n * rows.in + row) * cols.in + col) * conv.in_depth +
                    o / out * in + c,
                (tap * in + c) * conv.out_depth + o,
                (n * rows.out * cols.out + i) * conv.out_depth + o);
          }
        }
      }
    }
  }
}

struct Convolution {
  explicit Convolution(const Conv2D& conv)
      : x(Draw(conv.batch * conv.rows.in * conv.cols.in * conv.in_depth)),
        filter(Draw(conv.rows.size * conv.cols.size * conv.in_depth /
                    conv.groups * conv.out_depth)),
        dy(Draw(conv.batch * conv.rows.out * conv.cols.out * conv.out_depth)),
        want_y(dy.size()),
        want_dx(x.size()),
        want_dfilter(filter.size()) {
    ForEachProduct(conv, [&](int64_t i, int64_t f, int64_t o) {
      want_y[o] += static_cast<double>(x[i]) * filter[f];
      want_dx[i] += static_cast<double>(dy[o]) * filter[f];
      want_dfilter[f] += static_cast<double>(x[i]) * dy[o];
    });
  }

  Floats x, filter, dy;
  Doubles want_y, want_dx, want_dfilter;
};

constexpr Conv2D kConvolutions[] = {
    {2, {7, 7, 3, 1, 1, 1}, {6, 6, 3, 1, 1, 1}, 3, 20, 1, 10},
    {1, {9, 5, 3, 2, 1, 1}, {8, 3, 2, 3, 1, 0}, 4, 6, 2, 100},
    {2, {5, 5, 1, 1, 1, 0}, {6, 6, 1, 1, 1, 0}, 17, 33, 1, 7},
    {1, {11, 7, 3, 1, 2, 0}, {11, 11, 3, 1, 2, 2}, 2, 5, 1, 50},
    {1, {2, 2, 5, 1, 1, 2}, {2, 2, 5, 1, 1, 2}, 3, 2, 1, 4},
    {1, {3, 9, 3, 1, 1, 4}, {3, 7, 3, 1, 1, 3}, 2, 2, 1, 63},
};

TEST_CASE("conv2d, in tiles of any size") {
  ForEachLevel([](const SimdCode& code) {
    for (const Conv2D& conv : kConvolutions) {
      const Convolution test(conv);
      const int64_t patch = conv.rows.size * conv.cols.size * conv.in_depth;
      Floats work(static_cast<size_t>(conv.tile * patch / conv.groups));
      Output y(test.want_y), dx(test.want_dx), df(test.want_dfilter);
      code.conv2d.forward(conv, Epilogue(), test.x.data(), test.filter.data(),
                          y.data(), work.data());
      code.conv2d.input_gradient(conv, test.filter.data(), test.dy.data(),
                                 dx.data(), work.data());
      code.conv2d.filter_gradient(conv, test.x.data(), test.dy.data(),
                                  df.data(), work.data());
      y.Check(test.want_y);
      dx.Check(test.want_dx);
      df.Check(test.want_dfilter);
    }
  });
}

constexpr Conv2D kDirect[] = {
    {2, {7, 7, 3, 1, 1, 1}, {9, 9, 3, 1, 1, 1}, 3, 20, 1, 0},
    {1, {6, 6, 3, 1, 1, 1}, {20, 20, 3, 1, 1, 1}, 16, 119, 1, 0},
    {1, {8, 4, 2, 2, 1, 0}, {9, 5, 3, 2, 1, 1}, 5, 33, 1, 0},
    {300, {1, 1, 1, 1, 1, 0}, {1, 1, 1, 1, 1, 0}, 17, 10, 1, 0},
    {2, {9, 7, 3, 1, 1, 0}, {8, 7, 2, 1, 1, 0}, 4, 6, 1, 0},
    {1, {3, 9, 3, 1, 1, 4}, {3, 7, 3, 1, 1, 3}, 2, 2, 1, 0},
    {1, {9, 4, 2, 1, 1, -3}, {9, 3, 3, 2, 1, -1}, 3, 7, 1, 0},
    {1, {1, 1, 1, 1, 1, 0}, {600, 600, 5, 1, 1, 2}, 7, 70, 1, 0},
    {1, {5, 5, 3, 1, 1, 1}, {7, 7, 3, 1, 1, 1}, 24, 61, 1, 0},
};

TEST_CASE("conv2d without patches") {
  ForEachLevel([](const SimdCode& code) {
    for (const Conv2D& conv : kDirect) {
      const Convolution test(conv);
      // An image with zeros around it, in either direction, and the filter.
      const auto extent = [](const Window& w) {
        return std::max((w.out - 1) * w.stride + w.size, w.in + w.size - 1);
      };
      Output work(static_cast<int64_t>(test.filter.size()) +
                  extent(conv.rows) * extent(conv.cols) *
                      std::max(conv.in_depth, conv.out_depth));
      Output y(test.want_y), dx(test.want_dx), df(test.want_dfilter);
      code.direct.forward(conv, Epilogue(), test.x.data(), test.filter.data(),
                          y.data(), work.data());
      code.direct.filter_gradient(conv, test.x.data(), test.dy.data(),
                                  df.data(), work.data());
      y.Check(test.want_y);
      df.Check(test.want_dfilter);
      if (conv.rows.stride == 1 && conv.cols.stride == 1) {
        code.direct.input_gradient(conv, test.filter.data(), test.dy.data(),
                                   dx.data(), work.data());
        dx.Check(test.want_dx);
      }
      for (size_t i = work.values.size() - 16; i < work.values.size(); ++i) {
        CHECK(work.values[i] == 77);
      }
    }
  });
}

constexpr Conv2D kDepthwise[] = {
    {2, {7, 7, 3, 1, 1, 1}, {9, 9, 3, 1, 1, 1}, 37, 37, 37, 0},
    {1, {9, 5, 3, 2, 1, 1}, {8, 4, 3, 2, 1, 0}, 20, 20, 20, 0},
    {1, {7, 7, 3, 1, 1, 1}, {6, 6, 3, 1, 1, 1}, 3, 12, 3, 0},
    {1, {11, 7, 3, 1, 2, 0}, {13, 13, 5, 1, 2, 4}, 16, 16, 16, 0},
    {1, {2, 2, 5, 1, 1, 2}, {1, 1, 5, 1, 1, 2}, 5, 5, 5, 0},
    {1, {5, 5, 3, 1, 1, 1}, {7, 7, 3, 1, 1, 1}, 29, 29, 29, 0},
};

TEST_CASE("depthwise convolution") {
  ForEachLevel([](const SimdCode& code) {
    for (const Conv2D& conv : kDepthwise) {
      const Convolution test(conv);
      Output y(test.want_y), dx(test.want_dx), df(test.want_dfilter);
      code.depthwise.forward(conv, Epilogue(), test.x.data(),
                             test.filter.data(), y.data());
      code.depthwise.input_gradient(conv, test.filter.data(), test.dy.data(),
                                    dx.data());
      code.depthwise.filter_gradient(conv, test.x.data(), test.dy.data(),
                                     df.data());
      y.Check(test.want_y);
      dx.Check(test.want_dx);
      df.Check(test.want_dfilter);
    }
  });
}

TEST_CASE("an epilogue is applied to each tile once") {
  const Conv2D conv = kConvolutions[0];
  const Convolution test(conv);
  const Floats scale = Draw(conv.out_depth), shift = Draw(conv.out_depth);
  const std::pair<ActivationKind, double (*)(double)> activations[] = {
      {ActivationKind::kNone, [](double v) { return v; }},
      {ActivationKind::kRelu, [](double v) { return std::max(v, 0.0); }},
      {ActivationKind::kRelu6,
       [](double v) { return std::min(std::max(v, 0.0), 6.0); }},
      {ActivationKind::kLeakyRelu, [](double v) { return v < 0 ? v / 4 : v; }},
      {ActivationKind::kElu,
       [](double v) { return v < 0 ? std::expm1(v) : v; }},
      {ActivationKind::kTanh, [](double v) { return std::tanh(v); }},
      {ActivationKind::kSigmoid,
       [](double v) { return 1 / (1 + std::exp(-v)); }},
  };
  ForEachLevel([&](const SimdCode& code) {
    for (const auto& [activation, function] : activations) {
      Floats work(static_cast<size_t>(conv.tile * 27));
      Output y(test.want_y);
      code.conv2d.forward(conv, {scale.data(), shift.data(), activation, 0.25f},
                          test.x.data(), test.filter.data(), y.data(),
                          work.data());
      Doubles want = test.want_y;
      for (size_t i = 0; i < want.size(); ++i) {
        const size_t c = i % scale.size();
        want[i] = function(want[i] * scale[c] + shift[c]);
      }
      y.Check(want);
    }
  });
}

}  // namespace
}  // namespace cpu_sim::simd_test
