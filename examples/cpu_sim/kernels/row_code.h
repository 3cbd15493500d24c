// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_ROW_CODE_H_
#define CPU_SIM_KERNELS_ROW_CODE_H_

#include <cstdint>

// Functions of whole rows, which like those of simd.h are compiled for several
// levels of x86-64 and run on the device.
namespace cpu_sim {

// Strides are of [batch, heads, length], and 0 where a tensor is broadcast; the
// last dimension is dense.
struct AttentionSizes {
  int64_t batch, heads, queries, keys, size, value_size;
  int64_t q[3], k[3], v[3], y[3], mask[4], bias[4];
  float scale, masked_score;
  bool has_mask, has_bias, has_probabilities;
};

struct RowCode {
  void (*softmax)(const float* logits, float* y, int64_t rows, int64_t classes);
  void (*log_softmax)(const float* logits, float* y, int64_t rows,
                      int64_t classes);
  // loss: a value per row; backprop: d(loss)/d(logits). Each label is a
  // distribution over the classes.
  void (*cross_entropy)(const float* logits, const float* labels, float* loss,
                        float* backprop, int64_t rows, int64_t classes);
  // The same for labels that are a class. One out of range gives NaN, because a
  // device cannot raise an error on the host.
  void (*sparse_cross_entropy_32)(const float* logits, const int32_t* labels,
                                  float* loss, float* backprop, int64_t rows,
                                  int64_t classes);
  void (*sparse_cross_entropy_64)(const float* logits, const int64_t* labels,
                                  float* loss, float* backprop, int64_t rows,
                                  int64_t classes);
  void (*normalize)(const float* x, const float* gamma, const float* beta,
                    float* y, float* means, float* rstds, float epsilon,
                    int64_t rows, int64_t depth);
  // Computes the queries [begin, end) of all batches and heads.
  void (*attend)(const AttentionSizes& sizes, int64_t begin, int64_t end,
                 const float* q, const float* k, const float* v,
                 const bool* mask, const float* bias, float* y,
                 float* probabilities);
};

struct SimdCode;  // see simd.h

// Returns the functions of the same level.
const RowCode& RowsOf(const SimdCode& code);

// Returns the functions of the level that Simd() chose.
const RowCode& Rows();

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_ROW_CODE_H_
