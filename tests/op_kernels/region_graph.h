// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_OP_KERNELS_REGION_GRAPH_H_
#define TFPLUG_TESTS_OP_KERNELS_REGION_GRAPH_H_

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "describe_op.h"
#include "fixture.h"
#include "minimal_device.h"
#include "tfplug/op_kernels/activation.h"
#include "tfplug/op_kernels/array.h"
#include "tfplug/op_kernels/math.h"
#include "tfplug/op_kernels/matmul.h"
#include "tfplug/op_kernels/reduction.h"
#include "tfplug/op_kernels/region.h"
#include "tfplug/op_kernels/register.h"
#include "tfplug/op_kernels/stream_copy.h"
#include "tfplug/ops/nn.h"
#include "tfplug/passes/compile_regions.h"
#include "tfplug/primitives/reference_backend.h"
#include "tfplug/testing/graph_text.h"

namespace tfplug::region_test {

class Backend : public ReferenceBackend<minimal::Stream> {};
TFPLUG_REGISTER_DEVICE(minimal::Platform);
TFPLUG_REGISTER_BACKEND(Backend, ActivationOps, ArrayOps, MathOps, MatMulOps,
                        ReductionOps, RegionOps, StreamCopyOps);
TFPLUG_REGISTER_HOST_KERNELS(MathOps);

// A kernel of the library's author, which is in no region.
struct OwnElu : Kernel {
  absl::Status Compute(KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
    return context.SetOutput(0, x);
  }
};
TFPLUG_REGISTER_KERNEL(OwnElu, ops::Elu().T<float>());

// Kernels of the author's that may be in a region: y = x / 2, and the number of
// times that it was enqueued.
struct OwnKernel : BackendKernel {
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor tensor, run.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, ViewOf(tensor));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, tensor.shape()));
    return Enqueue(run, x, y);
  }
  virtual absl::Status Enqueue(OpRun& run, const Operand& x,
                               const Operand& y) = 0;
  static absl::Status Halve(Operands at) {
    ++enqueued;
    const auto* const x = static_cast<const float*>(at[0].data);
    auto* const y = static_cast<float*>(at[1].data);
    for (int64_t i = 0; i < at[0].num_elements(); ++i) y[i] = x[i] / 2;
    return absl::OkStatus();
  }
  static inline int enqueued = 0;
};
// This one is repeated.
struct OwnSoftsign : OwnKernel {
  absl::Status Enqueue(OpRun& run, const Operand& x,
                       const Operand& y) override {
    return run.launcher().Enqueue<minimal::Stream>(
        {x, y}, [](minimal::Stream&, Operands at) { return Halve(at); });
  }
};
TFPLUG_REGISTER_KERNEL(OwnSoftsign, ops::Softsign().T<float>());
// This one uses the stream behind the launcher's back.
struct OwnSelu : OwnKernel {
  absl::Status Enqueue(OpRun& run, const Operand& x,
                       const Operand& y) override {
    TFPLUG_RETURN_IF_ERROR(run.context().GetStream<minimal::Stream>().status());
    return Halve({x, y});
  }
};
TFPLUG_REGISTER_KERNEL(OwnSelu, ops::Selu().T<float>());

inline constexpr char kDevice[] =
    "/job:localhost/replica:0/task:0/device:MINIMAL:0";

inline void DescribeOps() {
  for (const char* op : {"AddV2", "Mul", "Sub", "Maximum"}) {
    Describe(op, "x:T y:T", "z:T");
  }
  for (const char* op : {"Tanh", "Neg", "Square", "Identity"}) {
    Describe(op, "x:T", "y:T");
  }
  for (const char* op : {"Elu", "Selu", "Softsign"}) {
    Describe(op, "features:T", "activations:T");
  }
  Describe("MatMul", "a:T b:T", "product:T");
  Describe(kToDeviceOp, "x:T", "y:T");
  Describe("Sum", "input:T reduction_indices:Tidx", "output:T");
  Describe("Transpose", "x:T perm:Tperm", "y:T");
  Describe("Reshape", "tensor:T shape:Tshape", "output:T");
  Describe("ExpandDims", "input:T dim:Tdim", "output:T");
  Describe("Squeeze", "input:T", "output:T");
  Describe("Shape", "input:T", "output:out_type");
}

// A graph that can be run on the reference backend, node by node.
class RegionGraph {
 public:
  RegionGraph() {
    ::setenv("TFPLUG_REGIONS", "1", 1);
    DescribeOps();
    testing::KernelRegistry::Get().Refill(&TF_InitKernel);
  }
  ~RegionGraph() {
    values.clear();
    kernels.clear();
    testing::KernelRegistry::Get().Clear();
    testing::RegisteredOps().clear();
    testing::KnownOpDefs().clear();
  }

  // Removes all nodes and values.
  void Reset() {
    values.clear();
    kernels.clear();
    feeds.clear();
    order.clear();
    graph = Graph();
  }

  // Adds nodes (graph_text.h) on the device; T is float unless a line has
  // another one.
  Node Add(const std::string& text) {
    const auto node = testing::AddNodes(
        graph, text,
        {kDevice,
         "T=float, Tidx=int32, Tperm=int32, Tshape=int32, Tdim=int32, "
         "out_type=int32, keep_dims=false, squeeze_dims=[], "
         "transpose_a=false, transpose_b=false",
         nullptr});
    REQUIRE_MESSAGE(node.ok(), node.status().ToString());
    return *node;
  }
  // Sets the value of a Placeholder in device or, of int32, in host memory.
  template <class T>
  void Feed(const std::string& name, std::vector<int64_t> dims,
            const std::vector<T>& elements) {
    testing::FakeDevice* const device =
        std::is_same_v<T, int32_t> ? nullptr : &fixture.device();
    feeds.insert_or_assign(
        name, Placed(*testing::MakeDeviceTensor<T>(device,
                                                   {std::move(dims), elements}),
                     device == nullptr));
  }
  Node operator[](const std::string& name) { return graph.FindNode(name); }

  // Collapses regions, and forgets the values computed before.
  void Compile() {
    values.clear();
    context.emplace("MINIMAL", "", &item);
    const absl::Status status = CompileRegions().Run(graph, *context);
    REQUIRE_MESSAGE(status.ok(), status.ToString());
    REQUIRE(graph.Check().ok());
    REQUIRE(graph.TopologicalOrder().ok());
  }
  int NumRegions() {
    int count = 0;
    for (const Node node : graph.nodes(kRegionOp))
      count += node.op().size() > 0;
    return count;
  }

  // Returns the shape and the bytes of an output, or the error.
  std::string Result(const std::string& name) {
    const Node node = graph.FindNode(name);
    const absl::Status status = Compute(node);
    if (!status.ok()) return std::string(status.message());
    const auto& [tensor, on_host] = values[name][0];
    const auto bytes = testing::ReadTensor<uint8_t>(
                           on_host ? nullptr : &fixture.device(), tensor)
                           ->elements;
    return absl::StrCat(absl::StrJoin(tensor.dims, ","), ":",
                        std::string(bytes.begin(), bytes.end()));
  }

  // Computes a node's outputs, and what it depends on.
  absl::Status Compute(Node node) {
    const std::string name(node.name());
    if (values.count(name) > 0) return absl::OkStatus();
    for (const Input& input : node.inputs()) {
      TFPLUG_RETURN_IF_ERROR(Compute(input.from.node));
    }
    for (const Node control : node.controls()) {
      TFPLUG_RETURN_IF_ERROR(Compute(control));
    }
    order.push_back(name);
    if (feeds.count(name) > 0) {
      values[name] = {feeds.at(name)};
    } else if (node.op() == "Const") {
      const Constant constant = *Constant::Read(node);
      testing::Value<int32_t> value{
          {constant.shape().dims().begin(), constant.shape().dims().end()},
          *constant.GetElements<int32_t>()};
      values[name] = {
          {*testing::MakeDeviceTensor<int32_t>(nullptr, value), true}};
    } else if (node.op() == "VarHandleOp") {
      return absl::OkStatus();
    } else if (node.op() == "ReadVariableOp") {
      values[name] = {variables.at(std::string(node.input(0).node.name()))};
    } else if (node.op() == "AssignVariableOp") {
      const Output value = node.input(1);
      variables.insert_or_assign(std::string(node.input(0).node.name()),
                                 values[std::string(value.node.name())]
                                       [static_cast<size_t>(value.port)]);
      values[name] = {};
    } else {
      return RunKernel(node);
    }
    return absl::OkStatus();
  }

  using Placed = std::pair<capi::TF_Tensor, bool>;  // whether on the host

  Fixture<minimal::Platform> fixture;
  Graph graph;
  testing::TF_GrapplerItem item;
  std::optional<PassContext> context;  // of the last Compile()
  std::map<std::string, Placed> feeds;
  std::map<std::string, Placed> variables;  // by VarHandleOp
  std::map<std::string, std::vector<Placed>> values;
  std::vector<std::string> order;  // in which nodes ran
  // Of regions, which keep their records.
  std::map<std::string, std::unique_ptr<testing::FakeKernel>> kernels;

  // Returns the kernel of a node; the ports are those of its op.
  absl::StatusOr<std::unique_ptr<testing::FakeKernel>> MakeKernel(Node node) {
    testing::Node description;
    description.op = std::string(node.op());
    description.name = std::string(node.name());
    for (const auto& [attr, bytes] : node.GetAttrs()) {
      if (const auto value = testing::DecodeAttr(bytes); value.has_value()) {
        description.attrs[std::string(attr)] = *value;
      }
    }
    if (node.op() == kRegionOp) {
      for (const char* attr : {"Tin", "Thost_in", "Tout", "Thost_out"}) {
        description.attrs[attr] = *node.GetAttr<std::vector<DataType>>(attr);
      }
    }
    return testing::FakeKernel::Create(description, "MINIMAL");
  }

 private:
  absl::Status RunKernel(Node node) {
    const std::string name(node.name());
    runtime::NodePorts ports;
    if (node.op() == kRegionOp) {
      for (const bool on_host : {false, true}) {
        const auto types =
            node.GetAttr<std::vector<DataType>>(on_host ? "Thost_out" : "Tout");
        for (DataType type : *types) ports.outputs.push_back({type, on_host});
      }
    } else {
      const PassContext lookup("MINIMAL", "", &item);
      TFPLUG_ASSIGN_OR_RETURN(const auto* const op,
                              lookup.functions().GetSignature(node.op()));
      const auto* const kernel = runtime::FindKernel(node, *op);
      TFPLUG_ASSIGN_OR_RETURN(
          ports,
          runtime::PortsOf(node, *op,
                           kernel != nullptr ? kernel->def : KernelDef("Elu")));
    }
    std::unique_ptr<testing::FakeKernel>& kernel = kernels[name];
    if (kernel == nullptr) {
      auto made = MakeKernel(node);
      if (absl::IsNotFound(made.status())) return MoveElements(node, ports);
      TFPLUG_RETURN_IF_ERROR(made.status());
      kernel = *std::move(made);
    }
    testing::KernelRun run(*kernel, &fixture.device());
    for (const Input& input : node.inputs()) {
      const auto& [tensor, on_host] =
          values[std::string(input.from.node.name())]
                [static_cast<size_t>(input.from.port)];
      run.AddInput(testing::InputSlot(tensor, on_host));
    }
    for (const auto& port : ports.outputs)
      run.AddOutput(port.type, port.on_host);
    TFPLUG_RETURN_IF_ERROR(run.Run());
    for (size_t k = 0; k < ports.outputs.size(); ++k) {
      values[name].emplace_back(*run.output(static_cast<int>(k)),
                                ports.outputs[k].on_host);
    }
    return absl::OkStatus();
  }

  // Plays TensorFlow's kernels of Identity, Reshape, ExpandDims, Squeeze and
  // Shape, and that of Maximum for vectors in host memory: the fake describes no
  // ops to TF_InitKernel, which leaves it out.
  absl::Status MoveElements(Node node, const runtime::NodePorts& ports) {
    const auto input = [&](int i) {
      const Output from = node.input(i);
      return values[std::string(from.node.name())]
                   [static_cast<size_t>(from.port)];
    };
    Placed y = input(0);
    auto& dims = y.first.dims;
    const auto ints = [&](int i) {
      return testing::ReadTensor<int32_t>(nullptr, input(i).first)->elements;
    };
    if (node.op() == "Reshape") {
      const auto sizes = ints(1);
      const int64_t count = y.first.size();
      dims.assign(sizes.begin(), sizes.end());
      for (int64_t& dim : dims) {
        if (dim == -1) dim = count / -testing::CountElements(dims);
      }
    } else if (node.op() == "ExpandDims") {
      const int axis = ints(1)[0];
      dims.insert(axis < 0 ? dims.end() + 1 + axis : dims.begin() + axis, 1);
    } else if (node.op() == "Squeeze") {
      dims.erase(std::remove(dims.begin(), dims.end(), 1), dims.end());
    } else if (node.op() == "Maximum") {
      auto a = ints(0);
      const auto b = ints(1);
      for (size_t i = 0; i < a.size(); ++i) a[i] = std::max(a[i], b[i]);
      y = {*testing::MakeDeviceTensor<int32_t>(nullptr, {dims, a}), true};
    } else if (node.op() == "Shape") {
      testing::Value<int32_t> shape{{static_cast<int64_t>(dims.size())},
                                    {dims.begin(), dims.end()}};
      y = {*testing::MakeDeviceTensor<int32_t>(nullptr, shape), true};
    } else if (node.op() != "Identity") {
      return absl::NotFoundError(absl::StrCat("no kernel for ", node.op()));
    }
    y.second = ports.outputs[0].on_host;
    values[std::string(node.name())] = {y};
    return absl::OkStatus();
  }
};

}  // namespace tfplug::region_test

#endif  // TFPLUG_TESTS_OP_KERNELS_REGION_GRAPH_H_
