// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_GRAPPLER_ITEM_H_
#define TFPLUG_TESTING_GRAPPLER_ITEM_H_

#include <map>
#include <string>
#include <vector>

#include "tfplug/abi/functions.h"
#include "tfplug/base/shape.h"

namespace tfplug::capi {

// What a graph optimizer can ask TensorFlow besides the graph. A test fills it
// in.
struct TF_GrapplerItem {
  // The result of shape inference for one input or output of a node.
  struct Property {
    TF_DataType dtype;
    PartialShape shape;
    std::string value;  // a serialised TensorProto; empty if not constant
  };
  // By node.
  using Properties = std::map<std::string, std::vector<Property>>;

  std::vector<std::string> nodes_to_preserve;
  std::vector<std::string> fetch_nodes;
  Properties inputs;
  Properties outputs;
  mutable int inferences = 0;  // how often TF_InferStatically was called
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_GrapplerItem;

// The ops that TensorFlow knows: serialised OpDefs by name.
inline std::map<std::string, std::string>& KnownOpDefs() {
  static auto* const ops = new std::map<std::string, std::string>;
  return *ops;
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTING_GRAPPLER_ITEM_H_
