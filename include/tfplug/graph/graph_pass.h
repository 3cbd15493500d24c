// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_GRAPH_PASS_H_
#define TFPLUG_GRAPH_GRAPH_PASS_H_

#include "absl/status/status.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/pass_context.h"

namespace tfplug {

// One rewriting of graphs. Registered passes run one after the other on the
// same Graph, which is read once before the first and written once after the
// last; where none of them changes anything, TensorFlow keeps what it has.
//
//   class DropNoise : public tfplug::GraphPass {
//     absl::Status Run(tfplug::Graph& graph,
//                      const tfplug::PassContext& context) override { ... }
//   };
//   TFPLUG_REGISTER_GRAPH_PASSES("MY_DEVICE", DropNoise);
//
// An object is made without arguments, for each optimization of a graph or of
// a function's body, runs in one thread, about twice (TensorFlow iterates), and
// is destroyed. Several optimizations may run at once, with objects of their
// own. So keep nothing of a graph from one Run to the next.
class GraphPass {
 public:
  virtual ~GraphPass() = default;

  // optimize_func: may edit `graph`. With a status that is not OK, or an
  // exception, TensorFlow goes on with the graph as it was before all passes,
  // and logs the status with the name of this class before the words.
  virtual absl::Status Run(Graph& graph, const PassContext& context) = 0;
};

}  // namespace tfplug

#endif  // TFPLUG_GRAPH_GRAPH_PASS_H_
