// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "kernels/row_code.h"
#include "levels.h"

// Compares attention at each SIMD level that this machine supports with the
// formula in double precision.
namespace cpu_sim::attention_test {
namespace {

struct Case {
  int64_t queries, keys, size, value_size;
  bool has_mask, has_bias;
};

constexpr int64_t kBatch = 2, kHeads = 3;

// The tensors of a case: q, k, v and y are [batch, length, heads, size], as in
// Keras; the mask is of [queries, keys], the bias of [heads, 1, keys].
struct Data {
  explicit Data(const Case& c)
      : sizes(),
        q(Draw(kBatch * c.queries * kHeads * c.size)),
        k(Draw(kBatch * c.keys * kHeads * c.size)),
        v(Draw(kBatch * c.keys * kHeads * c.value_size)),
        bias(Draw(kHeads * c.keys)),
        mask(new bool[static_cast<size_t>(c.queries * c.keys)]) {
    sizes.batch = kBatch;
    sizes.heads = kHeads;
    sizes.queries = c.queries;
    sizes.keys = c.keys;
    sizes.size = c.size;
    sizes.value_size = c.value_size;
    const auto set = [](int64_t* strides, int64_t length, int64_t size) {
      strides[0] = length * kHeads * size;
      strides[1] = size;
      strides[2] = kHeads * size;
    };
    set(sizes.q, c.queries, c.size);
    set(sizes.k, c.keys, c.size);
    set(sizes.v, c.keys, c.value_size);
    set(sizes.y, c.queries, c.value_size);
    sizes.mask[2] = c.keys;
    sizes.bias[1] = c.keys;
    sizes.mask[3] = sizes.bias[3] = 1;
    sizes.scale = 2;
    sizes.masked_score = -1e9F;
    sizes.has_mask = c.has_mask;
    sizes.has_bias = c.has_bias;
    sizes.has_probabilities = true;
    for (int64_t i = 0; i < c.queries * c.keys; ++i) mask[i] = i % 3 != 1;
  }

  AttentionSizes sizes;
  Floats q, k, v, bias;
  std::unique_ptr<bool[]> mask;
};

// Writes what attention is by definition.
void Define(const Data& data, Doubles& y, Doubles& probabilities) {
  const AttentionSizes& a = data.sizes;
  for (int64_t row = 0; row < a.batch * a.heads * a.queries; ++row) {
    const int64_t t = row % a.queries, n = row / a.queries % a.heads,
                  b = row / a.queries / a.heads;
    double* const p = probabilities.data() + row * a.keys;
    for (int64_t s = 0; s < a.keys; ++s) {
      double dot = 0;
      for (int64_t d = 0; d < a.size; ++d) {
        dot += static_cast<double>(
                   data.q[b * a.q[0] + n * a.q[1] + t * a.q[2] + d]) *
               data.k[b * a.k[0] + n * a.k[1] + s * a.k[2] + d];
      }
      dot *= a.scale;
      if (a.has_mask && !data.mask[t * a.keys + s]) dot = a.masked_score;
      if (a.has_bias) dot += data.bias[n * a.keys + s];
      p[s] = dot;
    }
    const double largest = *std::max_element(p, p + a.keys);
    double sum = 0;
    for (int64_t s = 0; s < a.keys; ++s) sum += p[s] = std::exp(p[s] - largest);
    for (int64_t s = 0; s < a.keys; ++s) p[s] /= sum;
    for (int64_t d = 0; d < a.value_size; ++d) {
      double value = 0;
      for (int64_t s = 0; s < a.keys; ++s) {
        value += p[s] * data.v[b * a.v[0] + n * a.v[1] + s * a.v[2] + d];
      }
      y[b * a.y[0] + n * a.y[1] + t * a.y[2] + d] = value;
    }
  }
}

TEST_CASE("attention") {
  for (const Case& c : {Case{1, 1, 1, 1, false, false},
                        {1, 70, 16, 16, true, true},
                        {3, 5, 20, 7, false, true},
                        {4, 16, 16, 32, false, false},
                        {5, 17, 5, 18, true, false},
                        {64, 64, 16, 16, true, false},
                        {7, 130, 33, 65, true, true}}) {
    CAPTURE(c.queries);
    CAPTURE(c.keys);
    Data data(c);
    const int64_t rows = kBatch * kHeads * c.queries;
    Doubles y(static_cast<size_t>(rows * c.value_size));
    Doubles probabilities(static_cast<size_t>(rows * c.keys));
    Define(data, y, probabilities);
    ForEachLevel([&](const SimdCode& code) {
      Output whole(rows * c.value_size), in_pieces = whole;
      Output shares(rows * c.keys), shares_in_pieces = shares;
      const auto attend = [&](int64_t begin, int64_t end, Output& to,
                              Output& p) {
        RowsOf(code).attend(data.sizes, begin, end, data.q.data(),
                            data.k.data(), data.v.data(), data.mask.get(),
                            data.bias.data(), to.data(), p.data());
      };
      attend(0, rows, whole, shares);
      whole.Check(y);
      shares.Check(probabilities);
      for (size_t i = 0; i < probabilities.size(); ++i) {
        if (probabilities[i] == 0) CHECK(shares.values[i] == 0);
      }
      // A query has the same result, whatever is computed with it.
      for (int64_t begin = 0; begin < rows; begin += 3) {
        attend(begin, std::min(rows, begin + 3), in_pieces, shares_in_pieces);
      }
      CHECK(in_pieces.values == whole.values);
      CHECK(shares_in_pieces.values == shares.values);
    });
  }
}

}  // namespace
}  // namespace cpu_sim::attention_test
