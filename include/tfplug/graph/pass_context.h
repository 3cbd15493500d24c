// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_PASS_CONTEXT_H_
#define TFPLUG_GRAPH_PASS_CONTEXT_H_

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tfplug/base/internal/device_name.h"
#include "tfplug/graph/function_library.h"
#include "tfplug/graph/graph_item.h"
#include "tfplug/graph/graph_properties.h"
#include "tfplug/kernel/internal/kernel_set.h"

namespace tfplug {

// What a pass may ask besides the graph. One for all passes of an optimization:
// what one of them has asked for, the next one gets without asking TensorFlow
// again. For one thread.
class PassContext {
 public:
  // `graph_def` and `item` are core's, before all passes.
  PassContext(std::string device_type, absl::string_view graph_def,
              const capi::TF_GrapplerItem* item)
      : device_type_(std::move(device_type)),
        graph_def_(graph_def),
        item_(item),
        properties_(item),
        functions_(graph_def),
        kernels_(device_type_) {}
  PassContext(const PassContext&) = delete;
  PassContext& operator=(const PassContext&) = delete;

  // That the passes were registered for, such as "MY_DEVICE". The graph has a
  // node on such a device; others of its nodes may be elsewhere, or, in the
  // body of a function, have no device yet.
  const std::string& device_type() const { return device_type_; }

  // Whether a node's device, as it stands in the graph, is of device_type():
  // "/job:localhost/replica:0/task:0/device:MY_DEVICE:0", "/device:MY_DEVICE:*"
  // and the like. False for a node without.
  bool IsOnDevice(absl::string_view device) const {
    return internal::DeviceTypeOf(device) == device_type_;
  }

  // Whether the node must stay as it is: by the node's name. Should TensorFlow
  // fail to say, everything must stay, and the optimization fails with its
  // words (status()).
  bool IsPreserved(absl::string_view node) const {
    const auto preserved = item_.GetNodesToPreserve();
    if (!preserved.ok()) {
      status_.Update(preserved.status());
      return true;
    }
    return (*preserved)->find(node) != (*preserved)->end();
  }
  const absl::Status& status() const { return status_; }

  // Nodes to preserve and fetch nodes, as lists.
  const GraphItem& item() const { return item_; }
  // Types and shapes of the graph as it was before the passes.
  GraphProperties& properties() const { return properties_; }
  // The serialised GraphDef as it was before the passes.
  absl::string_view graph_def() const { return graph_def_; }
  // The definitions of ops and functions.
  const FunctionLibrary& functions() const { return functions_; }

  // Whether this library registers a kernel for device_type() and `op` with
  // these type attributes:
  //
  //   context.HasKernel("MatMul", {{"T", tfplug::DataType::kFloat}})
  //
  // TensorFlow's own kernels, and those of other libraries, are not seen.
  bool HasKernel(absl::string_view op,
                 std::initializer_list<internal::TypeAttr> types = {}) const {
    return kernels_.Has(op, types);
  }
  // The same with types that are found out.
  bool HasKernel(absl::string_view op,
                 absl::Span<const internal::TypeAttr> types) const {
    return kernels_.Has(op, types);
  }
  // Whether this library registers any kernel for device_type().
  bool KnowsKernels() const { return kernels_.HasAny(); }

 private:
  const std::string device_type_;
  const absl::string_view graph_def_;
  const GraphItem item_;
  mutable GraphProperties properties_;
  const FunctionLibrary functions_;
  const internal::KernelSet kernels_;
  mutable absl::Status status_;
};

}  // namespace tfplug

#endif  // TFPLUG_GRAPH_PASS_CONTEXT_H_
