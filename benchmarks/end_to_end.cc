// SPDX-License-Identifier: Apache-2.0
// Repeats TensorFlow's steps around a pass with libprotobuf, and runs the pass
// of end_to_end_pass.cc with tfplug::Graph (the view) and with messages. Built
// and run by end_to_end.py:
//
//   end_to_end GRAPH ROUNDS   prints a line of JSON: the processor time of each
//                             step of each round, in seconds
#include <google/protobuf/arena.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "processor_time.h"
#include "tfplug/graph/graph.h"
#include "tfplug/proto/graph.pb.h"

namespace {

using google::protobuf::Arena;
using tfplug::proto::GraphDef;

constexpr const char* kMarked[] = {"Conv2D", "_FusedConv2D", "MatMul",
                                   "_FusedMatMul"};

std::map<std::string, std::vector<double>> seconds;
template <class F>
void Time(const char* step, const F& f) {
  seconds[step].push_back(Seconds(f));
}

void Require(bool fine, const char* what) {
  if (fine) return;
  std::fprintf(stderr, "%s failed\n", what);
  std::exit(1);
}

// Memory for one graph, newly allocated, as in TensorFlow.
struct Block {
  explicit Block(size_t bytes) : data(std::malloc(bytes)), size(bytes) {}
  ~Block() { std::free(data); }
  void* const data;
  const size_t size;
};

std::unique_ptr<Block> Serialize(const GraphDef& graph) {
  auto block = std::make_unique<Block>(graph.ByteSizeLong());
  Require(graph.SerializeToArray(block->data, static_cast<int>(block->size)),
          "SerializeToArray");
  return block;
}

// Repeats TensorFlow's steps before and after the call to the plug-in.
void TensorFlow(const std::string& bytes) {
  auto graph = std::make_unique<GraphDef>();
  Time("TensorFlow parses",
       [&] { Require(graph->ParseFromString(bytes), "parse"); });
  Time("TensorFlow serializes", [&] { Serialize(*graph); });
  Time("TensorFlow frees", [&] { graph.reset(); });
}

// The author's pass, which writes its results to reused memory.
class Passes {
 public:
  explicit Passes(const std::string& bytes)
      : bytes_(bytes), arena_(bytes.size() * 16), out_(bytes.size() * 2) {}

  void Run() {
    Time("view marks", [&] { View(true); });
    Time("messages mark", [&] { Messages(true); });
    Time("view idles", [&] { View(false); });
    Time("messages idle", [&] { Messages(false); });
  }

 private:
  void View(bool mark) {
    auto graph = tfplug::Graph::Parse(bytes_, &workspace_);
    Require(graph.ok(), "Graph::Parse");
    if (!mark) {
      return Require(!graph->has_op("NoSuchOp"), "finding nothing to do");
    }
    for (const char* op : kMarked) {
      for (tfplug::Node node : graph->nodes(op)) node.SetAttr("_marked", true);
    }
    Require(graph->ByteSize() <= out_.size, "reserving memory");
    graph->WriteTo(static_cast<char*>(out_.data));
  }
  void Messages(bool mark) {
    google::protobuf::ArenaOptions options;
    options.initial_block = static_cast<char*>(arena_.data);
    options.initial_block_size = arena_.size;
    Arena arena(options);
    auto& graph = *Arena::CreateMessage<GraphDef>(&arena);
    Require(graph.ParseFromString(bytes_), "parse");
    for (tfplug::proto::NodeDef& node : *graph.mutable_node()) {
      if (!mark) {
        Require(node.op() != "NoSuchOp", "finding nothing to do");
        continue;
      }
      for (const char* op : kMarked) {
        if (node.op() == op) (*node.mutable_attr())["_marked"].set_b(true);
      }
    }
    if (!mark) return;
    Require(graph.ByteSizeLong() <= out_.size, "reserving memory");
    graph.SerializeWithCachedSizesToArray(static_cast<uint8_t*>(out_.data));
  }

  const std::string& bytes_;
  const Block arena_, out_;
  tfplug::GraphWorkspace workspace_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  Require(!bytes.empty(), "reading the graph");
  Passes passes(bytes);
  TensorFlow(bytes);
  passes.Run();
  seconds.clear();
  for (int round = std::atoi(argv[2]); round > 0; --round) {
    TensorFlow(bytes);
    passes.Run();
  }
  const char* separator = "{";
  for (const auto& [step, values] : seconds) {
    std::printf("%s\"%s\": ", separator, step.c_str());
    PrintSeconds(values);
    separator = ", ";
  }
  std::printf("}\n");
}
