// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_GRAPH_PASS_H_
#define TFPLUG_GRAPH_GRAPH_PASS_H_

#include "absl/status/status.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/pass_context.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Base class of graph passes. Registered passes run in order on the same Graph,
// which is parsed once before the first pass and written once after the last.
// If no pass changes it, TensorFlow keeps its graph.
//
//   class DropNoise : public tfplug::GraphPass {
//     absl::Status Run(tfplug::Graph& graph,
//                      const tfplug::PassContext& context) override { ... }
//   };
//   TFPLUG_REGISTER_GRAPH_PASSES("MY_DEVICE", DropNoise);
//
// For each optimization of a graph or of a function's body, a pass is
// constructed without arguments, runs about twice (TensorFlow iterates) on one
// thread, and is destroyed. Concurrent optimizations have separate objects. Do
// not keep references to a graph from one Run() to the next.
class GraphPass {
 public:
  virtual ~GraphPass() = default;

  // Implements optimize_func. May edit `graph`. If this returns an error or
  // throws, TensorFlow logs the error with the name of this class, and runs the
  // graph as it was before all passes.
  virtual absl::Status Run(Graph& graph, const PassContext& context) = 0;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_GRAPH_PASS_H_
