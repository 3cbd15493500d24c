// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_PATTERNS_RULES_FIXTURE_H_
#define TFPLUG_TESTS_PATTERNS_RULES_FIXTURE_H_

#include <doctest/doctest.h>
#include <tfplug/graph_pass.h>
#include <tfplug/patterns/rules.h>
#include <tfplug/testing.h>
#include <tfplug/testing/graph_text.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tfplug {

using namespace patterns;

// A graph, functions that run rules on it, and a fake of TensorFlow with nodes
// to preserve, op definitions, and shapes.
class RulesFixture {
 public:
  RulesFixture() {
    preserved_.clear();
    fetched_.clear();
    op_defs_.clear();
    using internal::tensorflow;
    tensorflow.TF_GetNodesToPreserveListSize = &ListSize<preserved_>;
    tensorflow.TF_GetNodesToPreserveList = &List<preserved_>;
    tensorflow.TF_GetFetchNodesListSize = &ListSize<fetched_>;
    tensorflow.TF_GetFetchNodesList = &List<fetched_>;
    tensorflow.TF_NewFunctionLibraryDefinition = [](const capi::TF_Buffer*,
                                                    capi::TF_Status*) {
      return reinterpret_cast<capi::TF_FunctionLibraryDefinition*>(&op_defs_);
    };
    tensorflow.TF_DeleteFunctionLibraryDefinition =
        [](capi::TF_FunctionLibraryDefinition*) {};
    tensorflow.TF_LookUpOpDef = &LookUpOpDef;
    // Only shapes that a test sets are known.
    tensorflow.TF_NewGraphProperties = nullptr;
    // The ops that the rules of the tests add, with the attributes that the
    // tests need.
    DefineOp("_FusedMatMul",
             {"T: type", "transpose_a: bool", "transpose_b: bool",
              "num_args: int", "fused_ops: list(string)", "epsilon: float"});
    DefineOp("Identity", {"T: type"});
    DefineOp("Neg", {"T: type"});
    DefineOp("AddV2", {"T: type"});
    DefineOp("Transpose", {"T: type", "Tperm: type"});
    DefineOp("Relu", {"T: type"});
  }

  // Adds nodes, which are written as in testing/graph_text.h, on the device and
  // with an attribute T. Returns the last one.
  Node Add(const std::string& text) {
    testing::TF_GrapplerItem item;
    testing::GraphTextOptions options = Options();
    options.item = &item;
    const absl::StatusOr<Node> last = testing::AddNodes(graph, text, options);
    REQUIRE_MESSAGE(last.ok(), last.status().ToString());
    for (const auto& [node, outputs] : item.outputs) {
      context().properties().SetOutputs(
          node, {{static_cast<DataType>(outputs[0].dtype), outputs[0].shape}});
    }
    return *last;
  }
  // Returns how the graph differs from a text; see testing/graph_text.h.
  std::string Compare(const std::string& text) const {
    return testing::CompareGraph(graph, text, Options());
  }
  Node AddConst(const std::string& name, const Constant& value) {
    const Node node = Add(name + " = Const() {!T}");
    value.Write(node);
    return node;
  }
  // Aborts if there is no such node, which is a mistake of the test.
  Node operator[](const std::string& name) {
    const Node node = graph.FindNode(name);
    if (!node) std::abort();
    return node;
  }
  // Preserves a node, which may be fed.
  void Preserve(const std::string& name) { preserved_.insert(name); }
  // Preserves a node because its output 0 is fetched.
  void Fetch(const std::string& name) {
    preserved_.insert(name);
    fetched_.insert(name + ":0");
  }

  // Defines an op of TensorFlow's registry. Attributes are "name: kind"; those
  // of kind bool and float have a default. Inputs and outputs are "x: T",
  // "x: N * T", "x: Tlist" and "x: float".
  static void DefineOp(const std::string& name,
                       const std::vector<std::string>& attrs,
                       const std::vector<std::string>& inputs = {},
                       const std::vector<std::string>& outputs = {"y: T"}) {
    std::string op;
    internal::AppendField(op, 1, name);
    for (const std::string& arg : inputs) {
      internal::AppendField(op, 2, ArgDef(arg));
    }
    for (const std::string& arg : outputs) {
      internal::AppendField(op, 3, ArgDef(arg));
    }
    for (const std::string& spec : attrs) {
      const size_t colon = spec.find(':');
      const std::string kind = spec.substr(colon + 2);
      std::string attr;
      internal::AppendField(attr, 1, spec.substr(0, colon));
      internal::AppendField(attr, 2, kind);
      if (kind == "bool") {
        internal::AppendField(attr, 3, graph::AttrCodec<bool>::Encode(0));
      } else if (kind == "float") {
        internal::AppendField(attr, 3, graph::AttrCodec<float>::Encode(1));
      }
      internal::AppendField(op, 4, attr);
    }
    op_defs_[name] = op;
  }

  PassContext& context() {
    if (!context_.has_value()) context_.emplace("SIM", "", nullptr);
    return *context_;
  }
  // Returns the number of replacements, or the error's message.
  std::string Run(const Rules& rules) {
    const absl::StatusOr<int64_t> count = rules.Run(graph, context());
    if (!count.ok()) return std::string(count.status().message());
    REQUIRE(graph.status().ok());
    REQUIRE(graph.TopologicalOrder().ok());
    return std::to_string(*count);
  }
  std::string Explain(const Rules& rules, const std::string& node) {
    return rules.Explain((*this)[node], context());
  }
  std::string Print() const { return testing::PrintGraph(graph, Options()); }

  Graph graph;
  std::string device = "/job:localhost/replica:0/task:0/device:SIM:0";

 private:
  testing::GraphTextOptions Options() const {
    return {device, "T=float", nullptr};
  }
  static std::string ArgDef(const std::string& spec) {
    const size_t colon = spec.find(':'), star = spec.find('*');
    std::string arg;
    internal::AppendField(arg, 1, spec.substr(0, colon));
    const bool is_list = star != spec.npos;
    const std::string type = spec.substr((is_list ? star : colon) + 2);
    if (type == "float") {
      internal::AppendField(arg, 3, static_cast<uint64_t>(DataType::kFloat));
    } else {
      const bool is_type_list = type.find("list") != type.npos;
      internal::AppendField(arg, is_type_list ? 6 : 4, type);
    }
    if (is_list) {
      internal::AppendField(arg, 5, spec.substr(colon + 2, star - colon - 3));
    }
    return arg;
  }
  template <std::set<std::string>& names>
  static void ListSize(const capi::TF_GrapplerItem*, int* count, size_t* bytes,
                       capi::TF_Status*) {
    *count = static_cast<int>(names.size());
    *bytes = 0;
    for (const std::string& name : names) *bytes += name.size();
  }
  template <std::set<std::string>& names>
  static void List(const capi::TF_GrapplerItem*, char** values, size_t* lengths,
                   int, void* storage, size_t, capi::TF_Status*) {
    char* to = static_cast<char*>(storage);
    for (const std::string& name : names) {
      std::memcpy(to, name.data(), name.size());
      *values++ = to;
      *lengths++ = name.size();
      to += name.size();
    }
  }
  static void LookUpOpDef(capi::TF_FunctionLibraryDefinition*, const char* name,
                          capi::TF_Buffer* buffer, capi::TF_Status* status) {
    const auto found = op_defs_.find(name);
    if (found == op_defs_.end()) {
      internal::tensorflow.TF_SetStatus(status, capi::TF_NOT_FOUND,
                                        "unknown op");
      return;
    }
    buffer->data = found->second.data();
    buffer->length = found->second.size();
  }

  static inline std::set<std::string> preserved_, fetched_;
  static inline std::map<std::string, std::string> op_defs_;

  testing::ScopedFakeTensorFlow fake_;
  std::optional<PassContext> context_;
};

// Also defines ops with inputs and outputs, from which types follow.
struct NewOpsFixture : RulesFixture {
  NewOpsFixture() {
    DefineOp("Placeholder", {"T: type"});
    DefineOp("MyNorm", {"T: type", "epsilon: float"}, {"x: T"},
             {"y: T", "mean: T", "scale: float"});
    DefineOp("MySplit", {"T: type", "num: int"}, {"x: T"}, {"y: num * T"});
    DefineOp("Rsqrt", {"T: type"}, {"x: T"});
    DefineOp("Square", {"T: type"}, {"x: T"});
    DefineOp("MatMul", {"T: type"}, {"a: T", "b: T"});
    DefineOp("ConcatV2", {"N: int", "T: type", "Tidx: type"},
             {"values: N * T", "axis: Tidx"});
    Add("x, y = Placeholder()");
  }
  const Pattern x = Any("x");
};

inline Rules MakeRules(Rule rule) {
  std::vector<Rule> rules;
  rules.push_back(std::move(rule));
  return Rules(std::move(rules));
}

}  // namespace tfplug

#endif  // TFPLUG_TESTS_PATTERNS_RULES_FIXTURE_H_
