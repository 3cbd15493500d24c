// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_GRAPH_TABLES_H_
#define TFPLUG_GRAPH_INTERNAL_GRAPH_TABLES_H_

#include <algorithm>
#include <cstdint>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/separate.h"
#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/graph/internal/node_fields.h"

#pragma GCC visibility push(hidden)

// Parses a GraphState, and builds its tables of names, edges and uses from the
// index when they are first needed.
namespace tfplug::graph_internal {

TFPLUG_SEPARABLE void GraphState::Clear() {
  bytes_ = {};
  index_.Clear();
  num_parsed_ = num_removed_ = num_boundary_ = 0;
  results_.clear();
  changed_ = has_edges_ = has_missing_ = false;
  byte_size_ = kUnknownSize;
  edited_ops_ = 0;
  status_ = absl::OkStatus();
  edges_.clear();
  added_edges_.clear();
  mixed_.clear();
  uses_.Clear();
  overlay_.Clear();
}

TFPLUG_SEPARABLE absl::Status GraphState::Parse(absl::string_view graph_def) {
  Clear();
  return Index(graph_def);
}

TFPLUG_SEPARABLE absl::Status GraphState::Index(absl::string_view bytes) {
  if (bytes.size() > INT32_MAX) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the graph has ", bytes.size(),
        " bytes, but TensorFlow cannot read more than 2147483647; keep large "
        "constants in variables"));
  }
  bytes_ = bytes;
  absl::Status status =
      index_.Build(bytes, node_field(), overlay_.arena(), edges_);
  if (!status.ok()) return status;
  num_parsed_ = size();
  for (const ReorderedNode& node : index_.reordered) {
    NodeFields fields;
    FindFields(node.fields.data(), node.fields.data() + node.fields.size(),
               &fields, [](absl::string_view) {});
    index_.names.Set(node.node, fields.name);
    NodeEdit& edit = overlay_.Add(node.node, size());
    edit.input_bytes = absl::string_view(
        fields.inputs, static_cast<size_t>(fields.tail - fields.inputs));
    edit.tail = absl::string_view(
        fields.tail, static_cast<size_t>(fields.end - fields.tail));
  }
  return absl::OkStatus();
}

// ---- Names ----

TFPLUG_SEPARABLE void GraphState::NoteDuplicate(uint32_t n) {
  Note(absl::InvalidArgumentError(
      absl::StrCat("two nodes have the name '", name(n), "'")));
}

TFPLUG_SEPARABLE void GraphState::BuildNames() {
  // Inputs cannot refer to a result of a function, so results have no entries.
  const uint32_t first_result = results_.empty() ? size() : results_[0].node;
  ParsedHashes& hashes = index_.hashes;
  const uint64_t* const known =
      hashes.nodes.empty() ? nullptr : hashes.nodes.data();
  const auto duplicate = [this](uint32_t n) { NoteDuplicate(n); };
  if (ABSL_PREDICT_TRUE(num_removed_ == 0 && results_.empty())) {
    index_.names.BuildTable(
        known, [](uint32_t) { return true; }, duplicate);
  } else {
    const auto has_name = [&](uint32_t n) {
      return live(n) && n - first_result >= results_.size();
    };
    index_.names.BuildTable(known, has_name, duplicate);
  }
  hashes.nodes.clear();  // Nodes may be renamed from now on.
}

TFPLUG_SEPARABLE absl::Status GraphState::CheckName(absl::string_view name) {
  if (name.empty()) {
    return absl::InvalidArgumentError("the name of a node cannot be empty");
  }
  if (IsPlainName(name)) return absl::OkStatus();
  const Reference reference = ParseInput(name);
  return absl::InvalidArgumentError(absl::StrCat(
      "the name of a node cannot be '", name, "': as an input, it refers to ",
      reference.port == kControlPort ? "a control edge from" : "an output of",
      " node '", reference.name, "'"));
}

// ---- Edges ----

// Sets sources and ports in edges_. Parses each input with parse(text,
// &num_controls).
template <class F>
void GraphState::Resolve(const F& parse) {
  if (ABSL_PREDICT_FALSE(!index_.names.is_exact())) {
    ResolveOneByOne(parse);
  } else if (index_.names.is_small()) {
    ResolveByHash<true>(parse);
  } else {
    ResolveByHash<false>(parse);
  }
}

template <bool kIsSmall, class F>
void GraphState::ResolveByHash(const F& parse) {
  NodeNames::Search<kIsSmall> search(index_.names);
  Edge* const edges = edges_.data();
  const char* const base = index_.base;
  const uint32_t num_edges = num_parsed_edges();
  uint32_t num_controls = index_.hashes.num_controls;
  const auto resolve =
      [&](Edge* edge, absl::string_view text) ABSL_ATTRIBUTE_ALWAYS_INLINE {
        const Reference reference = parse(text, &num_controls);
        edge->port = reference.port;
        search.Add(reference.name, &edge->source);
      };
  if (!index_.hashes.edges.empty()) {
    const uint64_t* const hashes = index_.hashes.edges.data();
    for (uint32_t e = 0; e < num_edges; ++e) {
      search.AddHash(hashes[e], &edges[e].source);
    }
  } else {
    Edge* edge = edges;
    const ReorderedNode* reordered = index_.reordered.begin();
    while (true) {
      const bool is_last = reordered == index_.reordered.end();
      const uint32_t n = is_last ? num_parsed_ : reordered->node;
      for (const Edge* end = edges + index_.first_edge(n); edge < end; ++edge) {
        if (!kIsSmall && edge + kAhead < end) {
          Prefetch(base + edge[kAhead].source);
          Prefetch(base + edge[kAhead].source + edge[kAhead].port - 1);
        }
        resolve(edge, absl::string_view(base + edge->source,
                                        static_cast<uint32_t>(edge->port)));
      }
      if (is_last) break;
      const char* p = input_bytes(n);
      const Edge* const end = edges + index_.first_edge(n + 1);
      for (; edge < end; ++edge) resolve(edge, ReadInput(&p));
      ++reordered;
    }
  }
  search.Finish();
  if (num_controls > 0) PutControlsLast(num_controls);
  has_missing_ = search.has_missing();
  if (ABSL_PREDICT_FALSE(has_missing_)) NoteMissing();
}

// Does the same if names have equal hashes, which hardly ever occurs.
template <class F>
void GraphState::ResolveOneByOne(const F& parse) {
  uint32_t num_controls = 0;
  for (uint32_t n = 0; n < num_parsed_; ++n) {
    const char* p = input_bytes(n);
    for (uint32_t e = index_.first_edge(n); e < index_.first_edge(n + 1); ++e) {
      const Reference reference = parse(ReadInput(&p), &num_controls);
      edges_[e] = {index_.names.Find(reference.name), reference.port};
      has_missing_ |= edges_[e].source == kNoNode;
    }
  }
  PutControlsLast(num_controls);
  if (has_missing_) NoteMissing();
}

// Puts each node's data edges before its control edges, of which there are at
// most `num_controls`.
TFPLUG_SEPARABLE void GraphState::PutControlsLast(uint32_t num_controls) {
  const Edge* const edges = edges_.data();
  uint32_t num_last = 0;
  for (uint32_t n = 0; n < num_parsed_; ++n) {
    const uint32_t begin = index_.first_edge(n);
    uint32_t e = index_.first_edge(n + 1);
    for (; e > begin && edges[e - 1].port == kControlPort; --e) ++num_last;
  }
  if (ABSL_PREDICT_TRUE(num_last == num_controls)) return;
  uint32_t n = 0;
  for (uint32_t e = 1; e < num_parsed_edges(); ++e) {
    if (edges[e - 1].port != kControlPort || edges[e].port == kControlPort) {
      continue;
    }
    // A data input follows a control input: of the same node?
    while (index_.first_edge(n + 1) <= e) ++n;
    if (index_.first_edge(n) == e) continue;
    if (mixed_.empty() || mixed_.back() != n) mixed_.push_back(n);
  }
  for (uint32_t node : mixed_) {
    std::stable_partition(
        edges_.data() + index_.first_edge(node),
        edges_.data() + index_.first_edge(node + 1),
        [](const Edge& edge) { return edge.port != kControlPort; });
  }
}

TFPLUG_SEPARABLE void GraphState::BuildEdges() {
  EnsureNames();
  has_edges_ = true;
  if (ABSL_PREDICT_FALSE(is_function_)) {
    Resolve([this](absl::string_view text, uint32_t* num_controls) {
      const Reference reference = ParseBodyReference(text, ports_);
      *num_controls += reference.port == kControlPort;
      return reference;
    });
  } else {
    Resolve([](absl::string_view text, uint32_t* num_controls) {
      return ParseReference(text, num_controls);
    });
  }
  for (const Result& result : results_) {
    NodeEdit& edit = *overlay_.Find(result.node);
    InputEdit& input =
        *(edit.inputs.size() > 0 ? edit.inputs : edit.controls).begin();
    const Reference reference = ParseInput(input.text());
    input.edge = static_cast<uint32_t>(edges_.size());
    AddEdge({index_.names.Find(reference.name), reference.port},
            {result.node, 0});
  }
}

TFPLUG_SEPARABLE void GraphState::NoteMissing() {
  for (uint32_t n = 0; n < num_parsed_; ++n) {
    const char* p = input_bytes(n);
    for (uint32_t e = index_.first_edge(n); e < index_.first_edge(n + 1); ++e) {
      const absl::string_view text = ReadInput(&p);
      const absl::string_view source = ParseInput(text).name;
      if (index_.names.Find(source) != kNoNode) continue;
      return Note(absl::InvalidArgumentError(
          absl::StrCat("node '", name(n), "' has the input '", text,
                       "', but the graph has no node '", source, "'")));
    }
  }
}

// ---- Uses ----

TFPLUG_SEPARABLE void GraphState::BuildUseCounts() {
  EnsureEdges();
  uses_.BuildCounts(size(), num_parsed_edges(), edges_);
  for (uint32_t i = 0; i < results_.size(); ++i) {
    const uint32_t edge = num_parsed_edges() + i;
    const uint32_t source = edges_[edge].source;
    if (source != kNoNode) uses_.Add(source, {results_[i].node, edge});
  }
}

TFPLUG_SEPARABLE void GraphState::BuildUses() {
  EnsureUseCounts();
  uses_.BuildLists(index_.records, size(), num_parsed_, edges_, added_edges_);
}

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_GRAPH_TABLES_H_
