// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BENCHMARKS_GRAPH_OPPONENTS_MESSAGE_MEMORY_H_
#define TFPLUG_BENCHMARKS_GRAPH_OPPONENTS_MESSAGE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "google/protobuf/arena.h"
#include "google/protobuf/stubs/common.h"
#include "worker.h"

// An arena for the GraphDefs of either protobuf, in memory that is allocated in
// advance and reused for the next graph.
template <class GraphDef>
class MessageMemory {
  using Arena = google::protobuf::Arena;

 public:
  // Allocates as much as `graph` needs, unless that is empty.
  explicit MessageMemory(std::string_view graph) {
    if (graph.empty()) return;
    Arena arena;
    New(arena)->ParseFromArray(graph.data(), static_cast<int>(graph.size()));
    size_ = arena.SpaceUsed() + arena.SpaceUsed() / 2 + 4096;
    block_.reset(new char[size_]);
  }

  // A graph in the memory; null if the bytes are malformed.
  struct Parsed {
    Parsed(MessageMemory& memory, std::string_view bytes)
        : arena(memory.Options()), graph(New(arena)) {
      const int size = static_cast<int>(bytes.size());
      if (!graph->ParseFromArray(bytes.data(), size)) graph = nullptr;
    }
    Arena arena;
    GraphDef* graph;
  };

 private:
  static GraphDef* New(Arena& arena) {
#if GOOGLE_PROTOBUF_VERSION < 4000000
    return Arena::CreateMessage<GraphDef>(&arena);
#else
    return Arena::Create<GraphDef>(&arena);
#endif
  }
  google::protobuf::ArenaOptions Options() const {
    google::protobuf::ArenaOptions options;
    options.initial_block = block_.get();
    options.initial_block_size = size_;
    return options;
  }

  std::unique_ptr<char[]> block_;
  size_t size_ = 0;
};

template <class GraphDef>
void Write(const GraphDef& graph, Output& out) {
  char* const to = out.Reserve(graph.ByteSizeLong());
  graph.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(to));
}

#endif  // TFPLUG_BENCHMARKS_GRAPH_OPPONENTS_MESSAGE_MEMORY_H_
