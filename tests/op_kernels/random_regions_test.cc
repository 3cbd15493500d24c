// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "region_graph.h"

// Random graphs, with regions and without.
namespace tfplug::random_regions_test {
namespace {

using region_test::RegionGraph;

// Adds random ops on matrices of the shape 3 x 3, in device memory, and on
// shapes and axes, in host memory, with control edges. Elu and variables bound
// regions. As in TensorFlow's functions, control edges order what reads a
// variable after what wrote it before, and what writes it after both.
class RandomNodes {
 public:
  RandomNodes(RegionGraph& g, unsigned seed) : g_(g), random_(seed) {
    matrices_ = {"x0", "x1"};
    g_.Add("x0, x1 = Placeholder()");
    g_.Add("perm: int32[2] = [1, 0]");
    g_.Add("axes: int32[1] = [0]");
    g_.Add("square: int32[2] = [3, 3]");
    g_.Add("one: int32 = 1");
    g_.Add("fed = Placeholder()");
    shapes_ = {"square", "fed"};
    g_.Add("v0, v1 = VarHandleOp()");
    for (int i = 0; i < 30; ++i) AddOp();
    for (size_t i = matrices_.size() / 2; i < matrices_.size(); ++i) {
      g_.Add(absl::StrCat("out", i, " = Elu(", matrices_[i], ")"));
    }
    for (const char* v : {"v0", "v1"}) {
      g_.Add(absl::StrCat("out", v, " = ReadVariableOp(", v,
                          accesses_[v].last_write, ")"));
    }
  }

  // Sets the values of the inputs.
  void Feed(unsigned seed, bool infers_rows) const {
    std::mt19937 random(seed);
    for (const char* names : {"x0, v0", "x1, v1"}) {
      std::vector<float> elements(9);
      for (float& x : elements) x = std::normal_distribution<float>()(random);
      g_.Feed(absl::StrCat(names, ": float[3,3] = [",
                           absl::StrJoin(elements, ", "), "]"));
    }
    g_.Feed(absl::StrCat("fed: int32[2] = [", infers_rows ? -1 : 3, ", 3]"));
  }

 private:
  const std::string& Pick(const std::vector<std::string>& names) {
    // Recent values are more likely.
    const size_t half = random_() % 2 * (names.size() / 2);
    return names[half + random_() % (names.size() - half)];
  }
  void AddOp() {
    const std::string name = absl::StrCat("n", count_++);
    const std::string a = Pick(matrices_), b = Pick(matrices_);
    std::string op;
    switch (random_() % 12) {
      case 10: {
        const char* const v = random_() % 2 == 0 ? "v0" : "v1";
        Accesses& accesses = accesses_[v];
        g_.Add(absl::StrCat(name, " = ReadVariableOp(", v, accesses.last_write,
                            ")"));
        absl::StrAppend(&accesses.since, ", ^", name);
        matrices_.push_back(name);
        return;
      }
      case 11: {
        const char* const v = random_() % 2 == 0 ? "v0" : "v1";
        Accesses& accesses = accesses_[v];
        g_.Add(absl::StrCat(name, " = AssignVariableOp(", v, ", ", a,
                            accesses.since, ")"));
        accesses.last_write = accesses.since = absl::StrCat(", ^", name);
        return;
      }
      case 0:
        op = absl::StrCat("MatMul(", a, ", ", b);
        break;
      case 1: {
        // A sum over rows, which is broadcast again.
        g_.Add(absl::StrCat(name, "s = Sum(", a, ", axes) {keep_dims=true}"));
        op = absl::StrCat("AddV2(", b, ", ", name, "s");
        break;
      }
      case 2:
        op = absl::StrCat("Transpose(", a, ", perm");
        break;
      case 3:
        op = absl::StrCat("Reshape(", a, ", ", Pick(shapes_));
        break;
      case 4:
        g_.Add(absl::StrCat(name, "shape = Shape(", a, ")"));
        shapes_.push_back(name + "shape");
        if (random_() % 2 == 0) {
          g_.Add(absl::StrCat(name, "max = Maximum(", shapes_.back(), ", ",
                              Pick(shapes_), ") {T=int32}"));
          shapes_.push_back(name + "max");
        }
        return;
      case 5:
        g_.Add(absl::StrCat(name, "e = ExpandDims(", a, ", one)"));
        op = absl::StrCat("Squeeze(", name, "e");
        break;
      case 6:
        op = absl::StrCat("Elu(", a);
        break;
      case 7: {
        const char* const unary[] = {"Tanh", "Neg", "Square", "Identity",
                                     "Softsign"};
        op = absl::StrCat(unary[random_() % 5], "(", a);
        break;
      }
      default: {
        const char* const binary[] = {"AddV2", "Mul", "Sub", "Maximum"};
        op = absl::StrCat(binary[random_() % 4], "(", a, ", ", b);
      }
    }
    if (random_() % 4 == 0) absl::StrAppend(&op, ", ^", Pick(matrices_));
    g_.Add(absl::StrCat(name, " = ", op, ")"));
    matrices_.push_back(name);
  }

  // Control inputs: the last assignment, and this and the reads since.
  struct Accesses {
    std::string last_write, since;
  };

  RegionGraph& g_;
  std::mt19937 random_;
  std::map<std::string, Accesses> accesses_;  // by variable
  int count_ = 0;
  std::vector<std::string> matrices_, shapes_;
};

// TFPLUG_TEST_GRAPHS sets the number of graphs.
TEST_CASE("random graphs have the same results, bit by bit") {
  const char* const wanted = std::getenv("TFPLUG_TEST_GRAPHS");
  const unsigned count =
      wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : 200;
  int64_t num_regions = 0, before = 0, after = 0;
  minimal::Trace::Get().yields = false;
  RegionGraph g;
  for (unsigned seed = 0; seed < count; ++seed) {
    g.Reset();
    minimal::Trace::Get().Take();
    const RandomNodes random(g, seed);
    // The results for each set of feeds.
    std::vector<std::map<std::string, std::string>> expected(3);
    for (unsigned i = 0; i < expected.size(); ++i) {
      random.Feed(seed + i, i % 2 != 0);
      expected[i] = g.Results();
    }
    g.kernels.clear();
    before += g.graph.num_nodes();
    num_regions += g.Compile();
    after += g.graph.num_nodes();
    for (const unsigned i : {0, 1, 2, 0, 1}) {
      CAPTURE(seed);
      CAPTURE(i);
      random.Feed(seed + i, i % 2 != 0);
      g.CheckResults(expected[i]);
    }
  }
  minimal::Trace::Get().yields = true;
  CHECK(num_regions > count);
  CHECK(after * 10 < before * 8);
}

}  // namespace
}  // namespace tfplug::random_regions_test
