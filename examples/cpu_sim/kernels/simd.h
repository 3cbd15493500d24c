// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_SIMD_H_
#define CPU_SIM_KERNELS_SIMD_H_

#include <tfplug/primitives/activation_kind.h>

#include <cstdint>

#include "kernels/gemm.h"

// The hot loops of a training step, compiled from simd/ for several levels of
// x86-64. The best level that this machine supports is chosen when the plug-in
// is loaded. All functions run on the device: arguments are plain data and
// private addresses (runtime/arena.h).
//
// This header has no inline functions: each level would compile such a function
// under the same name, and the linker would keep only one of them.
namespace cpu_sim {

// A window of `size` taps, `dilation` apart, that slides over one dimension of
// an image. Tap t of window o is at o * stride + t * dilation - pad; taps
// outside the image do not contribute.
struct Window {
  int64_t in;   // elements of the image
  int64_t out;  // windows
  int64_t size;
  int64_t stride;
  int64_t dilation;
  int64_t pad;
};

// Pooling of images [batch, rows.in, cols.in, depth] to [batch, rows.out,
// cols.out, depth].
struct Pool2D {
  int64_t batch;
  Window rows;
  Window cols;
  int64_t depth;
};

// A convolution of images [batch, rows.in, cols.in, in_depth] to [batch,
// rows.out, cols.out, out_depth]; channels of different groups do not mix. The
// filter is [rows.size, cols.size, in_depth / groups, out_depth]. If each
// channel is a group, its layout is the same as that of [rows.size, cols.size,
// in_depth, out_depth / in_depth].
struct Conv2D {
  int64_t batch;
  Window rows;
  Window cols;
  int64_t in_depth;
  int64_t out_depth;
  int64_t groups;
  int64_t tile;  // output pixels processed at once
};

using tfplug::ActivationKind;

// The operation applied to y before it leaves the cache:
// activation(y * scale + shift), with a scale and a shift for each channel.
// `scale`, or both, may be null.
struct Epilogue {
  const float* scale;
  const float* shift;
  ActivationKind activation;
  float alpha;  // for kLeakyRelu
};

// Batch normalization of [rows, depth].
struct BatchNorm {
  int64_t rows;
  int64_t depth;
  float epsilon;
  float average_factor;  // weight of the batch in the moving averages
};

// `workspace` has the patches of conv.tile output pixels.
struct Conv2DCode {
  void (*forward)(const Conv2D& conv, const Epilogue& epilogue, const float* x,
                  const float* filter, float* y, float* workspace);
  void (*input_gradient)(const Conv2D& conv, const float* filter,
                         const float* dy, float* dx, float* workspace);
  void (*filter_gradient)(const Conv2D& conv, const float* x, const float* dy,
                          float* dfilter, float* workspace);
};

// Each input channel is a group.
struct DepthwiseCode {
  void (*forward)(const Conv2D& conv, const Epilogue& epilogue, const float* x,
                  const float* filter, float* y);
  void (*input_gradient)(const Conv2D& conv, const float* filter,
                         const float* dy, float* dx);
  void (*filter_gradient)(const Conv2D& conv, const float* x, const float* dy,
                          float* dfilter);
};

struct PoolCode {
  void (*max)(const Pool2D& pool, const float* x, float* y);
  // Adds dy to the first element of the window that is equal to y. `workspace`
  // has a float for each channel.
  void (*max_gradient)(const Pool2D& pool, const float* x, const float* y,
                       const float* dy, float* dx, float* workspace);
  // Averages the elements of the image that a window covers.
  void (*average)(const Pool2D& pool, const float* x, float* y);
  void (*average_gradient)(const Pool2D& pool, const float* dy, float* dx);
};

// Vectors have `depth` elements. A variance is the population variance; the
// moving one is updated with the sample variance (divided by rows - 1).
struct BatchNormCode {
  // Writes the new moving mean and variance to next_mean and next_variance,
  // which may be the memory of moving_mean and moving_variance; those two are
  // not read if average_factor is 1.
  void (*training)(const BatchNorm& norm, const float* x, const float* scale,
                   const float* offset, const float* moving_mean,
                   const float* moving_variance, float* y, float* next_mean,
                   float* next_variance, float* mean, float* variance);
  void (*inference)(const BatchNorm& norm, const float* x, const float* scale,
                    const float* offset, const float* mean,
                    const float* variance, float* y);
  void (*training_gradient)(const BatchNorm& norm, const float* dy,
                            const float* x, const float* scale,
                            const float* mean, const float* variance, float* dx,
                            float* dscale, float* doffset);
  void (*inference_gradient)(const BatchNorm& norm, const float* dy,
                             const float* x, const float* scale,
                             const float* mean, const float* variance,
                             float* dx, float* dscale, float* doffset);
};

struct SimdCode {
  const char* level;
  // See gemm.h.
  void (*gemm)(int64_t m, int64_t n, int64_t k, const GemmOperand& a,
               const GemmOperand& b, float* c, int64_t c_stride, GemmMode mode);
  // y = epilogue(x), on [rows, depth]; y may alias x.
  void (*apply)(const Epilogue& epilogue, int64_t rows, int64_t depth,
                const float* x, float* y);
  const Conv2DCode& conv2d;
  // Without a matrix of patches: fast for small filters. There is one group, no
  // dilation, and for input_gradient the strides are 1. `workspace` has the
  // filter and an image, with padding.
  const Conv2DCode& direct;
  const DepthwiseCode& depthwise;
  const PoolCode& pool;
  const BatchNormCode& batch_norm;
  // The loops of Map and Reduce: a tfplug::HostLoops.
  const void* const& loops;
};

// Returns the functions of the best level that this machine supports: baseline,
// v3 or v4. CPU_SIM_LEVEL limits it.
const SimdCode& Simd();

// Does the same as Simd with `level` as the limit.
const SimdCode& SimdUpTo(const char* level);

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_SIMD_H_
