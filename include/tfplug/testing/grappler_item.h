// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_GRAPPLER_ITEM_H_
#define TFPLUG_TESTING_GRAPPLER_ITEM_H_

#include <map>
#include <string>
#include <vector>

#include "tfplug/abi/functions.h"
#include "tfplug/base/shape.h"

#pragma GCC visibility push(hidden)

namespace tfplug::capi {

// The information that TensorFlow gives to a graph optimizer besides the graph.
// Tests set the fields.
struct TF_GrapplerItem {
  // The result of shape inference for one input or output of a node.
  struct Property {
    TF_DataType dtype;
    PartialShape shape;
    std::string value;  // a serialized TensorProto; empty if not constant
  };
  // The properties of each input or output of a node, by the node's name.
  using Properties = std::map<std::string, std::vector<Property>>;

  std::vector<std::string> nodes_to_preserve;
  std::vector<std::string> fetch_nodes;
  Properties inputs;
  Properties outputs;
  mutable int inferences = 0;  // number of calls of TF_InferStatically
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_GrapplerItem;

// Returns the ops that TF_LookUpOpDef finds: serialized OpDefs, by name. Tests
// set them.
inline std::map<std::string, std::string>& KnownOpDefs() {
  static auto* const ops = new std::map<std::string, std::string>;
  return *ops;
}

// The graph that an optimizer of this thread receives in TensorFlow 2.5, and the
// item that TF_GetGrapplerItem returns for it.
struct GraphInOptimizer {
  const void* buffer = nullptr;
  const TF_GrapplerItem* item = nullptr;
};
inline GraphInOptimizer& CurrentGraph() {
  static thread_local GraphInOptimizer graph;
  return graph;
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_GRAPPLER_ITEM_H_
