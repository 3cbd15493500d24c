// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <type_traits>
#include <vector>

#include "primitives/random_arrays.h"
#include "tfplug/primitives/nn.h"

// The composed normalization, softmax and cross-entropy against sums over all
// elements.
namespace tfplug::norm_test {
namespace {

TEST_CASE("Batch normalization") {
  Random random(4);
  const auto number = [&] {
    return static_cast<float>(Below(random, 100)) / 20 - 2;
  };
  for (int run = 0; run < 40; ++run) {
    testing::Reference reference;
    const int64_t depth = 1 + Below(random, 4);
    const Dims dims = {1 + Below(random, 3), 1 + Below(random, 4),
                       1 + Below(random, 4), depth};
    const double n = static_cast<double>(dims[0] * dims[1] * dims[2]);
    Array<float> x(random, dims), y(random, dims), dy(random, dims),
        dx(random, dims);
    Array<float> scale(random, {depth}), offset(random, {depth}),
        old_mean(random, {depth}), old_variance(random, {depth}),
        new_mean(random, {depth}), new_variance(random, {depth}),
        mean(random, {depth}), variance(random, {depth}),
        dscale(random, {depth}), doffset(random, {depth});
    for (auto* array : {&x, &dy, &scale, &offset, &old_mean, &old_variance}) {
      array->Fill(number);
    }
    const double factor = run % 3 == 0 ? 1 : 0.25;
    if (factor == 1) old_mean.Fill([] { return INFINITY; });
    BatchNormalization norm{0.5, true, factor};
    REQUIRE(
        reference.launcher
            .BatchNormTraining(
                norm, {x.view(), scale.view(), offset.view(), old_mean.view(),
                       old_variance.view(), y.view(), new_mean.view(),
                       new_variance.view(), mean.view(), variance.view()})
            .ok());
    REQUIRE(reference.launcher
                .BatchNormGradient(
                    norm,
                    {dy.view(), x.view(), scale.view(), mean.view(),
                     variance.view(), dx.view(), dscale.view(), doffset.view()})
                .ok());
    for (int64_t c = 0; c < depth; ++c) {
      double sum = 0, squares = 0, dy_sum = 0, dy_x = 0;
      const auto each = [&](auto visit) {
        ForEachIndex(dims, [&](const Dims& at) {
          if (at[3] == c) visit(at, double{x.at(at)}, double{dy.at(at)});
        });
      };
      each([&](const Dims&, double v, double) { sum += v; });
      each([&](const Dims&, double v, double) {
        squares += (v - sum / n) * (v - sum / n);
      });
      const double deviation = std::sqrt(squares / n + 0.5);
      each([&](const Dims&, double v, double d) {
        dy_sum += d;
        dy_x += d * (v - sum / n) / deviation;
      });
      const auto near = [](double v) {
        return doctest::Approx(v).epsilon(1e-4).scale(1);
      };
      CHECK(mean.at({c}) == near(sum / n));
      CHECK(variance.at({c}) == near(squares / n));
      const double population = n > 1 ? squares / (n - 1) : squares;
      const double old = factor == 1 ? 0 : double{old_mean.at({c})};
      CHECK(new_mean.at({c}) == near((1 - factor) * old + factor * sum / n));
      CHECK(new_variance.at({c}) ==
            near((1 - factor) * old_variance.at({c}) + factor * population));
      CHECK(doffset.at({c}) == near(dy_sum));
      CHECK(dscale.at({c}) == near(dy_x));
      each([&](const Dims& at, double v, double d) {
        const double normal = (v - sum / n) / deviation;
        CHECK(y.at(at) == near(normal * scale.at({c}) + offset.at({c})));
        CHECK(dx.at(at) == near(scale.at({c}) / deviation *
                                (d - dy_sum / n - normal * dy_x / n)));
      });
    }
    // Inference with these statistics is the same.
    Array<float> inferred(random, dims);
    norm.is_training = false;
    REQUIRE(reference.launcher
                .BatchNormInference(
                    norm, {x.view(), scale.view(), offset.view(), mean.view(),
                           variance.view(), inferred.view()})
                .ok());
    ForEachIndex(dims, [&](const Dims& at) {
      CHECK(inferred.at(at) == doctest::Approx(y.at(at)));
    });
    REQUIRE(reference.launcher
                .BatchNormGradient(
                    norm,
                    {dy.view(), x.view(), scale.view(), mean.view(),
                     variance.view(), dx.view(), dscale.view(), doffset.view()})
                .ok());
    ForEachIndex(dims, [&](const Dims& at) {
      const int64_t c = at[3];
      CHECK(dx.at(at) == doctest::Approx(dy.at(at) * scale.at({c}) /
                                         std::sqrt(variance.at({c}) + 0.5f)));
    });
  }
}

TEST_CASE_TEMPLATE("CrossEntropy", Label, float, int32_t) {
  Random random(5);
  for (int run = 0; run < 40; ++run) {
    testing::Reference reference;
    const int64_t rows = 1 + Below(random, 3), classes = 1 + Below(random, 5);
    constexpr bool kIsSparse = std::is_integral_v<Label>;
    Array<float> logits(random, {rows, classes}, true);
    Array<Label> labels(random, kIsSparse ? Dims{rows} : Dims{rows, classes});
    Array<float> loss(random, {rows}), gradient(random, {rows, classes}),
        softmax(random, {rows, classes}), logs(random, {rows, classes});
    logits.Fill([&] { return static_cast<float>(Below(random, 9)) - 4; });
    labels.Fill([&] { return static_cast<Label>(Below(random, 7)) - 1; });
    Launcher& launcher = reference.launcher;
    REQUIRE(launcher
                .CrossEntropy(logits.view(), labels.view(), loss.view(),
                              gradient.view())
                .ok());
    REQUIRE(
        launcher.Softmax(SoftmaxKind::kSoftmax, logits.view(), softmax.view())
            .ok());
    REQUIRE(
        launcher.Softmax(SoftmaxKind::kLogSoftmax, logits.view(), logs.view())
            .ok());
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0, want = 0;
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(logits.at({r, c}));
      bool is_nan = false;
      for (int64_t c = 0; c < classes; ++c) {
        const double p = std::exp(logits.at({r, c})) / sum;
        double label;
        if constexpr (kIsSparse) {
          is_nan = labels.at({r}) < 0 || labels.at({r}) >= classes;
          label = labels.at({r}) == c ? 1 : 0;
        } else {
          label = labels.at({r, c});
        }
        want -= label * std::log(p);
        CHECK(softmax.at({r, c}) == doctest::Approx(p));
        CHECK(logs.at({r, c}) == doctest::Approx(std::log(p)));
        if (is_nan) {
          CHECK(std::isnan(gradient.at({r, c})));
        } else {
          CHECK(gradient.at({r, c}) == doctest::Approx(p - label));
        }
      }
      if (is_nan) {
        CHECK(std::isnan(loss.at({r})));
      } else {
        CHECK(loss.at({r}) == doctest::Approx(want));
      }
    }
  }
}

}  // namespace
}  // namespace tfplug::norm_test
