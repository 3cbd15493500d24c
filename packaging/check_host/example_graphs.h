// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_CHECK_EXAMPLE_GRAPHS_H_
#define TFPLUG_CHECK_EXAMPLE_GRAPHS_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

// Graphs whose values passes must keep, in the language of
// testing/graph_text.h. Nodes called out... are fetched. Placeholders and nodes
// called fed... are fed.
namespace tfplug::check {

struct ExampleGraph {
  std::string name, text;
};

// Returns Gelu if the factor is the square root of a half.
inline std::string GeluOf(const std::string& factor) {
  return absl::StrCat(R"(
x: float[2,7] = Placeholder() {dtype=float}
half: float = 0.5
one: float = 1
factor: float = )",
                      factor, R"(
y: float[2,7] = Mul(x, factor)
e: float[2,7] = Erf(y)
p: float[2,7] = AddV2(e, one)
h: float[2,7] = Mul(x, half)
out: float[2,7] = Mul(h, p)
)");
}

inline const std::vector<ExampleGraph>& HandMadeGraphs() {
  static const auto* const graphs = new std::vector<ExampleGraph>{
      {"a negative value behind Relu", R"(
x: float[2,3] = Placeholder() {dtype=float}
n: float[2,3] = Neg(x)
r: float[2,3] = Relu(n)
out: float[2,3] = Identity(r)
)"},
      {"a constant that is fed", R"(
fed: float[2,3] = [1, 2, 3, 4, 5, 6]
same: float[2,3] = Identity(fed)
out: float[2,3] = Relu(same)
)"},
      {"a value with two users, one of them fetched", R"(
x: float[4,4] = Placeholder() {dtype=float}
w: float[4,4] = Placeholder() {dtype=float}
b: float[4] = Placeholder() {dtype=float}
m: float[4,4] = MatMul(x, w) {transpose_a=false, transpose_b=false}
a: float[4,4] = BiasAdd(m, b) {data_format="NHWC"}
out: float[4,4] = Relu(a)
out_2: float[4,4] = Neg(a)
)"},
      {"a dense layer", R"(
x: float[3,4] = Placeholder() {dtype=float}
w: float[4,5] = Placeholder() {dtype=float}
b: float[5] = Placeholder() {dtype=float}
m: float[3,5] = MatMul(x, w) {transpose_a=false, transpose_b=false}
a: float[3,5] = BiasAdd(m, b) {data_format="NHWC"}
r: float[3,5] = Relu(a)
out: float[3,5] = Identity(r, ^m)
)"},
      {"a column added to a product, which is no bias", R"(
x: float[4,4] = Placeholder() {dtype=float}
w: float[4,4] = Placeholder() {dtype=float}
c: float[4,1] = Placeholder() {dtype=float}
m: float[4,4] = MatMul(x, w) {transpose_a=true, transpose_b=false}
a: float[4,4] = AddV2(c, m)
r: float[4,4] = Relu(a)
out: float[4,4] = Tanh(r)
)"},
      {"a transposed product and a vector", R"(
x: float[3,4] = Placeholder() {dtype=float}
w: float[5,4] = Placeholder() {dtype=float}
b: float[5] = Placeholder() {dtype=float}
m: float[3,5] = MatMul(x, w) {transpose_a=false, transpose_b=true}
a: float[3,5] = AddV2(m, b)
out: float[3,5] = Tanh(a)
)"},
      {"a convolution with bias and Relu", R"(
x: float[1,5,5,2] = Placeholder() {dtype=float}
w: float[3,3,2,4] = Placeholder() {dtype=float}
b: float[4] = Placeholder() {dtype=float}
m: float[1,5,5,4] = Conv2D(x, w) {strides=[1,1,1,1], padding="SAME", data_format="NHWC"}
a: float[1,5,5,4] = BiasAdd(m, b) {data_format="NHWC"}
out: float[1,5,5,4] = Relu(a)
)"},
      {"a convolution with stride and batch normalization", R"(
x: float[2,6,6,2] = Placeholder() {dtype=float}
w: float[2,2,2,3] = Placeholder() {dtype=float}
scale: float[3] = Placeholder() {dtype=float}
offset: float[3] = Placeholder() {dtype=float}
mean: float[3] = Placeholder() {dtype=float}
variance: float[3] = [0.5, 1, 2]
m: float[2,3,3,3] = Conv2D(x, w) {strides=[1,2,2,1], padding="VALID", data_format="NHWC"}
n: float[2,3,3,3] = FusedBatchNormV3(m, scale, offset, mean, variance) {U=float, epsilon=0.001, is_training=false, data_format="NHWC"}
out: float[2,3,3,3] = Relu(n)
)"},
      {"Gelu", GeluOf("0.70710678")},
      {"something like Gelu, with another factor", GeluOf("0.5")},
      {"Swish, whose input is fetched", R"(
x: float[3,3] = Placeholder() {dtype=float}
out_2: float[3,3] = Neg(x)
s: float[3,3] = Sigmoid(out_2)
out: float[3,3] = Mul(out_2, s)
)"},
      {"layer normalization", R"(
x: float[3,8] = Placeholder() {dtype=float}
gamma: float[8] = Placeholder() {dtype=float}
beta: float[8] = Placeholder() {dtype=float}
axes: int32[1] = [-1]
epsilon: float = 0.001
m: float[3,1] = Mean(x, axes) {keep_dims=true, Tidx=int32}
d: float[3,8] = SquaredDifference(x, m)
v: float[3,1] = Mean(d, axes) {keep_dims=true, Tidx=int32}
e: float[3,1] = AddV2(v, epsilon)
r: float[3,1] = Rsqrt(e)
g: float[3,8] = Mul(r, gamma)
a: float[3,8] = Mul(x, g)
b: float[3,8] = Mul(m, g)
c: float[3,8] = Sub(beta, b)
out: float[3,8] = AddV2(a, c)
)"},
      {"attention", R"(
q: float[2,3,4] = Placeholder() {dtype=float}
k: float[2,5,4] = Placeholder() {dtype=float}
v: float[2,5,4] = Placeholder() {dtype=float}
scale: float = 0.5
s: float[2,3,5] = BatchMatMulV2(q, k) {adj_x=false, adj_y=true}
t: float[2,3,5] = Mul(s, scale)
p: float[2,3,5] = Softmax(t)
out: float[2,3,4] = BatchMatMulV2(p, v) {adj_x=false, adj_y=false}
)"},
      {"sums of one shape", R"(
x, y, z: float[3,3] = Placeholder() {dtype=float}
a: float[3,3] = AddV2(x, y)
b: float[3,3] = AddV2(a, z)
c: float[3,3] = AddN(b, x, b) {N=3}
out: float[3,3] = Sub(c, a)
)"},
      {"operations that seem to do nothing", R"(
x: float[3,3] = Placeholder() {dtype=float}
zero: float = 0
one: float[3,3] = 1
a: float[3,3] = Mul(x, one)
b: float[3,3] = AddV2(zero, a)
c: float[3,3] = Neg(b)
d: float[3,3] = Neg(c)
e: float[3,3] = Maximum(d, d)
out: float[3,3] = Sub(zero, e, ^c)
)"},
  };
  return *graphs;
}

// Writes random graphs of ops that `has` accepts. Their values are near 0.
template <class Has>
class RandomGraph {
 public:
  RandomGraph(uint64_t seed, const Has& has) : random_(seed), has_(has) {}

  ExampleGraph Write(const std::string& name, int nodes) {
    rows_ = 1 + Below(4);
    columns_ = 1 + Below(5);
    text_.clear();
    full_.clear();
    const std::string vector = absl::StrCat("float[", columns_, "]");
    AddFull("x = Placeholder() {dtype=float}");
    AddFull("y = Placeholder() {dtype=float}");
    text_ += absl::StrCat("v: ", vector, " = Placeholder() {dtype=float}\n");
    text_ += absl::StrCat("w: float[", columns_, ",", columns_,
                          "] = Placeholder() {dtype=float}\n");
    text_ += absl::StrCat("k: float = 0.", 1 + Below(9), "\n");
    text_ += absl::StrCat("fed_1: ", vector, " = 0.", 1 + Below(9), "\n");
    for (int i = 0; i < nodes; ++i) AddNode(absl::StrCat("n", i));
    AddFull(absl::StrCat("out = Identity(", full_.back(), ")"));
    return {name, text_};
  }

 private:
  int Below(int end) { return static_cast<int>(random_() % end); }
  const std::string& Any() {
    // Late values more often than early ones.
    const int size = static_cast<int>(full_.size());
    return full_[static_cast<size_t>(
        Below(2) == 0 ? Below(size) : size - 1 - Below(std::min(size, 3)))];
  }
  // A value that can be broadcast to the full shape.
  std::string AnyNarrow() {
    const char* const names[] = {"v", "k", "fed_1"};
    return Below(3) == 0 ? names[Below(3)] : Any();
  }
  // Adds a node of the full shape, "name = Op(inputs)".
  void AddFull(const std::string& line) {
    const size_t end = line.find(' ');
    full_.push_back(line.substr(0, end));
    absl::StrAppend(&text_, full_.back(), ": float[", rows_, ",", columns_, "]",
                    line.substr(end), "\n");
  }

  void AddNode(std::string name) {
    // Some values in the middle are fetched, too.
    if (Below(8) == 0) name = "out_" + name;
    const std::string control = Below(6) == 0 ? absl::StrCat(", ^", Any()) : "";
    // No op with jumps: fused ops may round otherwise.
    static constexpr const char* kUnary[] = {
        "Relu", "Neg",     "Tanh",   "Abs",      "Sigmoid", "Relu6",
        "Elu",  "Softmax", "Square", "Identity", "Softplus"};
    static constexpr const char* kBinary[] = {
        "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference"};
    for (int attempt = 0; attempt < 50; ++attempt) {
      const int kind = Below(10);
      if (kind < 4) {
        const char* const op = kUnary[Below(std::size(kUnary))];
        if (!has_(op)) continue;
        return AddBounded(name, op, absl::StrCat(op, "(", Any(), control, ")"));
      }
      if (kind < 8) {
        const char* const op = kBinary[Below(std::size(kBinary))];
        if (!has_(op)) continue;
        std::string a = Any(), b = AnyNarrow();
        if (Below(2) == 0) std::swap(a, b);
        return AddBounded(name, op,
                          absl::StrCat(op, "(", a, ", ", b, control, ")"));
      }
      if (kind == 8 && has_("MatMul")) {
        const char* const transposed = Below(2) == 0 ? "true" : "false";
        return AddBounded(name, "MatMul",
                          absl::StrCat("MatMul(", Any(), ", w", control,
                                       ") {transpose_a=false, transpose_b=",
                                       transposed, "}"));
      }
      if (kind == 9 && has_("AddN")) {
        return AddBounded(name, "AddN",
                          absl::StrCat("AddN(", Any(), ", ", Any(), ", ", Any(),
                                       control, ") {N=3}"));
      }
      if (kind == 9 && has_("BiasAdd")) {
        return AddBounded(name, "BiasAdd",
                          absl::StrCat("BiasAdd(", Any(), ", v", control,
                                       ") {data_format=\"NHWC\"}"));
      }
    }
  }

  // Ops with which values grow get a bounded one behind them now and then.
  void AddBounded(const std::string& name, const std::string& op,
                  const std::string& call) {
    AddFull(absl::StrCat(name, " = ", call));
    const bool grows = op == "Mul" || op == "Square" || op == "AddN" ||
                       op == "SquaredDifference" || op == "MatMul";
    if (!grows || Below(2) == 0 || !has_("Tanh")) return;
    AddFull(absl::StrCat(name, "_t = Tanh(", name, ")"));
  }

  std::mt19937_64 random_;
  const Has& has_;
  int rows_ = 1, columns_ = 1;
  std::string text_;
  std::vector<std::string> full_;  // nodes of the full shape
};

}  // namespace tfplug::check

#endif  // TFPLUG_CHECK_EXAMPLE_GRAPHS_H_
