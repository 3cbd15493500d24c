// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_NN_H_
#define TFPLUG_PRIMITIVES_NN_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "tfplug/ir/view.h"

#pragma GCC visibility push(hidden)

// The parameters of the optional primitives for neural networks (backend.h).
//
// An image is a view [batch, spatial..., channels], whatever the order of its
// dimensions in memory: its strides say whether the channels are last (NHWC) or
// not (NCHW). A vector is a dense view [channels].
namespace tfplug {

// A window of `size` taps that slides over one spatial dimension of an image.
// Tap t of window o is element o * stride + t * dilation - before of the image.
// Elements outside the image are 0, or, for pooling, do not count.
struct Window {
  int64_t input;   // elements of the image
  int64_t output;  // windows
  int64_t size;
  int64_t stride, dilation;
  int64_t before, after;  // padding
};
// One for each spatial dimension.
using Windows = absl::InlinedVector<Window, 3>;

// A convolution of images [batch, input..., channels] with filters [size...,
// channels / groups, outputs] to images [batch, output..., outputs]. Channels
// and outputs of different groups do not mix; a convolution with as many groups
// as channels is depthwise.
struct Convolution {
  Windows windows;
  int64_t groups = 1;
};

enum class PoolKind : uint8_t { kMax, kAverage };

struct Pooling {
  PoolKind kind = PoolKind::kMax;
  Windows windows;
};

// y = (x - mean) / sqrt(variance + epsilon) * scale + offset, for each channel.
// Vectors are of float.
struct BatchNormalization {
  double epsilon = 0;
  // Whether mean and variance are those of x.
  bool is_training = false;
  // The weight of x in the moving statistics.
  double average_factor = 1;
};

struct BatchNormTrainingOperands {
  Operand x, scale, offset;
  // The moving statistics. Not read if average_factor is 1.
  Operand old_mean, old_variance;

  Operand y;
  // The moving statistics with those of x; the variance is that of the
  // population from which x was drawn (divided by n - 1).
  Operand new_mean, new_variance;
  Operand mean, variance;  // of x (divided by n)
};

struct BatchNormInferenceOperands {
  Operand x, scale, offset, mean, variance;
  Operand y;
};

// Gradients are named after the operand with respect to which they are.
struct BatchNormGradientOperands {
  Operand y_gradient, x, scale;
  Operand mean, variance;  // of x, or, without training, those of inference
  Operand x_gradient, scale_gradient, offset_gradient;
};

enum class SoftmaxKind : uint8_t { kSoftmax, kLogSoftmax };

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_NN_H_
