// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_CHECK_RESULTS_H_
#define TFPLUG_CHECK_RESULTS_H_

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "example_graphs.h"
#include "graphs.h"
#include "plugin.h"
#include "tfplug/testing/executor.h"

// Checks that passes keep a graph's values: it runs on the plug-in's device,
// before and after them.
namespace tfplug::check {

class GraphResults {
 public:
  explicit GraphResults(Plugin& plugin)
      : plugin_(plugin), report_(plugin.report()), random_(plugin.seed) {}

  void Check() {
    if (plugin_.graph() == nullptr || !Open()) return;
    for (const ExampleGraph& graph : HandMadeGraphs()) {
      if (!Compare(graph)) return;
    }
    const auto has = [this](const std::string& op) { return Has(op); };
    RandomGraph random(plugin_.seed, has);
    // Small ones first. They may need much time, if each has kernels to compile.
    const auto begin = std::chrono::steady_clock::now();
    int count = 0;
    for (; count < kMost; ++count) {
      const auto name =
          absl::StrCat("random graph ", count, " of seed ", plugin_.seed);
      if (!Compare(random.Write(name, 2 + count / 4))) return;
      if (std::chrono::steady_clock::now() - begin > kLongest) break;
    }
    if (ran_ == 0) {
      return report_.Skip(
          "the device has no float kernels for the graphs of this check");
    }
    report_.Note(absl::StrCat(ran_, " graphs, the random ones of seed ",
                              plugin_.seed, ", of which the passes changed ",
                              changed_));
  }

 private:
  static constexpr int kMost = 60;
  static constexpr std::chrono::seconds kLongest{10};
  // Some hundred roundings of a float.
  static constexpr float kRounding = 1e-5f;
  static constexpr char kNotRun[] = "the check cannot run it: ";
  using Values = std::vector<testing::Value<float>>;

  // Creates the device and finds its type. Returns false after a report.
  bool Open() {
    if (plugin_.init_plugin() == nullptr) {
      report_.Skip("the plug-in adds no device on which graphs could run");
      return false;
    }
    // Never destroyed, as in TensorFlow.
    process_ = new testing::Process({plugin_.release});
    report_.Step("registration");
    testing::EntryPoints found;
    found.init_plugin = plugin_.init_plugin();  // graph() registered kernels
    if (!report_.Ok(process_->Load(found), "registration")) return false;
    type_ = plugin_.graph()->device_type();
    report_.Step("creation of the devices");
    const auto device = process_->Device(type_);
    if (device.ok()) return true;
    report_.Skip(absl::StrCat("there is no device of the type of the passes, ",
                              type_, ": ", device.status().message()));
    return false;
  }

  bool Has(const std::string& op) const {
    if (op == "Identity") return true;
    const testing::Node node = {op, "node", {{"T", DataType::kFloat}}, {}};
    return testing::KernelRegistry::Get().Find(node, type_) != nullptr;
  }

  // Runs a graph before and after the passes. Returns false after an error.
  bool Compare(const ExampleGraph& graph) {
    auto example = MakeExample(plugin_, graph.text, {});
    if (example == nullptr) return false;
    testing::Executor::Feeds feeds;
    std::vector<std::string> fetches;
    SetFeedsAndFetches(*example, feeds, fetches);
    report_.Step(graph.name + ", before the passes");
    const auto before = Run(example->bytes, feeds, fetches);
    // The device need not have all kernels.
    if (!before.ok()) return true;
    const auto tolerances = Tolerances(*example, feeds, fetches);
    if (!report_.Ok(tolerances.status(), graph.name + ", every value")) {
      return false;
    }
    ++ran_;
    for (const bool has_shapes : {true, false}) {
      const std::string name =
          graph.name + (has_shapes ? "" : ", without shapes");
      if (!has_shapes) {
        example->item.inputs.clear();
        example->item.outputs.clear();
      }
      report_.Step(absl::StrCat(name, ": optimize_func"));
      const auto outcome =
          plugin_.graph()->Optimize(example->bytes, example->item);
      if (has_shapes && outcome.graph != example->bytes) ++changed_;
      report_.Step(absl::StrCat(name, ", after the passes"));
      const auto after = Run(outcome.graph, feeds, fetches);
      if (!after.ok() && absl::IsNotFound(after.status())) {
        NoteUnknown(std::string(after.status().message()), name);
        continue;
      }
      const std::string difference =
          after.ok() ? Difference(fetches, *before, *after, *tolerances)
                     : after.status().ToString();
      if (difference.empty()) continue;
      report_.Error(absl::StrCat(name, ": ", difference,
                                 ". The graph: ", Print(example->bytes),
                                 " After the passes: ", Print(outcome.graph)));
      return false;
    }
    return true;
  }

  // The executor has neither ops that a plug-in defines in C++ nor TensorFlow's
  // own kernels.
  void NoteUnknown(const std::string& reason, const std::string& where) {
    // Once for each op, the text in parentheses: the names of nodes differ.
    if (!unknown_.insert(reason.substr(reason.find('(') + 1)).second) return;
    if (absl::StrContains(reason, "its op is not known") ||
        absl::StartsWith(reason, kNotRun)) {
      report_.Note(absl::StrCat("could not run what the passes make of ", where,
                                ": ", reason));
    } else {
      report_.Warning(absl::StrCat(
          where,
          ": the passes make a node for which the device has no kernel: ",
          reason.substr(0, reason.find('.')),
          ". It fails unless TensorFlow has one for any device"));
    }
  }

  // Finds what is fed and fetched, and states that TensorFlow preserves it.
  void SetFeedsAndFetches(Example& example, testing::Executor::Feeds& feeds,
                          std::vector<std::string>& fetches) {
    const auto graph = Graph::Parse(example.bytes);
    for (const tfplug::Node node : graph->nodes()) {
      const std::string name(node.name());
      if (absl::StartsWith(name, "out")) {
        fetches.push_back(name);
        example.item.fetch_nodes.push_back(name);
      } else if (absl::StartsWith(name, "fed") || node.op() == "Placeholder") {
        feeds.emplace(name, RandomTensor(ShapeOf(example, node)));
      } else {
        continue;
      }
      example.item.nodes_to_preserve.push_back(name);
    }
  }

  // Returns the shape that the text gives.
  static std::vector<int64_t> ShapeOf(const Example& example,
                                      tfplug::Node node) {
    const PartialShape shape = PropertyOf(example.item, node).shape;
    std::vector<int64_t> dims;
    for (int i = 0; i < shape.rank(); ++i) dims.push_back(shape.dim(i));
    return dims;
  }

  testing::TF_Tensor RandomTensor(const std::vector<int64_t>& dims) {
    std::vector<float> elements(
        static_cast<size_t>(testing::CountElements(dims)));
    std::uniform_real_distribution<float> near_zero(-1, 1);
    for (float& element : elements) element = near_zero(random_);
    return testing::MakeTensor<float>(dims, elements);
  }

  absl::StatusOr<Values> Run(const std::string& bytes,
                             const testing::Executor::Feeds& feeds,
                             const std::vector<std::string>& fetches) {
    auto graph = Graph::Parse(bytes);
    if (!graph.ok()) return graph.status();
    testing::Executor::Options options;
    options.device = type_ + ":0";
    options.seed = plugin_.seed;
    auto executor = testing::Executor::Create(*process_, *graph, options);
    if (absl::IsUnimplemented(executor.status())) {
      return absl::NotFoundError(
          absl::StrCat(kNotRun, executor.status().message()));
    }
    if (!executor.ok()) return executor.status();
    const auto tensors = (*executor)->Run(feeds, fetches);
    if (!tensors.ok()) return tensors.status();
    Values values;
    for (const testing::TF_Tensor& tensor : *tensors) {
      if (tensor.dtype != capi::TF_FLOAT) {
        return absl::InternalError("an output is no longer float");
      }
      values.push_back(*testing::ReadTensor<float>(nullptr, tensor));
    }
    return values;
  }

  // Returns how far each fetched value may be from the one before the passes, beside
  // its own rounding: values that cancel each other out leave what they were rounded
  // by, so that the largest of those from which it is computed decides.
  absl::StatusOr<std::vector<float>> Tolerances(
      const Example& example, const testing::Executor::Feeds& feeds,
      const std::vector<std::string>& fetches) {
    const auto graph = Graph::Parse(example.bytes);
    std::vector<float> tolerances;
    for (const std::string& fetch : fetches) {
      std::vector<std::string> names = {fetch};
      for (size_t i = 0; i < names.size(); ++i) {
        const auto node = graph->FindNode(names[i]);
        for (int k = 0; k < node.num_inputs(); ++k) {
          const tfplug::Node from = node.input(k).node;
          const std::string name(from.name());
          const bool is_float =
              PropertyOf(example.item, from).dtype == capi::TF_FLOAT;
          if (is_float && absl::c_find(names, name) == names.end()) {
            names.push_back(name);
          }
        }
      }
      auto values = Run(example.bytes, feeds, names);
      if (!values.ok()) return values.status();
      float largest = 0;
      for (const testing::Value<float>& value : *values) {
        for (const float element : value.elements) {
          largest = std::max(largest, std::fabs(element));
        }
      }
      tolerances.push_back(kRounding * largest);
    }
    return tolerances;
  }

  static std::string Difference(const std::vector<std::string>& names,
                                const Values& before, const Values& after,
                                const std::vector<float>& tolerances) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (before[i].dims != after[i].dims) {
        return absl::StrCat(names[i], " has shape [",
                            absl::StrJoin(after[i].dims, ","), "] instead of [",
                            absl::StrJoin(before[i].dims, ","), "]");
      }
      for (size_t k = 0; k < before[i].elements.size(); ++k) {
        const float a = before[i].elements[k], b = after[i].elements[k];
        // Fused ops may round less often.
        const bool is_equal =
            a == b || (std::isnan(a) && std::isnan(b)) ||
            std::fabs(a - b) <= 1e-3f * (1 + std::fabs(a)) + tolerances[i];
        if (is_equal) continue;
        return absl::StrCat("element ", k, " of ", names[i], " is ", b,
                            " after the passes, and ", a, " without them");
      }
    }
    return "";
  }

  std::string Print(const std::string& bytes) const {
    const auto graph = Graph::Parse(bytes);
    if (!graph.ok()) return "unreadable.";
    testing::GraphTextOptions options;
    options.device = check::DeviceName(type_);
    options.attrs = "T=float";
    std::string text;
    for (const tfplug::Node node : graph->nodes()) {
      absl::StrAppend(&text, testing::PrintNode(node, options), "; ");
    }
    return text;
  }

  Plugin& plugin_;
  Report& report_;
  std::mt19937_64 random_;
  testing::Process* process_ = nullptr;
  std::string type_;
  int ran_ = 0, changed_ = 0;
  std::set<std::string> unknown_;  // reasons
};

inline void CheckGraphResults(Plugin& plugin) { GraphResults(plugin).Check(); }

}  // namespace tfplug::check

#endif  // TFPLUG_CHECK_RESULTS_H_
