// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_SIMD_H_
#define CPU_SIM_KERNELS_SIMD_H_

#include <cstdint>

#include "kernels/gemm.h"

// The loops that a training step spends its time in. They are compiled several
// times, from simd/, for several levels of x86-64; the best one that this
// machine can run is chosen when the plug-in is loaded. All of it is for the
// device: arguments are plain data and pointers that the device may follow.
//
// Only plain data in here: an inline function would be compiled for each level
// under one name, and the linker would take any of them for all.
namespace cpu_sim {

// A window of `size` taps, `dilation` apart, that slides over one dimension of
// an image. Tap t of window o is at o * stride + t * dilation - pad, and
// reaches nothing where that is no element of the image.
struct Window {
  int64_t in;   // elements of the image
  int64_t out;  // windows
  int64_t size;
  int64_t stride;
  int64_t dilation;
  int64_t pad;
};

// Images [batch, rows.in, cols.in, depth] to [batch, rows.out, cols.out,
// depth].
struct Pool2D {
  int64_t batch;
  Window rows;
  Window cols;
  int64_t depth;
};

// Images [batch, rows.in, cols.in, in_depth] to [batch, rows.out, cols.out,
// out_depth]; the channels of a group see only each other. The filter is
// [rows.size, cols.size, in_depth / groups, out_depth]; where each channel is
// a group, [rows.size, cols.size, in_depth, out_depth / in_depth] is the same.
struct Conv2D {
  int64_t batch;
  Window rows;
  Window cols;
  int64_t in_depth;
  int64_t out_depth;
  int64_t groups;
  int64_t tile;  // output pixels that are worked on at once
};

enum class Activation {
  kNone,
  kRelu,
  kRelu6,
  kLeakyRelu,
  kElu,
  kTanh,
  kSigmoid
};

// What becomes of y before it leaves the cache: activation(y * scale + shift),
// with a scale and a shift for each channel; or no scale, or neither: null.
struct Epilogue {
  const float* scale;
  const float* shift;
  Activation activation;
  float alpha;  // LeakyRelu's
};

// Batch normalisation of [rows, depth].
struct BatchNorm {
  int64_t rows;
  int64_t depth;
  float epsilon;
  float average_factor;  // of the new in the moving averages
};

// `workspace` has as many floats as WorkspaceOf(conv) in window.h says.
struct Conv2DCode {
  void (*forward)(const Conv2D& conv, const Epilogue& epilogue, const float* x,
                  const float* filter, float* y, float* workspace);
  void (*input_gradient)(const Conv2D& conv, const float* filter,
                         const float* dy, float* dx, float* workspace);
  void (*filter_gradient)(const Conv2D& conv, const float* x, const float* dy,
                          float* dfilter, float* workspace);
};

// One group for each input channel.
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
  // dy goes to the first element that is as large as y. `workspace` has a float
  // for each channel.
  void (*max_gradient)(const Pool2D& pool, const float* x, const float* y,
                       const float* dy, float* dx, float* workspace);
  // Of those elements that a window reaches.
  void (*average)(const Pool2D& pool, const float* x, float* y);
  void (*average_gradient)(const Pool2D& pool, const float* dy, float* dx);
};

// Vectors have `depth` elements. A variance is a mean of squares; the moving
// one takes in a sample's, with one row less to divide by.
struct BatchNormCode {
  // moving_mean and moving_variance, read unless average_factor is 1, become
  // next_mean and next_variance, which may be the same memory.
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
  // A normalisation as an epilogue: y * factor + shift.
  void (*fold)(const BatchNorm& norm, const float* scale, const float* offset,
               const float* mean, const float* variance, float* factor,
               float* shift);
};

enum class Unary {
  kNeg,
  kAbs,
  kSign,
  kReciprocal,
  kSquare,
  kSqrt,
  kRsqrt,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kFloor,
  kTanh,
  kSigmoid
};

enum class Binary {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kDivNoNan,  // 0 where the divisor is 0
  kMulNoNan,  // 0 where the second factor is 0
  kSquaredDifference,
  kMaximum,  // a NaN on either side is the result, of kMinimum too
  kMinimum,
  // Gradients, of what a function made and what came for it.
  kTanhGrad,
  kSigmoidGrad,
  kSqrtGrad,
  kRsqrtGrad,
  kReciprocalGrad
};

// Element by element. An operand with step 0 is one value for all; the others
// have step 1. y may be an operand.
struct ElementwiseCode {
  void (*unary)(Unary op, int64_t size, const float* x, float* y);
  void (*binary)(Binary op, int64_t size, const float* a, int64_t a_step,
                 const float* b, int64_t b_step, float* y);
};

struct SimdCode {
  const char* level;
  // See gemm.h.
  void (*gemm)(int64_t m, int64_t n, int64_t k, const GemmOperand& a,
               const GemmOperand& b, float* c, int64_t c_stride, GemmMode mode);
  // y = x, but 0 where x is less, and limit where x is more; a limit of NaN is
  // none. And the gradient: dx = dy where y = x. x may be y, and dy dx.
  void (*clamp)(int64_t size, float limit, const float* x, float* y);
  void (*clamp_gradient)(int64_t size, float limit, const float* dy,
                         const float* x, float* dx);
  // y = epilogue(x), on [rows, depth]; x may be y.
  void (*apply)(const Epilogue& epilogue, int64_t rows, int64_t depth,
                const float* x, float* y);
  // sum = that of all rows of x, [rows, depth].
  void (*sum_rows)(int64_t rows, int64_t depth, const float* x, float* sum);
  const Conv2DCode& conv2d;
  const DepthwiseCode& depthwise;
  const PoolCode& pool;
  const BatchNormCode& batch_norm;
  const ElementwiseCode& elementwise;
  // The sum of all elements.
  float (*sum)(int64_t size, const float* x);
};

// The best level that this machine can run: baseline, v3 or v4. CPU_SIM_LEVEL
// keeps it from going higher.
const SimdCode& Simd();

// The same for any limit.
const SimdCode& SimdUpTo(const char* level);

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_SIMD_H_
