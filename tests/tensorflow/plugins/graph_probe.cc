// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/graph_pass.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include "absl/strings/str_cat.h"

// An optimizer without a device, for graphs with a node on a CPU. The first
// pass writes each graph to $GRAPH_PROBE_FOLDER/NNNN.pb and changes nothing;
// $GRAPH_PROBE_MODE selects the action of the second one.
namespace graph_probe {

std::string GetEnv(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class Write : public tfplug::GraphPass {
 public:
  absl::Status Run(tfplug::Graph& /*graph*/,
                   const tfplug::PassContext& context) override {
    static std::atomic<int> number{1000};
    const std::string stem =
        absl::StrCat(GetEnv("GRAPH_PROBE_FOLDER"), "/", ++number);
    std::ofstream(stem + ".pb", std::ios::binary)
        .write(context.graph_def().data(),
               static_cast<std::streamsize>(context.graph_def().size()));
    std::ofstream names(stem + ".names");
    TFPLUG_ASSIGN_OR_RETURN(const auto* fetched,
                            context.item().GetFetchNodes());
    for (const std::string& name : *fetched) names << "fetch " << name << "\n";
    TFPLUG_ASSIGN_OR_RETURN(const auto* kept,
                            context.item().GetNodesToPreserve());
    for (const std::string& name : *kept) names << "keep " << name << "\n";
    return absl::OkStatus();
  }
};

class Edit : public tfplug::GraphPass {
 public:
  absl::Status Run(tfplug::Graph& graph,
                   const tfplug::PassContext& context) override {
    const std::string mode = GetEnv("GRAPH_PROBE_MODE");
    for (tfplug::Node node : graph.nodes("Sin")) {
      if (mode == "nothing") continue;
      node.SetOp("Cos");
      if (mode == "error") {
        return absl::InvalidArgumentError(
            absl::StrCat("node '", node.name(), "' is half edited"));
      }
      if (mode == "throw") throw std::runtime_error("thrown while half edited");
      if (mode == "remove") return RemovePreservedNode(graph, context);
      if (mode == "properties") return CheckProperties(node, context);
      if (mode == "cycle") {
        TFPLUG_RETURN_IF_ERROR(node.AddControl(node));
        TFPLUG_RETURN_IF_ERROR(graph.TopologicalOrder().status());
      }
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status RemovePreservedNode(tfplug::Graph& graph,
                                          const tfplug::PassContext& context) {
    for (tfplug::Node node : graph.nodes()) {
      if (context.IsPreserved(node.name()) && node.num_uses() == 0) {
        return graph.RemoveNode(node);
      }
    }
    return absl::NotFoundError("nothing is preserved");
  }

  // Returns an error that describes the properties of some nodes, which
  // TensorFlow logs.
  static absl::Status CheckProperties(tfplug::Node node,
                                      const tfplug::PassContext& context) {
    auto& properties = context.properties();
    TFPLUG_ASSIGN_OR_RETURN(const auto outputs,
                            properties.GetOutputs(node.name()));
    TFPLUG_ASSIGN_OR_RETURN(const auto* op,
                            context.functions().GetSignature("Sin"));
    std::string text = absl::StrCat(
        "Sin makes ", tfplug::DataTypeName(outputs[0].dtype),
        outputs[0].shape.ToString(), "; op has ", op->attrs.size(), " attr");
    for (const tfplug::Node& any : {node.input(0).node}) {
      absl::StrAppend(&text, "; input is ",
                      properties.GetOutputs(any.name()).status().ok()
                          ? "known"
                          : "unknown");
    }
    absl::StrAppend(&text, "; a new node is ",
                    absl::IsNotFound(properties.GetOutputs("new").status())
                        ? "unknown"
                        : "?");
    return absl::InvalidArgumentError(text);
  }
};

}  // namespace graph_probe

TFPLUG_REGISTER_GRAPH_PASSES("CPU", graph_probe::Write, graph_probe::Edit);
