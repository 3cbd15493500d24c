// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_PASS_CONTEXT_H_
#define TFPLUG_GRAPH_PASS_CONTEXT_H_

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tfplug/base/internal/device_name.h"
#include "tfplug/base/shape.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/function_library.h"
#include "tfplug/graph/graph_item.h"
#include "tfplug/graph/graph_properties.h"
#include "tfplug/graph/node.h"
#include "tfplug/kernel/internal/kernel_set.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// TensorFlow's information about the graph that it optimizes. All passes of an
// optimization share it, and results are cached. Not thread-safe.
class PassContext {
 public:
  // `graph_def` and `item` come from TensorFlow and describe the graph before
  // the passes. Both must outlive this object.
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

  // The device type for which the passes are registered, such as "MY_DEVICE".
  // At least one node of the graph is on such a device. Other nodes may be on
  // other devices or, in the body of a function, have no device yet.
  const std::string& device_type() const { return device_type_; }

  // Returns whether a node's device, such as "/device:MY_DEVICE:*" or
  // "/job:localhost/replica:0/task:0/device:MY_DEVICE:0", has the type
  // device_type(). False for an empty device name.
  bool IsOnDevice(absl::string_view device) const {
    return internal::DeviceTypeOf(device) == device_type_;
  }

  // Returns whether the node of this name must be preserved. If TensorFlow
  // returns an error, this is true for every node, and the optimization fails
  // with that error.
  bool IsPreserved(absl::string_view node) const {
    const auto preserved = item_.GetNodesToPreserve();
    if (!preserved.ok()) {
      status_.Update(preserved.status());
      return true;
    }
    return (*preserved)->find(node) != (*preserved)->end();
  }
  // Returns whether a run may replace the output's value: a session can be fed
  // the value of any node, even of a Const. True for a node that must be
  // preserved, unless this output is fetched, which TensorFlow forbids for a
  // fed one. A pass must neither read such a value from the graph, nor compute
  // it in another way.
  bool MayBeFed(Output output) const {
    if (!IsPreserved(output.node.name())) return false;
    const auto fetched = item_.GetFetchNodes();
    // A name without an output can be one of a node that runs, but is fed.
    return !fetched.ok() ||
           std::find((*fetched)->begin(), (*fetched)->end(),
                     absl::StrCat(output.node.name(), ":", output.port)) ==
               (*fetched)->end();
  }
  // Calls Constant::Read() or Constant::ReadShape(), or returns
  // FAILED_PRECONDITION if the value may be fed.
  absl::StatusOr<Constant> ReadConstant(const Node& node) const {
    if (auto s = CheckNotFed(node); !s.ok()) return s;
    return Constant::Read(node);
  }
  absl::StatusOr<Shape> ReadConstantShape(const Node& node) const {
    if (auto s = CheckNotFed(node); !s.ok()) return s;
    return Constant::ReadShape(node);
  }
  // Returns the error that TensorFlow returned to IsPreserved(), if any.
  const absl::Status& status() const { return status_; }

  // Returns the names of the nodes to preserve and of the fetched outputs.
  const GraphItem& item() const { return item_; }
  // Returns the types and shapes in the graph as it was before the passes.
  GraphProperties& properties() const { return properties_; }
  // Returns the serialized GraphDef as it was before the passes.
  absl::string_view graph_def() const { return graph_def_; }
  // Returns the signatures of ops and functions.
  const FunctionLibrary& functions() const { return functions_; }

  // Returns whether this library registers a kernel for device_type() and `op`
  // with these type attributes:
  //
  //   context.HasKernel("MatMul", {{"T", tfplug::DataType::kFloat}})
  //
  // Kernels of TensorFlow and of other libraries are ignored.
  bool HasKernel(
      absl::string_view op,
      std::initializer_list<kernel_internal::TypeAttr> types = {}) const {
    return kernels_.Has(op, types);
  }
  // Does the same as HasKernel above for a list of types that is computed at
  // run time.
  bool HasKernel(absl::string_view op,
                 absl::Span<const kernel_internal::TypeAttr> types) const {
    return kernels_.Has(op, types);
  }
  // Returns whether this library registers any kernel for device_type().
  bool HasAnyKernel() const { return kernels_.HasAny(); }

 private:
  absl::Status CheckNotFed(const Node& node) const {
    if (node.op() != "Const" || !MayBeFed(node)) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "node '", node.name(),
        "' (Const) must be preserved and may be fed, so that its value can be "
        "another one in each run"));
  }

  const std::string device_type_;
  const absl::string_view graph_def_;
  const GraphItem item_;
  mutable GraphProperties properties_;
  const FunctionLibrary functions_;
  const kernel_internal::KernelSet kernels_;
  mutable absl::Status status_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_PASS_CONTEXT_H_
