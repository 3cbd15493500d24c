// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_EXECUTOR_NODES_H_
#define TFPLUG_TESTING_INTERNAL_EXECUTOR_NODES_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/device_name.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/graph/attr_value.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/op_signature.h"
#include "tfplug/runtime/node_ports.h"
#include "tfplug/testing/fake_kernel.h"
#include "tfplug/testing/internal/executor_builtins.h"
#include "tfplug/testing/op_registry.h"
#include "tfplug/testing/op_spec.h"
#include "tfplug/testing/process.h"

#pragma GCC visibility push(hidden)

// The nodes of an Executor: where each is, and how it is run.
namespace tfplug::testing {

// An output of a node, by the node's index.
struct Source {
  size_t node;
  int port;
  friend bool operator<(const Source& a, const Source& b) {
    return std::tie(a.node, a.port) < std::tie(b.node, b.port);
  }
};

struct PlacedNode {
  std::string name, op;
  std::string place = "host";
  HostDevice* device = nullptr;  // null on the host
  std::vector<Source> inputs;
  std::vector<size_t> controls, successors;
  // Null for Const, Identity and so on.
  std::unique_ptr<FakeKernel> kernel;
  Node described;
  std::vector<runtime::Port> input_ports, output_ports;
  Located constant;  // of a Const

  bool is_input_on_host(size_t i) const { return input_ports[i].on_host; }
};

// ---- Attributes ----------------------------------------------------------------

template <class T>
void DecodeAttr(absl::string_view value, const std::string& type,
                std::optional<AttrValue>& to) {
  if (type != graph::AttrCodec<T>::TypeName()) return;
  if (auto decoded = graph::AttrCodec<T>::Decode(value)) {
    to.emplace(*std::move(decoded));
  } else if (type.compare(0, 5, "list(") == 0) {
    to.emplace(T());  // an empty list
  }
}
// Returns the value of an attribute of this type, such as "list(int)"; nothing if
// it has another one or none that kernels read.
inline std::optional<AttrValue> ReadAttr(absl::string_view value,
                                         const std::string& type) {
  std::optional<AttrValue> result;
  DecodeAttr<bool>(value, type, result);
  DecodeAttr<int64_t>(value, type, result);
  DecodeAttr<float>(value, type, result);
  DecodeAttr<DataType>(value, type, result);
  DecodeAttr<std::string>(value, type, result);
  DecodeAttr<PartialShape>(value, type, result);
  DecodeAttr<Function>(value, type, result);
  DecodeAttr<std::vector<bool>>(value, type, result);
  DecodeAttr<std::vector<int64_t>>(value, type, result);
  DecodeAttr<std::vector<float>>(value, type, result);
  DecodeAttr<std::vector<DataType>>(value, type, result);
  DecodeAttr<std::vector<std::string>>(value, type, result);
  DecodeAttr<std::vector<PartialShape>>(value, type, result);
  DecodeAttr<std::vector<Function>>(value, type, result);
  return result;
}

// Returns a tensor in host memory.
inline TF_Tensor ToTensor(const Constant& constant) {
  const auto dims = constant.shape().dims();
  TF_Tensor tensor = MakeTensor(static_cast<TF_DataType>(constant.dtype()),
                                std::vector<int64_t>(dims.begin(), dims.end()));
  const std::string bytes = constant.GetBytes();
  if (!bytes.empty()) {
    std::memcpy(tensor.buffer->data, bytes.data(), bytes.size());
  }
  return tensor;
}

// Returns the node as kernels see it: with all attributes that the op has, and
// the hidden ones for the choice of the kernel.
inline Node ToKernelNode(tfplug::Node node, const OpSignature& op) {
  Node result;
  result.op = std::string(node.op());
  result.name = std::string(node.name());
  for (const OpSignature::Attr& attr : op.attrs) {
    const absl::string_view value = runtime::AttrOrDefault(node, op, attr.name);
    auto decoded = ReadAttr(value, attr.type);
    if (decoded.has_value()) result.attrs.emplace(attr.name, *decoded);
    if (attr.type != "tensor") continue;
    const auto bytes = internal::AttrField(value, 8);
    const auto constant = Constant::Parse(bytes.value_or(""));
    if (constant.ok()) result.attrs.emplace(attr.name, ToTensor(*constant));
  }
  if (node.HasAttr("_kernel")) {
    auto label = ReadAttr(node.RawAttr("_kernel"), "string");
    if (label.has_value()) result.attrs.emplace("_kernel", *label);
  }
  return result;
}

// ---- Placement -----------------------------------------------------------------

struct ParsedDevice {
  std::string type;  // "" if the name has none
  int ordinal = 0;
};
// Parses ".../device:TYPE:1", or "TYPE:1". TensorFlow's placer takes the first
// device of a type for "TYPE" and "TYPE:*".
inline absl::StatusOr<ParsedDevice> ParseDevice(absl::string_view name) {
  const std::string full =
      absl::StrContains(name, '/') ? "" : absl::StrCat("/device:", name);
  const auto part = internal::DevicePartOf(full.empty() ? name : full);
  ParsedDevice device{std::string(part.type), 0};
  const bool is_first = part.index.empty() || part.index == "*";
  if (is_first ||
      (absl::SimpleAtoi(part.index, &device.ordinal) && device.ordinal >= 0)) {
    return device;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "its device '", name, "' has no index; write /device:TYPE:0"));
}

// Sets the types and memory of a node's inputs and outputs.
inline absl::Status SetPorts(tfplug::Node node, const OpSignature& op,
                             const capi::TF_KernelBuilder& kernel,
                             PlacedNode& placed) {
  const bool is_on_device = placed.device != nullptr;
  for (const bool is_input : {true, false}) {
    auto& to = is_input ? placed.input_ports : placed.output_ports;
    for (const OpSignature::Arg& arg : is_input ? op.inputs : op.outputs) {
      const auto& on_host = kernel.host_memory;
      const bool is_host =
          !is_on_device || std::count(on_host.begin(), on_host.end(), arg.name);
      TFPLUG_ASSIGN_OR_RETURN(const auto types,
                              runtime::TypesOfArg(node, op, arg));
      for (const DataType type : types) {
        if (DataTypeSize(type) == 0) {
          return absl::UnimplementedError(absl::StrCat(
              "argument '", arg.name, "' has type ", DataTypeName(type),
              "; run such graphs in TensorFlow"));
        }
        to.push_back({type, is_host});
      }
    }
  }
  if (static_cast<size_t>(node.num_inputs()) == placed.input_ports.size()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("it has ", node.num_inputs(),
                                                 " inputs, but its op has ",
                                                 placed.input_ports.size()));
}

// Reads a constant, and copies it to the node's device unless it is an int32,
// which TensorFlow has in host memory on every device.
inline absl::Status SetConstant(Process& process, tfplug::Node node,
                                const std::string& type, int ordinal,
                                PlacedNode& placed) {
  TFPLUG_ASSIGN_OR_RETURN(const Constant constant, Constant::Read(node));
  placed.constant.tensor = ToTensor(constant);
  if (type.empty() || type == "CPU" || constant.dtype() == DataType::kInt32) {
    return absl::OkStatus();
  }
  TFPLUG_ASSIGN_OR_RETURN(HostDevice* const device,
                          process.Device(type, ordinal));
  TFPLUG_ASSIGN_OR_RETURN(placed.constant.tensor,
                          device->CopyConstant(*placed.constant.tensor));
  placed.constant.device = device;
  placed.place = absl::StrCat(type, ":", ordinal);
  return absl::OkStatus();
}

// Finds where a node runs, and constructs its kernel.
inline absl::StatusOr<std::unique_ptr<PlacedNode>> PlaceNode(
    Process& process, tfplug::Node node, absl::string_view default_device) {
  auto placed = std::make_unique<PlacedNode>();
  placed->name = std::string(node.name());
  placed->op = std::string(node.op());
  TFPLUG_ASSIGN_OR_RETURN(
      const auto parsed,
      ParseDevice(node.device().empty() ? default_device : node.device()));
  const auto& [type, ordinal] = parsed;
  if (placed->op == "Const") {
    TFPLUG_RETURN_IF_ERROR(SetConstant(process, node, type, ordinal, *placed));
    return placed;
  }
  const auto op_def = FindOpDef(placed->op);
  const int builtin_inputs = BuiltinInputs(placed->op);
  const bool is_builtin = builtin_inputs == node.num_inputs();
  placed->described.op = placed->op;
  if (absl::IsNotFound(op_def.status()) && is_builtin) return placed;
  if (!op_def.ok()) return op_def.status();
  const OpSignature op = OpSignature::Parse(*op_def);
  placed->described = ToKernelNode(node, op);
  const bool has_device = !type.empty() && type != "CPU";
  for (const std::string& device_type : {type, std::string("CPU")}) {
    const auto* const kernel =
        device_type.empty()
            ? nullptr
            : KernelRegistry::Get().Find(placed->described, device_type);
    if (kernel == nullptr) continue;
    if (device_type != "CPU") {
      TFPLUG_ASSIGN_OR_RETURN(placed->device,
                              process.Device(device_type, ordinal));
      placed->place = absl::StrCat(device_type, ":", ordinal);
    }
    TFPLUG_RETURN_IF_ERROR(SetPorts(node, op, *kernel, *placed));
    TFPLUG_ASSIGN_OR_RETURN(placed->kernel,
                            FakeKernel::Create(placed->described, device_type));
    return placed;
  }
  if (is_builtin) return placed;
  return absl::NotFoundError(absl::StrCat(
      "no plug-in has a kernel for it ",
      has_device ? absl::StrCat("on ", type, " or CPU") : "on CPU",
      " with these types. TensorFlow's kernels are not here: feed the node's "
      "outputs",
      has_device ? "" : ", or name its device or the one of all such nodes"));
}

// ---- Runs ------------------------------------------------------------------------

// Runs a node without a kernel.
inline absl::StatusOr<std::vector<Located>> RunWithoutKernel(
    const PlacedNode& node, std::vector<Located> inputs) {
  if (node.op == "NoOp") return std::vector<Located>();
  if (node.constant.tensor.has_value()) {
    return std::vector<Located>{node.constant};
  }
  if (inputs.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "node '", node.name, "' (", node.op, ") needs a value: feed it"));
  }
  auto output = RunBuiltin(node.described, std::move(inputs));
  if (output.ok()) return std::vector<Located>{*std::move(output)};
  return absl::Status(output.status().code(),
                      absl::StrCat("node '", node.name, "' (", node.op,
                                   "): ", output.status().message()));
}

// Runs a kernel and calls `done` with its outputs, on this thread or, for an
// asynchronous kernel, on any.
inline void RunKernel(
    const PlacedNode& node, std::vector<Located> inputs,
    std::function<void(absl::Status, std::vector<Located>)> done) {
  const auto run = std::make_shared<KernelRun>(
      *node.kernel, node.device == nullptr ? nullptr : &node.device->device());
  run->context()->device_name =
      absl::StrCat("/job:localhost/replica:0/task:0/device:",
                   node.device == nullptr ? std::string("CPU:0") : node.place);
  for (Located& input : inputs) {
    run->AddInput(InputSlot(*std::move(input.tensor), input.device == nullptr));
  }
  inputs.clear();
  for (const runtime::Port& port : node.output_ports) {
    run->AddOutput(port.type, port.on_host);
  }
  run->Start([&node, run, done = std::move(done)](absl::Status status) {
    if (node.device != nullptr) node.device->jitter().Pause();
    std::vector<OutputSlot> slots = std::move(run->context()->outputs);
    std::vector<Located> outputs;
    for (size_t i = 0; i < slots.size() && status.ok(); ++i) {
      if (!slots[i].tensor.has_value()) {
        status = absl::InternalError(
            absl::StrCat("the kernel of node '", node.name, "' (", node.op,
                         ") reported no error and left output ", i, " unset"));
        break;
      }
      outputs.push_back({*std::move(slots[i].tensor),
                         node.output_ports[i].on_host ? nullptr : node.device});
    }
    // Before the next kernel allocates memory, and the devices go.
    slots.clear();
    run->context()->inputs.clear();
    run->context()->outputs.clear();
    done(std::move(status), std::move(outputs));
  });
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_EXECUTOR_NODES_H_
