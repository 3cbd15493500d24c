// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Core>
#include <algorithm>
#include <cstdint>

#include "kernels/row_code.h"
#include "kernels/simd/code.h"
#include "kernels/simd/vectors.h"

// Scaled dot-product attention. A few queries of a head are computed together,
// and a vector has the scores of adjacent keys, so that no sum runs across its
// lanes. The result of a query does not depend on which ones are computed with
// it.
namespace cpu_sim::CPU_SIM_LEVEL {
namespace {

using Array = Eigen::Array<float, 1, Eigen::Dynamic>;
using Map = Eigen::Map<Array>;
using ConstMap = Eigen::Map<const Array>;

constexpr int kTogether = 4;  // queries
constexpr int kVectors = kWidth == 16 ? 4 : 2;

int64_t RoundUp(int64_t n) { return (n + kWidth - 1) / kWidth * kWidth; }

// A matrix whose rows are `stride` elements apart.
struct Matrix {
  const float* data;
  int64_t stride;
};

// Computes `vectors` vectors of each row of c = a * b.
template <int vectors>
void MultiplyBlock(const Matrix& a, const Matrix& b, int64_t depth, float* c,
                   int64_t c_stride) {
  Vector<kWidth> sums[kTogether][vectors] = {};
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t v = 0; v < vectors; ++v) {
      const auto row = Load<kWidth>(b.data + k * b.stride + v * kWidth);
      for (int i = 0; i < kTogether; ++i) {
        sums[i][v] += row * a.data[i * a.stride + k];
      }
    }
  }
  for (int i = 0; i < kTogether; ++i) {
    for (int64_t v = 0; v < vectors; ++v) {
      Store<kWidth>(sums[i][v], c + i * c_stride + v * kWidth);
    }
  }
}

// c = a * b, where a has kTogether rows and b has `depth`; `columns` is a
// multiple of kWidth.
void MultiplyRows(const Matrix& a, const Matrix& b, int64_t depth,
                  int64_t columns, float* c) {
  constexpr int64_t kBlock = int64_t{kVectors} * kWidth;
  int64_t j = 0;
  for (; j + kBlock <= columns; j += kBlock) {
    MultiplyBlock<kVectors>(a, {b.data + j, b.stride}, depth, c + j, columns);
  }
  for (; j < columns; j += kWidth) {
    MultiplyBlock<1>(a, {b.data + j, b.stride}, depth, c + j, columns);
  }
}

class Attention {
 public:
  Attention(const AttentionSizes& sizes, const float* q, const float* k,
            const float* v, const bool* mask, const float* bias)
      : a_(sizes),
        q_(q),
        k_(k),
        v_(v),
        mask_(mask),
        bias_(bias),
        keys_(RoundUp(a_.keys)),
        depth_(RoundUp(a_.value_size)),
        // The keys of few queries are not worth being arranged.
        is_arranged_(a_.queries >= kTogether),
        arranged_keys_(is_arranged_ ? a_.size * keys_ : 0),
        padded_values_(depth_ == a_.value_size ? 0 : a_.keys * depth_),
        queries_(Array::Zero(kTogether * a_.size)),
        scores_(Array::Zero(kTogether * keys_)),
        sums_(kTogether * depth_) {}

  void SetHead(int64_t b, int64_t n) {
    b_ = b;
    n_ = n;
    if (is_arranged_) {
      arranged_keys_.setZero();
      for (int64_t s = 0; s < a_.keys; ++s) {
        const float* const key = Key(s);
        for (int64_t d = 0; d < a_.size; ++d) {
          arranged_keys_[d * keys_ + s] = key[d];
        }
      }
    }
    values_ = {v_ + b * a_.v[0] + n * a_.v[1], a_.v[2]};
    if (depth_ != a_.value_size) {
      padded_values_.setZero();
      for (int64_t s = 0; s < a_.keys; ++s) {
        std::copy_n(values_.data + s * values_.stride, a_.value_size,
                    padded_values_.data() + s * depth_);
      }
      values_ = {padded_values_.data(), depth_};
    }
  }

  // Computes the queries [t, t + count) of the head; y has a row of each, and
  // `probabilities`, if it is not null, as well.
  void Compute(int64_t t, int count, float* y, float* probabilities) {
    for (int i = 0; i < count; ++i) {
      std::copy_n(q_ + b_ * a_.q[0] + n_ * a_.q[1] + (t + i) * a_.q[2], a_.size,
                  queries_.data() + i * a_.size);
    }
    if (is_arranged_) {
      MultiplyRows({queries_.data(), a_.size}, {arranged_keys_.data(), keys_},
                   a_.size, keys_, scores_.data());
    }
    for (int i = 0; i < count; ++i) {
      Map row(scores_.data() + i * keys_, a_.keys);
      if (!is_arranged_) {
        const ConstMap query(queries_.data() + i * a_.size, a_.size);
        for (int64_t s = 0; s < a_.keys; ++s) {
          row[s] = (query * ConstMap(Key(s), a_.size)).sum();
        }
      }
      FinishScores(t + i, row);
      row = (row - row.maxCoeff()).exp();
      ClearTiny(row.size(), row.data());
      row /= row.sum();
      if (probabilities != nullptr) {
        Map(probabilities + i * a_.keys, a_.keys) = row;
      }
    }
    MultiplyRows({scores_.data(), keys_}, values_, a_.keys, depth_,
                 sums_.data());
    for (int i = 0; i < count; ++i) {
      std::copy_n(sums_.data() + i * depth_, a_.value_size, y + i * a_.y[2]);
    }
  }

 private:
  const float* Key(int64_t s) const {
    return k_ + b_ * a_.k[0] + n_ * a_.k[1] + s * a_.k[2];
  }

  // Applies scale, mask and bias to the products of a query.
  void FinishScores(int64_t t, Map& row) const {
    const auto place = [&](const int64_t* strides) {
      return b_ * strides[0] + n_ * strides[1] + t * strides[2];
    };
    row *= a_.scale;
    if (a_.has_mask) {
      const bool* const mask = mask_ + place(a_.mask);
      for (int64_t s = 0; s < a_.keys; ++s) {
        if (!mask[s * a_.mask[3]]) row[s] = a_.masked_score;
      }
    }
    if (a_.has_bias) {
      const float* const bias = bias_ + place(a_.bias);
      for (int64_t s = 0; s < a_.keys; ++s) row[s] += bias[s * a_.bias[3]];
    }
  }

  const AttentionSizes& a_;
  const float *q_, *k_, *v_;
  const bool* mask_;
  const float* bias_;
  int64_t keys_, depth_;  // multiples of kWidth
  bool is_arranged_;
  int64_t b_ = 0, n_ = 0;  // the head
  Array arranged_keys_;    // [size][keys_]
  Array padded_values_;    // [keys][depth_], if v has other rows
  Matrix values_ = {};
  Array queries_, scores_, sums_;  // kTogether rows each
};

}  // namespace

void Attend(const AttentionSizes& a, int64_t begin, int64_t end, const float* q,
            const float* k, const float* v, const bool* mask, const float* bias,
            float* y, float* probabilities) {
  Attention attention(a, q, k, v, mask, bias);
  int64_t last_head = -1;
  for (int64_t row = begin; row < end;) {
    const int64_t t = row % a.queries, head = row / a.queries;
    const int64_t n = head % a.heads, b = head / a.heads;
    if (head != last_head) attention.SetHead(b, n);
    last_head = head;
    const int64_t count =
        std::min({int64_t{kTogether}, end - row, a.queries - t});
    attention.Compute(
        t, static_cast<int>(count), y + b * a.y[0] + n * a.y[1] + t * a.y[2],
        a.has_probabilities ? probabilities + row * a.keys : nullptr);
    row += count;
  }
}

}  // namespace cpu_sim::CPU_SIM_LEVEL
