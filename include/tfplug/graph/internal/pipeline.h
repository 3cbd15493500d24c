// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_PIPELINE_H_
#define TFPLUG_GRAPH_INTERNAL_PIPELINE_H_

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/abi/tf_buffer.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/profiling.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/internal/node_fields.h"
#include "tfplug/graph/internal/output_block.h"
#include "tfplug/graph/pass_context.h"

#pragma GCC visibility push(hidden)

namespace tfplug::graph_internal {

// The factory of a pass, and the name of its class for error messages.
struct PassEntry {
  const char* name;
  std::unique_ptr<GraphPass> (*make)();
};

// The passes of one optimizer. TensorFlow passes this object to the functions
// of TP_Optimizer.
class Pipeline {
 public:
  Pipeline(std::string device_type, std::vector<PassEntry> entries)
      : device_type_(std::move(device_type)), entries_(std::move(entries)) {
    OutputBlock::AddUser();
  }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;
  ~Pipeline() { OutputBlock::RemoveUser(); }

  // TP_Optimizer::optimize_func. Returns ABORTED if no pass changed the graph:
  // TensorFlow then keeps its graph, and does not treat the status as an error.
  absl::Status Optimize(absl::string_view graph_def,
                        const capi::TF_GrapplerItem* item,
                        capi::TF_Buffer* out) {
    if (auto s = MakePasses(); !s.ok()) return s;
    absl::StatusOr<Graph> graph = Graph::Parse(graph_def, &workspace_);
    if (!graph.ok()) return graph.status();
    const PassContext context(device_type_, graph_def, item);
    for (size_t i = 0; i < passes_.size(); ++i) {
      internal::HostRecord record(internal::Activity::kGraphPass,
                                  entries_[i].name);
      if (record) record->values[0] = static_cast<uint64_t>(graph->num_nodes());
      const absl::Status status = RunOne(*passes_[i], *graph, context);
      if (record) record->values[1] = static_cast<uint64_t>(graph->num_nodes());
      if (!status.ok()) return internal::Annotate(status, entries_[i].name);
    }
    if (!graph->changed()) {
      return absl::AbortedError("no pass changed the graph");
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
        return internal::Annotate(internal::CurrentException(), entry.name);
      }
      passes_.push_back(std::move(pass));
    }
    return absl::OkStatus();
  }

  // Runs a pass and validates its result.
  static absl::Status RunOne(GraphPass& pass, Graph& graph,
                             const PassContext& context) {
    TFPLUG_INTERNAL_TRY {
      if (auto s = pass.Run(graph, context); !s.ok()) return NotAborted(s);
    }
    TFPLUG_INTERNAL_CATCH_ALL { return internal::CurrentException(); }
    if (!context.status().ok()) return context.status();
    if (!graph.changed()) return graph.status();
    if (auto s = graph.Check(); !s.ok()) return s;
    return CheckPreserved(graph, context);
  }

  // Replaces ABORTED with INTERNAL, because TensorFlow would interpret a pass's
  // ABORTED as "unchanged".
  static absl::Status NotAborted(const absl::Status& status) {
    if (!absl::IsAborted(status)) return status;
    return absl::InternalError(std::string(status.message()));
  }

  // Fails if a pass removed or renamed a node that must be preserved.
  static absl::Status CheckPreserved(Graph& graph, const PassContext& context) {
    const auto preserved = context.item().GetNodesToPreserve();
    if (!preserved.ok()) return preserved.status();
    std::set<absl::string_view> absent;
    for (const std::string& name : **preserved) {
      if (!graph.FindNode(name)) absent.insert(name);
    }
    if (absent.empty()) return absl::OkStatus();
    // TensorFlow's list may contain names that its graph does not have.
    const absl::string_view lost = FindAny(context.graph_def(), absent);
    if (lost.data() == nullptr) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "node '", lost,
        "' must be preserved (it is fed, fetched, or has a side effect), but "
        "was removed or renamed; check PassContext::IsPreserved() first"));
  }

  // Returns the name of a node of the serialized GraphDef that is among
  // `names`; null data if there is none.
  static absl::string_view FindAny(absl::string_view graph_def,
                                   const std::set<absl::string_view>& names) {
    for (internal::WireReader graph(graph_def); graph.Next();) {
      if (!graph.Is(1, internal::kBytesType)) continue;
      absl::string_view name("", 0);
      for (internal::WireReader node(graph.bytes()); node.Next();) {
        if (node.Is(kNameField, internal::kBytesType)) name = node.bytes();
      }
      if (names.count(name) > 0) return name;
    }
    return {};
  }

  // Writes the graph, which Graph::Check() has validated.
  static absl::Status Write(Graph& graph, capi::TF_Buffer* out) {
    const size_t size = graph.ByteSize();
    void* const block = OutputBlock::Allocate(size);
    if (block == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "out of host memory: cannot allocate the edited graph's ", size,
          " bytes"));
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

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_PIPELINE_H_
