// SPDX-License-Identifier: Apache-2.0
#include "tfplug/primitives/nn.h"

#include <doctest/doctest.h>
#include <tfplug/primitives/backend.h>

#include <cmath>
#include <utility>
#include <vector>

#include "primitives/random_arrays.h"
#include "tfplug/primitives/epilogue.h"

// The composed primitives for neural networks against sums over all elements.
namespace tfplug::nn_test {
namespace {

constexpr DataType kFloat = DataType::kFloat;

Window RandomWindow(Random& random) {
  Window window{1 + Below(random, 6),
                0,
                1 + Below(random, 3),
                1 + Below(random, 3),
                1 + Below(random, 2),
                0,
                0};
  window.before = Below(random, 3);
  window.after = Below(random, 3);
  const auto reach = [&] { return (window.size - 1) * window.dilation + 1; };
  if (reach() > window.input + window.before + window.after) window.size = 1;
  window.output =
      (window.input + window.before + window.after - reach()) / window.stride +
      1;
  return window;
}

// Calls visit(output index, tap index, input index) for the taps inside the
// image.
template <class Visit>
void ForEachTap(const Windows& windows, Visit visit) {
  Dims sizes;
  for (const Window& window : windows) sizes.push_back(window.output);
  for (const Window& window : windows) sizes.push_back(window.size);
  const size_t n = windows.size();
  ForEachIndex(sizes, [&](const Dims& at) {
    Dims in;
    for (size_t i = 0; i < n; ++i) {
      const Window& window = windows[i];
      in.push_back(at[i] * window.stride + at[n + i] * window.dilation -
                   window.before);
      if (in[i] < 0 || in[i] >= window.input) return;
    }
    visit(Dims(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(n)),
          Dims(at.begin() + static_cast<std::ptrdiff_t>(n), at.end()), in);
  });
}

Dims Join(int64_t first, const Dims& middle, int64_t last) {
  Dims dims = {first};
  dims.insert(dims.end(), middle.begin(), middle.end());
  dims.push_back(last);
  return dims;
}
Dims Join(const Dims& first, int64_t b, int64_t c) {
  Dims dims = first;
  dims.push_back(b);
  dims.push_back(c);
  return dims;
}
Dims InputsOf(const Windows& windows) {
  Dims dims;
  for (const Window& window : windows) dims.push_back(window.input);
  return dims;
}
Dims OutputsOf(const Windows& windows) {
  Dims dims;
  for (const Window& window : windows) dims.push_back(window.output);
  return dims;
}
Dims SizesOf(const Windows& windows) {
  Dims dims;
  for (const Window& window : windows) dims.push_back(window.size);
  return dims;
}

// Small integers, whose sums are exact.
template <class T>
auto Integers(Random& random) {
  return [&random] { return T(static_cast<float>(Below(random, 7) - 3)); };
}

// Tests a convolution and its gradients, in slices of `max_bytes`.
template <class T>
void TestConvolution(Random& random, const Convolution& conv, int64_t batch,
                     int64_t depth, int64_t outputs, int64_t max_bytes) {
  testing::Reference reference;
  Launcher& launcher = reference.launcher;
  const Windows& windows = conv.windows;
  const int64_t channels = depth * conv.groups,
                per_group = outputs / conv.groups;
  const Dims image_dims = Join(batch, InputsOf(windows), channels),
             output_dims = Join(batch, OutputsOf(windows), outputs),
             filter_dims = Join(SizesOf(windows), depth, outputs);
  Array<T> image(random, image_dims), filter(random, filter_dims),
      output(random, output_dims);
  Array<T> dx(random, image_dims), df(random, filter_dims),
      dy(random, output_dims);
  image.Fill(Integers<T>(random));
  filter.Fill(Integers<T>(random));
  dy.Fill(Integers<T>(random));
  // Sums of floats in dense arrays.
  Array<float> y_sum(random, output_dims), dx_sum(random, image_dims),
      df_sum(random, filter_dims);
  ForEachTap(windows, [&](const Dims& o, const Dims& tap, const Dims& in) {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t k = 0; k < outputs; ++k) {
        for (int64_t c = 0; c < depth; ++c) {
          const Dims at_x = Join(b, in, k / per_group * depth + c),
                     at_f = Join(tap, c, k), at_y = Join(b, o, k);
          const float x = static_cast<float>(image.at(at_x)),
                      f = static_cast<float>(filter.at(at_f)),
                      d = static_cast<float>(dy.at(at_y));
          y_sum.at(at_y) += x * f;
          dx_sum.at(at_x) += d * f;
          df_sum.at(at_f) += d * x;
        }
      }
    }
  });
  REQUIRE(primitives_internal::ComposeConv(launcher, conv, image.view(),
                                           filter.view(), output.view(),
                                           max_bytes)
              .ok());
  ForEachIndex(output_dims, [&](const Dims& at) {
    CHECK(static_cast<float>(output.at(at)) == y_sum.at(at));
  });
  REQUIRE(primitives_internal::ComposeConvInputGradient(
              launcher, conv, filter.view(), dy.view(), dx.view(), max_bytes)
              .ok());
  ForEachIndex(image_dims, [&](const Dims& at) {
    CHECK(static_cast<float>(dx.at(at)) == dx_sum.at(at));
  });
  REQUIRE(primitives_internal::ComposeConvFilterGradient(
              launcher, conv, image.view(), dy.view(), df.view(), max_bytes)
              .ok());
  ForEachIndex(filter_dims, [&](const Dims& at) {
    CHECK(static_cast<float>(df.at(at)) == df_sum.at(at));
  });
}

TEST_CASE_TEMPLATE("Conv and its gradients", T, float, double, Half) {
  Random random(1);
  for (int run = 0; run < 60; ++run) {
    Convolution conv;
    const int spatial = run % 3 == 0 ? 3 : run % 3 == 1 ? 2 : 1;
    for (int i = 0; i < spatial; ++i) {
      conv.windows.push_back(RandomWindow(random));
    }
    conv.groups = run % 4 == 0 ? 1 + Below(random, 3) : 1;
    const bool is_depthwise = run % 5 == 0;
    if (is_depthwise) conv.groups = 1 + Below(random, 4);
    TestConvolution<T>(random, conv, 1 + Below(random, 3),
                       is_depthwise ? 1 : 1 + Below(random, 3),
                       conv.groups * (1 + Below(random, 3)),
                       int64_t{1} << Below(random, 12));
  }
}

TEST_CASE("Products with an epilogue") {
  Random random(6);
  for (int run = 0; run < 56; ++run) {
    testing::Reference reference;
    const int64_t rows = 1 + Below(random, 4), columns = 1 + Below(random, 5);
    Array<float> a(random, {rows, 3}), b(random, {3, columns}),
        c(random, {rows, columns});
    const auto integers = Integers<float>(random);
    for (auto* array : {&a, &b}) array->Fill(integers);
    std::vector<float> scale(static_cast<size_t>(columns)), shift = scale;
    std::generate(scale.begin(), scale.end(), integers);
    std::generate(shift.begin(), shift.end(), integers);
    const Operand scales = Operand::Dense(scale.data(), kFloat, {columns});
    const Operand shifts = Operand::Dense(shift.data(), kFloat, {columns});
    const auto activation = static_cast<ActivationKind>(run % 7);
    const bool has_scale = run % 2 == 0, has_shift = run % 4 < 2;
    const Expression expression =
        *MakeEpilogue(kFloat, has_scale ? kFloat : DataType(0),
                      has_shift ? kFloat : DataType(0), activation,
                      /*alpha=*/0.25);
    std::vector<Operand> inputs;
    if (has_scale) inputs.push_back(RepeatVector(scales, c.view()));
    if (has_shift) inputs.push_back(RepeatVector(shifts, c.view()));
    const auto want = [&](int64_t i, int64_t j) {
      float sum = 0;
      for (int64_t k = 0; k < 3; ++k) sum += a.at({i, k}) * b.at({k, j});
      if (has_scale) sum *= scale[size_t(j)];
      if (has_shift) sum += shift[size_t(j)];
      const float positive = std::max(sum, 0.0f);
      switch (activation) {
        case ActivationKind::kRelu:
          return positive;
        case ActivationKind::kRelu6:
          return std::min(positive, 6.0f);
        case ActivationKind::kLeakyRelu:
          return sum < 0 ? sum / 4 : sum;
        case ActivationKind::kElu:
          return sum < 0 ? std::expm1(sum) : sum;
        case ActivationKind::kTanh:
          return std::tanh(sum);
        case ActivationKind::kSigmoid:
          return 1 / (1 + std::exp(-sum));
        default:
          return sum;
      }
    };
    const auto check = [&] {
      ForEachIndex({rows, columns}, [&](const Dims& at) {
        CHECK(c.at(at) == doctest::Approx(want(at[0], at[1])));
      });
    };
    Launcher& launcher = reference.launcher;
    REQUIRE(
        launcher.MatMulMap(a.view(), b.view(), expression, inputs, {c.view()})
            .ok());
    check();
    const auto found = FindEpilogue(expression, inputs);
    REQUIRE(found.has_value());
    CHECK(found->activation == activation);
    if (activation == ActivationKind::kLeakyRelu) CHECK(found->alpha == 0.25);
    REQUIRE(found->scale.has_value() == has_scale);
    REQUIRE(found->shift.has_value() == has_shift);
    if (has_scale) CHECK(found->scale->data == scale.data());
    if (has_shift) {
      CHECK(found->shift->data == shift.data());
      CHECK(found->shift->rank == 1);
      CHECK(found->shift->dim(0) == columns);
    }
    // The same as a convolution of one-dimensional images.
    c.Fill([] { return 0.0f; });
    const auto image = [](Operand view) { return ir::WithDim(view, 0, 1); };
    const Convolution conv{{{rows, rows, 1, 1, 1, 0, 0}}, 1};
    for (Operand& input : inputs) input = image(input);
    REQUIRE(launcher
                .ConvMap(conv, image(a.view()), image(b.view()), expression,
                         inputs, {image(c.view())})
                .ok());
    check();
  }
}

TEST_CASE("An expression that is no epilogue") {
  Random random(7);
  std::vector<float> vector(3);
  std::vector<int32_t> integers(3);
  const Array<float> matrix(random, {2, 3});
  const auto is_found = [](DataType input, DataType output, auto f,
                           const Operand& operand) {
    const auto expression =
        MakeExpression({DataType::kFloat, input}, {output}, f);
    REQUIRE(expression.ok());
    return FindEpilogue(*expression, {operand}).has_value();
  };
  const Operand row =
      RepeatVector(Operand::Dense(vector.data(), kFloat, {3}), matrix.view());
  const auto add = [](Value x, Value y) { return x + y; };
  CHECK(is_found(kFloat, kFloat, add, row));
  // The operand is no vector.
  CHECK_FALSE(is_found(kFloat, kFloat, add, matrix.view()));
  // The output has another type.
  CHECK_FALSE(is_found(kFloat, DataType::kHalf, add, row));
  // A sum that is rounded, one with an integer, and other formulas.
  CHECK_FALSE(is_found(
      kFloat, kFloat,
      [](Value x, Value y) { return Max(Cast(x + y, DataType::kHalf), 0); },
      row));
  CHECK_FALSE(is_found(
      kFloat, kFloat,
      [](Value x, Value y) { return x + Cast(y, DataType::kHalf); }, row));
  CHECK_FALSE(is_found(
      DataType::kInt32, kFloat,
      [](Value x, Value y) { return x + Cast(y, x.type()); },
      RepeatVector(Operand::Dense(integers.data(), DataType::kInt32, {3}),
                   matrix.view())));
  CHECK_FALSE(is_found(
      kFloat, kFloat, [](Value x, Value y) { return x - y; }, row));
  CHECK_FALSE(is_found(
      kFloat, kFloat, [](Value x, Value y) { return Max(x + y, 1); }, row));
  CHECK_FALSE(is_found(
      kFloat, kFloat,
      [](Value x, Value y) { return Select(x + y > 0, x, (x + y) * 0.5); },
      row));
  CHECK_FALSE(is_found(
      kFloat, kFloat, [](Value x, Value y) { return (x + y) * y; }, row));
  CHECK_FALSE(is_found(
      kFloat, kFloat, [](Value x, Value y) { return Select(x < y, x, y); },
      row));
}

TEST_CASE("The memory for windows is bounded") {
  struct CountingScratch : HostScratch {
    absl::StatusOr<void*> Allocate(int64_t bytes) override {
      largest = std::max(largest, bytes);
      total += bytes;
      return HostScratch::Allocate(bytes);
    }
    int64_t largest = 0, total = 0;
  };
  Random random(2);
  testing::Reference reference;
  const Window window{12, 10, 3, 1, 1, 0, 0};
  const Convolution conv{{window, window}, 1};
  Array<float> image(random, {8, 12, 12, 4}), filter(random, {3, 3, 4, 5}),
      output(random, {8, 10, 10, 5});
  // All windows are 8 * 10 * 10 * 3 * 3 * 4 floats.
  constexpr int64_t kAll = 8 * 10 * 10 * 3 * 3 * 4 * 4;
  for (int64_t max_bytes : {kAll, kAll / 8, kAll / 80, kAll / 800}) {
    CountingScratch scratch;
    Launcher launcher =
        MakeLauncher(reference.backend, reference.stream, scratch);
    REQUIRE(primitives_internal::ComposeConv(launcher, conv, image.view(),
                                             filter.view(), output.view(),
                                             max_bytes)
                .ok());
    // Strided filters are copied, too.
    CHECK(scratch.total <= max_bytes + 3 * 3 * 4 * 5 * 4);
    CHECK(scratch.largest >= max_bytes / 2);
  }
}

TEST_CASE_TEMPLATE("Pool and its gradient", T, float, double) {
  Random random(3);
  for (int run = 0; run < 80; ++run) {
    testing::Reference reference;
    Pooling pooling;
    pooling.kind = run % 2 == 0 ? PoolKind::kMax : PoolKind::kAverage;
    for (int i = 0; i < 1 + run % 3; ++i) {
      Window window = RandomWindow(random);
      // Each window has an element inside.
      window.dilation = 1;
      window.before = std::min(window.before, window.size - 1);
      window.output = (window.input + window.before - 1) / window.stride + 1;
      const int64_t end =
          (window.output - 1) * window.stride + window.size - window.before;
      window.after = std::max<int64_t>(0, end - window.input);
      pooling.windows.push_back(window);
    }
    const Windows& windows = pooling.windows;
    const int64_t batch = 1 + Below(random, 2), depth = 1 + Below(random, 3);
    const Dims image_dims = Join(batch, InputsOf(windows), depth),
               output_dims = Join(batch, OutputsOf(windows), depth);
    Array<T> x(random, image_dims), y(random, output_dims),
        dx(random, image_dims), dy(random, output_dims);
    x.Fill(Integers<T>(random));
    dy.Fill([&] { return T(1 + Below(random, 3)) * 5040; });
    REQUIRE(reference.launcher.Pool(pooling, x.view(), y.view()).ok());
    REQUIRE(reference.launcher
                .PoolGradient(pooling, x.view(), y.view(), dy.view(), dx.view())
                .ok());
    const bool is_max = pooling.kind == PoolKind::kMax;
    Array<T> sum(random, output_dims), count(random, output_dims),
        want(random, image_dims), is_taken(random, output_dims);
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t c = 0; c < depth; ++c) {
        ForEachTap(windows, [&](const Dims& o, const Dims&, const Dims& in) {
          T& total = sum.at(Join(b, o, c));
          T& n = count.at(Join(b, o, c));
          const T value = x.at(Join(b, in, c));
          total =
              is_max ? n == 0 ? value : std::max(total, value) : total + value;
          n += 1;
        });
        ForEachTap(windows, [&](const Dims& o, const Dims&, const Dims& in) {
          const Dims at = Join(b, o, c), from = Join(b, in, c);
          if (!is_max) {
            want.at(from) += dy.at(at) / count.at(at);
          } else if (x.at(from) == sum.at(at) && is_taken.at(at) == 0) {
            want.at(from) += dy.at(at);
            is_taken.at(at) = 1;
          }
        });
      }
    }
    ForEachIndex(output_dims, [&](const Dims& at) {
      CHECK(y.at(at) ==
            doctest::Approx(is_max ? sum.at(at) : sum.at(at) / count.at(at)));
    });
    ForEachIndex(image_dims, [&](const Dims& at) {
      CHECK(dx.at(at) == doctest::Approx(want.at(at)));
    });
  }
}

}  // namespace
}  // namespace tfplug::nn_test
