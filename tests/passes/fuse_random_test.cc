// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fusion_graph.h"

// Graphs of random ops before and after FuseElementwise.
namespace tfplug::fuse_random_test {
namespace {

// Builds a graph of random ops, types and shapes.
class RandomGraph {
 public:
  RandomGraph(Fusion& f, unsigned seed) : f_(f), random_(seed) {
    const std::pair<const char*, size_t> shapes[] = {
        {"[4,3]", 12}, {"[4,3]", 12}, {"[4,3]", 12}, {"[3]", 3},
        {"[4,1]", 4},  {"[1,3]", 3},  {"[]", 1}};
    for (const auto& [shape, size] : shapes) {
      std::vector<float> elements(size);
      for (float& x : elements) x = Real();
      const std::string name = absl::StrCat("x", of_["float"].size());
      f_.Feed(absl::StrCat(name, ": float", shape, " = [",
                           absl::StrJoin(elements, ", "), "]"));
      of_["float"].push_back(name);
    }
    f_.Add(absl::StrCat("c = ", Real()));
    of_["float"].emplace_back("c");
    for (int i = 0; i < 40; ++i) AddOp(absl::StrCat("n", i));
    int outputs = 0;
    for (const auto& [type, names] : of_) {
      for (const std::string& name : names) {
        if (f_[name].num_uses() > 0 && random_() % 4 != 0) continue;
        f_.Add(absl::StrCat("out", outputs++, " = Identity(", name, ")"), type);
      }
    }
  }

 private:
  float Real() { return std::normal_distribution<float>()(random_); }
  const std::string& Pick(const std::string& type) {
    const auto& names = of_[type];
    return names[random_() % names.size()];
  }
  void AddOp(const std::string& name) {
    std::string type = "float";
    for (const std::string other : {"half", "bfloat16", "int64", "int8"}) {
      if (!of_[other].empty() && random_() % 8 == 0) type = other;
    }
    const std::string a = Pick(type), b = Pick(type);
    std::string out = type, op, attrs;
    switch (random_() % 8) {
      case 0: {
        const char* const all[] = {"half", "bfloat16", "int64", "int8",
                                   "float"};
        out = all[random_() % 5];
        if (out == type) out = "double";
        op = "Cast(" + a;
        attrs = " {SrcT=" + type + ", DstT=" + out + "}";
        break;
      }
      case 1:
        op = "Less(" + a + ", " + b;
        out = "bool";
        break;
      case 2:
        if (of_["bool"].empty()) return;
        op = "SelectV2(" + Pick("bool") + ", " + a + ", " + b;
        break;
      case 3:
        op = (random_() % 2 == 0 ? "Identity(" : "Neg(") + a;
        break;
      case 4: {
        const char* const floats[] = {"Tanh(", "Exp(", "Sigmoid(", "Relu("};
        const char* const integers[] = {"Abs(", "Sign(", "Square(", "Neg("};
        op = (type[0] == 'i' ? integers : floats)[random_() % 4] + a;
        break;
      }
      default: {
        const char* const ops[] = {"AddV2(", "Mul(", "Sub(", "Maximum("};
        op = ops[random_() % 4] + a + ", " + b;
      }
    }
    f_.Add(absl::StrCat(name, " = ", op, ")", attrs), type);
    of_[out].push_back(name);
  }

  Fusion& f_;
  std::mt19937 random_;
  std::map<std::string, std::vector<std::string>> of_;  // names, by type
};

TEST_CASE("random graphs have the same results, bit by bit") {
  int64_t num_fused = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Fusion f;
    const RandomGraph random(f, seed);
    f.Results();
    // TensorFlow knows the shapes of some nodes.
    for (const auto& [name, tensors] : f.values) {
      if (seed % 3 != 0 && (seed % 3 == 1 || name.size() % 2 == 0)) {
        const PartialShape shape{Shape(tensors[0].dims)};
        f.item.outputs[name] = {{capi::TF_FLOAT, shape, ""}};
      }
    }
    f.FuseAndCompare();
    for (const Node node : f.graph.nodes()) {
      num_fused += node.op() == kFusedMapOp;
    }
  }
  CHECK(num_fused > 100);
}

}  // namespace
}  // namespace tfplug::fuse_random_test
