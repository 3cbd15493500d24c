// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fusion_graph.h"

// Graphs of random ops before and after FuseElementwise.
namespace tfplug::fuse_random_test {
namespace {

// Builds a graph of random ops, types and shapes.
class RandomGraph {
 public:
  RandomGraph(Fusion& f, unsigned seed) : f_(f), random_(seed) {
    const std::vector<std::vector<int64_t>> shapes = {
        {4, 3}, {4, 3}, {4, 3}, {3}, {4, 1}, {1, 3}, {}};
    for (size_t i = 0; i < shapes.size(); ++i) {
      std::vector<float> elements(Shape(shapes[i]).num_elements());
      for (float& x : elements) x = Real();
      const std::string name = absl::StrCat("x", i);
      f_.Feed(name, shapes[i], elements);
      of_[DataType::kFloat].push_back(name);
    }
    f_.Scalar("c", Real());
    of_[DataType::kFloat].emplace_back("c");
    for (int i = 0; i < 40; ++i) AddOp();
    int outputs = 0;
    for (const auto& [type, names] : of_) {
      for (const std::string& name : names) {
        if (f_[name].num_uses() > 0 && random_() % 4 != 0) continue;
        outputs_.push_back(absl::StrCat("out", outputs++));
        f_.Add(outputs_.back(), "Identity", {name}, type);
      }
    }
  }
  const std::vector<std::string>& outputs() const { return outputs_; }

 private:
  float Real() { return std::normal_distribution<float>()(random_); }
  std::string Pick(DataType type) {
    const auto& names = of_[type];
    return names[random_() % names.size()];
  }
  void AddOp() {
    const std::string name = absl::StrCat("n", count_++);
    DataType type = DataType::kFloat;
    for (DataType other : {DataType::kHalf, DataType::kBfloat16,
                           DataType::kInt64, DataType::kInt8}) {
      if (!of_[other].empty() && random_() % 8 == 0) type = other;
    }
    DataType out = type;
    Node node;
    switch (random_() % 8) {
      case 0: {
        const DataType all[] = {DataType::kHalf, DataType::kBfloat16,
                                DataType::kInt64, DataType::kInt8,
                                DataType::kFloat};
        out = all[random_() % 5];
        if (out == type) out = DataType::kDouble;
        node = f_.Add(name, "Cast", {Pick(type)}, out);
        node.SetAttr("SrcT", type);
        break;
      }
      case 1:
        node = f_.Add(name, "Less", {Pick(type), Pick(type)}, type);
        out = DataType::kBool;
        break;
      case 2:
        if (of_[DataType::kBool].empty()) return;
        node = f_.Add(name, "SelectV2",
                      {Pick(DataType::kBool), Pick(type), Pick(type)}, type);
        break;
      case 3:
        node = f_.Add(name, random_() % 2 == 0 ? "Identity" : "Neg",
                      {Pick(type)}, type);
        break;
      case 4: {
        const char* const floats[] = {"Tanh", "Exp", "Sigmoid", "Relu"};
        const char* const numbers[] = {"Abs", "Sign", "Square", "Neg"};
        const size_t i = random_() % 4;
        node = f_.Add(name, IsFloat(type) ? floats[i] : numbers[i],
                      {Pick(type)}, type);
        break;
      }
      default: {
        const char* const ops[] = {"AddV2", "Mul", "Sub", "Maximum"};
        node = f_.Add(name, ops[random_() % 4], {Pick(type), Pick(type)}, type);
      }
    }
    of_[out].push_back(name);
  }

  Fusion& f_;
  std::mt19937 random_;
  int count_ = 0;
  std::map<DataType, std::vector<std::string>> of_;  // names of nodes
  std::vector<std::string> outputs_;
};

TEST_CASE("random graphs have the same results, bit by bit") {
  size_t num_fused = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    Fusion f;
    const RandomGraph random(f, seed);
    std::map<std::string, std::string> expected;
    for (const std::string& name : random.outputs()) {
      expected[name] = f.Result(name);
    }
    // TensorFlow knows the shapes of some nodes.
    for (const auto& [name, tensors] : f.values) {
      if (seed % 3 != 0 && (seed % 3 == 1 || name.size() % 2 == 0)) {
        f.State(name, PartialShape(Shape(tensors[0].dims)));
      }
    }
    f.Fuse();
    for (const Node node : f.graph.nodes(kFusedMapOp)) {
      static_cast<void>(node);
      ++num_fused;
    }
    for (const std::string& name : random.outputs()) {
      CHECK_MESSAGE(f.Result(name) == expected[name], "seed ", seed, " ", name);
    }
  }
  CHECK(num_fused > 100);
}

}  // namespace
}  // namespace tfplug::fuse_random_test
