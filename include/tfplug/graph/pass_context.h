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

// The context of an optimization, shared by all of its passes: results of
// TensorFlow are cached for the passes that follow. Not thread-safe.
class PassContext {
 public:
  // `graph_def` and `item` are TensorFlow's, from before the passes.
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

  // The device type that the passes are registered for, such as "MY_DEVICE".
  // The graph has a node on such a device. Other nodes may be on other devices
  // or, in the body of a function, have no device yet.
  const std::string& device_type() const { return device_type_; }

  // Whether a node's device, such as "/device:MY_DEVICE:*" or
  // "/job:localhost/replica:0/task:0/device:MY_DEVICE:0", is of device_type().
  // False for "".
  bool IsOnDevice(absl::string_view device) const {
    return internal::DeviceTypeOf(device) == device_type_;
  }

  // Whether the node of this name must be kept. If TensorFlow returns an error,
  // every node must be kept, and the optimization fails with that error.
  bool IsPreserved(absl::string_view node) const {
    const auto preserved = item_.GetNodesToPreserve();
    if (!preserved.ok()) {
      status_.Update(preserved.status());
      return true;
    }
    return (*preserved)->find(node) != (*preserved)->end();
  }
  // The error that IsPreserved() got from TensorFlow, if any.
  const absl::Status& status() const { return status_; }

  // The nodes to preserve and the fetched nodes.
  const GraphItem& item() const { return item_; }
  // The types and shapes in the graph as it was before the passes.
  GraphProperties& properties() const { return properties_; }
  // The serialized GraphDef as it was before the passes.
  absl::string_view graph_def() const { return graph_def_; }
  // The signatures of ops and functions.
  const FunctionLibrary& functions() const { return functions_; }

  // Whether this library registers a kernel for device_type() and `op` with
  // these type attributes:
  //
  //   context.HasKernel("MatMul", {{"T", tfplug::DataType::kFloat}})
  //
  // TensorFlow's own kernels and those of other libraries do not count.
  bool HasKernel(absl::string_view op,
                 std::initializer_list<internal::TypeAttr> types = {}) const {
    return kernels_.Has(op, types);
  }
  // The same for types that are computed at run time.
  bool HasKernel(absl::string_view op,
                 absl::Span<const internal::TypeAttr> types) const {
    return kernels_.Has(op, types);
  }
  // Whether this library registers any kernel for device_type().
  bool HasAnyKernel() const { return kernels_.HasAny(); }

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
