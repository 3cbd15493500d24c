// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_PIPELINE_H_
#define TFPLUG_GRAPH_INTERNAL_PIPELINE_H_

#include <climits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/abi/tf_buffer.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/internal/output_block.h"
#include "tfplug/graph/pass_context.h"

namespace tfplug::internal {

// How one pass is made, and its name for messages.
struct PassEntry {
  const char* name;
  std::unique_ptr<GraphPass> (*make)();
};

// What TP_Optimizer's functions work with: the passes of one optimizer, run on
// one Graph.
class Pipeline {
 public:
  Pipeline(std::string device_type, std::vector<PassEntry> entries)
      : device_type_(std::move(device_type)), entries_(std::move(entries)) {
    OutputBlock::AddUser();
  }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;
  ~Pipeline() { OutputBlock::RemoveUser(); }

  // optimize_func: ABORTED where no pass has changed anything, which core takes
  // for "keep what you have" and not for an error.
  absl::Status Optimize(absl::string_view graph_def,
                        const capi::TF_GrapplerItem* item,
                        capi::TF_Buffer* out) {
    if (auto s = MakePasses(); !s.ok()) return s;
    absl::StatusOr<Graph> graph = Graph::Parse(graph_def, &workspace_);
    if (!graph.ok()) return graph.status();
    const PassContext context(device_type_, graph_def, item);
    for (size_t i = 0; i < passes_.size(); ++i) {
      const absl::Status status = RunOne(*passes_[i], *graph, context);
      if (!status.ok()) return Annotate(status, entries_[i].name);
    }
    if (!graph->changed()) {
      return absl::AbortedError("no pass has changed the graph");
    }
    return Write(*graph, out);
  }

 private:
  absl::Status MakePasses() {
    while (passes_.size() < entries_.size()) {
      const PassEntry& entry = entries_[passes_.size()];
      std::unique_ptr<GraphPass> pass;
      TFPLUG_INTERNAL_TRY { pass = entry.make(); }
      TFPLUG_INTERNAL_CATCH_ALL {
        return Annotate(CurrentException(), entry.name);
      }
      passes_.push_back(std::move(pass));
    }
    return absl::OkStatus();
  }

  // Runs a pass, and looks at what it leaves behind.
  static absl::Status RunOne(GraphPass& pass, Graph& graph,
                             const PassContext& context) {
    TFPLUG_INTERNAL_TRY {
      if (auto s = pass.Run(graph, context); !s.ok()) return NotAborted(s);
    }
    TFPLUG_INTERNAL_CATCH_ALL { return CurrentException(); }
    if (!context.status().ok()) return context.status();
    if (!graph.changed()) return graph.status();
    if (auto s = graph.Check(); !s.ok()) return s;
    return CheckPreserved(graph, context);
  }

  // An author's ABORTED would make core take a failure for "unchanged".
  static absl::Status NotAborted(const absl::Status& status) {
    if (!absl::IsAborted(status)) return status;
    return absl::InternalError(std::string(status.message()));
  }

  // No pass may remove, or rename, what must be preserved.
  static absl::Status CheckPreserved(Graph& graph, const PassContext& context) {
    const auto preserved = context.item().GetNodesToPreserve();
    if (!preserved.ok()) return preserved.status();
    for (const std::string& name : **preserved) {
      // Not every name is one of this graph.
      if (graph.FindNode(name) || !WasThere(context.graph_def(), name)) {
        continue;
      }
      return absl::FailedPreconditionError(
          "node '" + name +
          "' must be preserved (it is fed, fetched, or has an effect), but "
          "was removed or renamed; see PassContext::IsPreserved");
    }
    return absl::OkStatus();
  }

  // Whether the serialised GraphDef has a node of this name. Slow: for what is
  // about to be an error.
  static bool WasThere(absl::string_view graph_def, absl::string_view name) {
    for (WireReader graph(graph_def); graph.Next();) {
      if (!graph.Is(1, kBytesType)) continue;
      absl::string_view found;
      for (WireReader node(graph.bytes()); node.Next();) {
        if (node.Is(kNameField, kBytesType)) found = node.bytes();
      }
      if (found == name) return true;
    }
    return false;
  }

  static absl::Status Write(Graph& graph, capi::TF_Buffer* out) {
    const size_t size = graph.ByteSize();
    if (size > INT_MAX) {
      return absl::ResourceExhaustedError(
          "the edited graph has " + std::to_string(size) +
          " bytes, and TensorFlow cannot parse more than " +
          std::to_string(INT_MAX) + "; keep large constants in variables");
    }
    void* const block = OutputBlock::Allocate(size);
    if (block == nullptr) {
      return absl::ResourceExhaustedError("no host memory for a graph of " +
                                          std::to_string(size) + " bytes");
    }
    graph.WriteTo(static_cast<char*>(block));
    out->data = block;
    out->length = size;
    out->data_deallocator = &OutputBlock::data_deallocator;
    return absl::OkStatus();
  }

  const std::string device_type_;
  const std::vector<PassEntry> entries_;
  std::vector<std::unique_ptr<GraphPass>> passes_;
  GraphWorkspace workspace_;
};

}  // namespace tfplug::internal

#endif  // TFPLUG_GRAPH_INTERNAL_PIPELINE_H_
