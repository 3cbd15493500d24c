// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_NN_CASES_H_
#define TFPLUG_TESTING_INTERNAL_NN_CASES_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/backend/nn.h"
#include "tfplug/testing/internal/primitive_case.h"

#pragma GCC visibility push(hidden)

// Cases of the primitives for neural networks.
namespace tfplug::testing {

// Sets the error of sums of a few terms, some of which may cancel.
inline void AllowRounding(PrimitiveCase* made, DataType type) {
  const bool is_wide = type == DataType::kFloat || type == DataType::kDouble;
  made->ulps = is_wide ? 64 : 2;
  made->absolute = type == DataType::kDouble      ? 1e-11
                   : type == DataType::kFloat     ? 1e-4
                   : type == DataType::kBfloat16  ? 3e-2
                                                  : 4e-3;
}

inline Window MakeWindow(CaseMaker& maker) {
  Random& random = maker.random();
  const bool is_tiny = maker.level() <= kTinyOdd;
  Window window = {};
  window.input = maker.MakeSize(20);
  window.size = 1 + Below(random, is_tiny ? 2 : 3);
  window.stride = 1 + Below(random, is_tiny ? 1 : 3);
  window.dilation = 1 + Below(random, is_tiny ? 1 : 2);
  // Padding is less than a window, so that each has an element of the image.
  const int64_t reach = (window.size - 1) * window.dilation + 1;
  window.before = Below(random, window.dilation == 1 ? window.size : 1);
  window.after = Below(random, window.dilation == 1 ? window.size : 1);
  if (reach > window.input) {
    window.size = 1;
    window.before = window.after = 0;
  }
  window.output = (window.input + window.before + window.after -
                   ((window.size - 1) * window.dilation + 1)) /
                      window.stride +
                  1;
  return window;
}

inline Windows MakeWindows(CaseMaker& maker) {
  Windows windows;
  const int64_t rank =
      maker.level() <= kTinyOdd ? 1 : 1 + Below(maker.random(), 3);
  for (int64_t d = 0; d < rank; ++d) windows.push_back(MakeWindow(maker));
  return windows;
}

// Returns [first, member of each window..., last].
inline Dims ImageDims(int64_t first, const Windows& windows,
                      int64_t Window::*member, int64_t last) {
  Dims dims = {first};
  for (const Window& window : windows) dims.push_back(window.*member);
  dims.push_back(last);
  return dims;
}

// Adds a dense image, with channels last or in front of the spatial dimensions.
inline size_t AddImage(CaseMaker& maker, DataType type, const Dims& dims,
                       bool has_channels_last, bool is_output) {
  Layout layout;
  layout.view = Operand::Dense(nullptr, type, dims);
  layout.size = layout.view.num_elements();
  if (!has_channels_last) {
    const int channels = layout.view.rank - 1;
    int64_t stride = 1;
    for (int d = channels - 1; d > 0; --d) {
      layout.view.stride(d) = stride;
      stride *= layout.view.dim(d);
    }
    layout.view.stride(channels) = stride;
  }
  return maker.AddLayout(layout, Values::kSmall, is_output);
}

enum class ConvKind : uint8_t { kForward, kInputGradient, kFilterGradient };

// Convolves small integers, so that sums are exact.
inline PrimitiveCase MakeConvCase(CaseMaker& maker, ConvKind kind,
                                  DataType type) {
  Random& random = maker.random();
  Convolution conv;
  conv.windows = MakeWindows(maker);
  conv.groups = maker.level() <= kTinyOdd ? 1 : 1 + Below(random, 3);
  const int64_t batch = 1 + Below(random, 2), depth = 1 + Below(random, 3),
                outputs = conv.groups * (1 + Below(random, 3));
  const bool is_last = maker.OneIn(2);
  const Dims filter_dims = ImageDims(0, conv.windows, &Window::size, depth);
  Dims filter(filter_dims.begin() + 1, filter_dims.end());
  filter.push_back(outputs);
  const auto add_image = [&](ConvKind output) {
    AddImage(maker, type,
             ImageDims(batch, conv.windows, &Window::input,
                       depth * conv.groups),
             is_last, kind == output);
  };
  const auto add_result = [&] {
    AddImage(maker, type,
             ImageDims(batch, conv.windows, &Window::output, outputs), is_last,
             kind == ConvKind::kForward);
  };
  // image, filter, result
  add_image(ConvKind::kInputGradient);
  maker.AddLayout({Operand::Dense(nullptr, type, filter), 0,
                   Operand::Dense(nullptr, type, filter).num_elements()},
                  Values::kSmall, kind == ConvKind::kFilterGradient);
  add_result();
  constexpr const char* kNames[] = {"Conv", "ConvInputGradient",
                                    "ConvFilterGradient"};
  PrimitiveCase& made = maker.made();
  made.text = std::string(kNames[static_cast<size_t>(kind)]) + " of " +
              std::to_string(conv.groups) + " groups";
  for (const Window& window : conv.windows) {
    made.text += ", stride " + std::to_string(window.stride) + " dilation " +
                 std::to_string(window.dilation) + " padding " +
                 std::to_string(window.before) + " and " +
                 std::to_string(window.after);
  }
  made.launch = [=](Launcher& launcher, const std::vector<Operand>& operands) {
    const Operand &image = operands[0], &weights = operands[1],
                  &result = operands[2];
    return kind == ConvKind::kForward
               ? launcher.Conv(conv, image, weights, result)
           : kind == ConvKind::kInputGradient
               ? launcher.ConvInputGradient(conv, weights, result, image)
               : launcher.ConvFilterGradient(conv, image, result, weights);
  };
  return made;
}

// Pools an image and, if `is_gradient`, computes the gradient.
inline PrimitiveCase MakePoolCase(CaseMaker& maker, PoolKind kind,
                                  bool is_gradient, DataType type) {
  Pooling pooling;
  pooling.kind = kind;
  pooling.windows = MakeWindows(maker);
  const bool is_last = maker.OneIn(2);
  const int64_t batch = 1 + Below(maker.random(), 2),
                channels = 1 + Below(maker.random(), 3);
  const Dims in = ImageDims(batch, pooling.windows, &Window::input, channels),
             out = ImageDims(batch, pooling.windows, &Window::output, channels);
  AddImage(maker, type, in, is_last, /*is_output=*/false);
  AddImage(maker, type, out, is_last, /*is_output=*/true);
  if (is_gradient) {
    AddImage(maker, type, out, is_last, /*is_output=*/false);
    AddImage(maker, type, in, is_last, /*is_output=*/true);
  }
  PrimitiveCase& made = maker.made();
  if (kind == PoolKind::kAverage) AllowRounding(&made, type);
  made.text = std::string(is_gradient ? "PoolGradient" : "Pool") +
              (kind == PoolKind::kMax ? " of kind kMax" : " of kind kAverage");
  made.launch = [=](Launcher& launcher, const std::vector<Operand>& operands) {
    absl::Status status = launcher.Pool(pooling, operands[0], operands[1]);
    if (!is_gradient || !status.ok()) return status;
    return launcher.PoolGradient(pooling, operands[0], operands[1], operands[2],
                                 operands[3]);
  };
  return made;
}

enum class NormKind : uint8_t { kTraining, kInference, kGradient };

inline PrimitiveCase MakeBatchNormCase(CaseMaker& maker, NormKind kind,
                                       DataType type) {
  BatchNormalization norm;
  norm.epsilon = 0.5;  // variances may be 0
  norm.is_training = kind == NormKind::kTraining ||
                     (kind == NormKind::kGradient && maker.OneIn(2));
  norm.average_factor = maker.OneIn(2) ? 1 : 0.25;
  const int64_t channels = 1 + Below(maker.random(), 4);
  const Dims dims = {1 + Below(maker.random(), 2), 1 + maker.MakeSize(30),
                     channels};
  const bool is_last = maker.OneIn(2);
  const auto image = [&](bool is_output) {
    AddImage(maker, type, dims, is_last, is_output);
  };
  const auto vector = [&](Values values, bool is_output) {
    const Operand view = Operand::Dense(nullptr, DataType::kFloat, {channels});
    maker.AddLayout({view, 0, channels}, values, is_output);
  };
  PrimitiveCase& made = maker.made();
  AllowRounding(&made, type);
  if (kind == NormKind::kGradient) {
    image(false), image(false);  // y_gradient, x
    vector(Values::kSmall, false), vector(Values::kSmall, false);
    vector(Values::kOnes, false);  // a variance
    image(true), vector(Values::kSmall, true), vector(Values::kSmall, true);
    made.text = "BatchNormGradient";
    made.launch = [=](Launcher& launcher, const std::vector<Operand>& o) {
      return launcher.BatchNormGradient(
          norm, {o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7]});
    };
    return made;
  }
  image(false);
  for (int i = 0; i < 3; ++i) vector(Values::kSmall, false);
  vector(Values::kOnes, false);  // a variance
  image(true);
  if (kind == NormKind::kInference) {
    made.text = "BatchNormInference";
    made.launch = [=](Launcher& launcher, const std::vector<Operand>& o) {
      return launcher.BatchNormInference(norm,
                                         {o[0], o[1], o[2], o[3], o[4], o[5]});
    };
    return made;
  }
  for (int i = 0; i < 4; ++i) vector(Values::kSmall, true);
  made.text = "BatchNormTraining";
  made.launch = [=](Launcher& launcher, const std::vector<Operand>& o) {
    return launcher.BatchNormTraining(norm, {o[0], o[1], o[2], o[3], o[4], o[5],
                                             o[6], o[7], o[8], o[9]});
  };
  return made;
}

inline PrimitiveCase MakeSoftmaxCase(CaseMaker& maker, SoftmaxKind kind,
                                     DataType type) {
  const Dims dims = {maker.MakeSize(50), maker.MakeSize(300)};
  maker.Add(type, dims, Values::kSmall);
  maker.AddOutput(type, dims);
  PrimitiveCase& made = maker.made();
  AllowRounding(&made, type);
  made.text = kind == SoftmaxKind::kSoftmax ? "Softmax of kind kSoftmax"
                                            : "Softmax of kind kLogSoftmax";
  made.launch = [kind](Launcher& launcher, const std::vector<Operand>& o) {
    return launcher.Softmax(kind, o[0], o[1]);
  };
  return made;
}

inline PrimitiveCase MakeCrossEntropyCase(CaseMaker& maker, bool has_classes,
                                          DataType type) {
  const int64_t rows = maker.MakeSize(50), classes = maker.MakeSize(100);
  maker.Add(type, {rows, classes}, Values::kSmall);
  if (has_classes) {
    maker.AddIndices(maker.OneIn(2) ? DataType::kInt32 : DataType::kInt64,
                     {rows}, classes);
  } else {
    maker.Add(type, {rows, classes}, Values::kOnes);
  }
  maker.AddOutput(type, {rows});
  maker.AddOutput(type, {rows, classes});
  PrimitiveCase& made = maker.made();
  AllowRounding(&made, type);
  made.text = has_classes ? "CrossEntropy of classes"
                          : "CrossEntropy of probabilities";
  made.launch = [](Launcher& launcher, const std::vector<Operand>& o) {
    return launcher.CrossEntropy(o[0], o[1], o[2], o[3]);
  };
  return made;
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_NN_CASES_H_
