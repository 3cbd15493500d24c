// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_RUNTIME_NODE_PORTS_H_
#define TFPLUG_RUNTIME_NODE_PORTS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/attr_value.h"
#include "tfplug/graph/node.h"
#include "tfplug/graph/op_signature.h"
#include "tfplug/kernel/internal/kernel_registry.h"

#pragma GCC visibility push(hidden)

// What a node looks like from outside, for the pass CompileRegions and for the
// kernel of a region, which validates what the pass has found out.
namespace tfplug::runtime {

// An input or output of a node.
struct Port {
  DataType type;
  bool on_host;

  friend bool operator==(const Port& a, const Port& b) {
    return a.type == b.type && a.on_host == b.on_host;
  }
};

struct NodePorts {
  std::vector<Port> inputs, outputs;
};

// Returns the serialized AttrValue of an attribute: the node's, or the op's
// default.
inline absl::string_view AttrOrDefault(Node node, const OpSignature& op,
                                       absl::string_view attr) {
  if (node.HasAttr(attr)) return node.RawAttr(attr);
  const OpSignature::Attr* const declared = op.FindAttr(attr);
  return declared != nullptr && declared->has_default
             ? absl::string_view(declared->default_value)
             : absl::string_view();
}

// Returns the types of an attribute, a type or a list of types; none if it is
// neither.
inline std::vector<DataType> TypesOf(Node node, const OpSignature& op,
                                     absl::string_view attr) {
  const absl::string_view value = AttrOrDefault(node, op, attr);
  if (auto type = graph::AttrCodec<DataType>::Decode(value)) return {*type};
  return graph::AttrCodec<std::vector<DataType>>::Decode(value).value_or(
      std::vector<DataType>());
}

// Returns the kernels that only regions use.
inline kernel_internal::KernelRegistry& KernelsInRegions() {
  static auto* const kernels = new kernel_internal::KernelRegistry;
  return *kernels;
}

// Returns whether a kernel with this label is for nodes with these attributes.
inline bool Matches(const KernelDef& def, Node node, const OpSignature& op,
                    absl::string_view label = "") {
  if (def.op() != node.op() || def.label() != label || !def.IsEnabled()) {
    return false;
  }
  for (const KernelDef::Constraint& constraint : def.type_constraints()) {
    const std::vector<DataType> types = TypesOf(node, op, constraint.attr);
    if (types.empty()) return false;
    for (DataType type : types) {
      if (std::count(constraint.types.begin(), constraint.types.end(), type) ==
          0) {
        return false;
      }
    }
  }
  return true;
}

// This library's kernels for a node.
struct OwnKernels {
  // The one that TensorFlow selects on the library's device; null if it has none.
  const kernel_internal::KernelRegistration* selected = nullptr;
  bool all_fit_regions = true;
};
inline OwnKernels FindOwnKernels(Node node, const OpSignature& op) {
  OwnKernels found;
  if (node.HasAttr("_kernel")) return found;
  // The kernels of the library's author win.
  const auto rank = [](const kernel_internal::KernelRegistration& one) {
    return std::make_pair(!one.is_made, one.def.priority());
  };
  for (const auto& kernel : kernel_internal::RegisteredKernels()) {
    if (!Matches(kernel.def, node, op)) continue;
    if (!kernel.fits_regions) found.all_fit_regions = false;
    if (found.selected == nullptr || rank(kernel) > rank(*found.selected)) {
      found.selected = &kernel;
    }
  }
  return found;
}

// Returns the kernel for the node in a region: the one that TensorFlow selects
// on this library's device, if it fits into regions and is synchronous; if the
// library has none, one that only regions use. Otherwise null.
inline const kernel_internal::KernelRegistration* FindKernel(
    Node node, const OpSignature& op) {
  if (node.HasAttr("_kernel")) return nullptr;
  const auto [selected, all_fit_regions] = FindOwnKernels(node, op);
  if (!all_fit_regions) return nullptr;
  if (selected != nullptr) {
    return selected->functions.compute_async_func == nullptr ? selected
                                                             : nullptr;
  }
  for (const auto& kernel : KernelsInRegions()) {
    if (Matches(kernel.def, node, op)) return &kernel;
  }
  return nullptr;
}

// Returns the types of one argument's tensors.
inline absl::StatusOr<std::vector<DataType>> TypesOfArg(
    Node node, const OpSignature& op, const OpSignature::Arg& arg) {
  std::vector<DataType> types;
  if (arg.is_ref) {
    return absl::UnimplementedError("it has references to variables");
  }
  if (!arg.type_list_attr.empty()) {
    return TypesOf(node, op, arg.type_list_attr);
  }
  types.push_back(arg.type);
  if (!arg.type_attr.empty()) types = TypesOf(node, op, arg.type_attr);
  if (types.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("its attribute '", arg.type_attr, "' is not a type"));
  }
  if (arg.number_attr.empty()) return types;
  const auto number = graph::AttrCodec<int64_t>::Decode(
      AttrOrDefault(node, op, arg.number_attr));
  if (!number.has_value() || *number < 0 || *number > 65536) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its attribute '", arg.number_attr, "' is not a number of tensors"));
  }
  types.resize(static_cast<size_t>(*number), types[0]);
  return types;
}

// Returns the inputs and outputs of a node that runs this kernel.
inline absl::StatusOr<NodePorts> PortsOf(Node node, const OpSignature& op,
                                         const KernelDef& kernel) {
  NodePorts ports;
  for (const bool is_input : {true, false}) {
    std::vector<Port>& to = is_input ? ports.inputs : ports.outputs;
    for (const OpSignature::Arg& arg : is_input ? op.inputs : op.outputs) {
      const auto& on_host = kernel.host_memory();
      const bool is_on_host =
          kernel.all_in_host_memory() ||
          std::count(on_host.begin(), on_host.end(), arg.name) > 0;
      TFPLUG_ASSIGN_OR_RETURN(const auto types, TypesOfArg(node, op, arg));
      for (DataType type : types) {
        if (DataTypeSize(type) == 0) {
          return absl::UnimplementedError(
              absl::StrCat("its argument '", arg.name,
                           "' has elements without a fixed size"));
        }
        to.push_back({type, is_on_host});
      }
    }
  }
  return ports;
}

}  // namespace tfplug::runtime

#pragma GCC visibility pop

#endif  // TFPLUG_RUNTIME_NODE_PORTS_H_
