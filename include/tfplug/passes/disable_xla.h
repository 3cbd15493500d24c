// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_DISABLE_XLA_H_
#define TFPLUG_PASSES_DISABLE_XLA_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/device_name.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Lets functions with jit_compile=True run on the device. TensorFlow compiles
// them with XLA, which has no compiler for a plug-in's device, and fails with
// "No JIT device registered". This pass clears the attribute _XlaMustCompile of
// their calls, so that their nodes run one by one, as in any other function.
// Keras wraps the steps of a model in such functions by default
// (jit_compile="auto"), and grouped convolutions always.
//
// The pass covers calls within another function. A direct call from Python is
// not part of a graph; passes/internal/python_jit.h covers it, under the same
// setting.
class DisableXla : public GraphPass {
 public:
  absl::Status Run(Graph& graph, const PassContext& context) override {
    constexpr const char* kAttr = "_XlaMustCompile";
    for (const char* op : {"PartitionedCall", "StatefulPartitionedCall"}) {
      if (!graph.has_op(op)) continue;
      for (Node node : graph.nodes(op)) {
        // In a function's body, a call may have no device yet.
        const absl::string_view device = node.device();
        if (!internal::DeviceTypeOf(device).empty() &&
            !context.IsOnDevice(device)) {
          continue;
        }
        if (node.GetAttr<bool>(kAttr).value_or(false)) {
          node.SetAttr(kAttr, false);
        }
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_DISABLE_XLA_H_
