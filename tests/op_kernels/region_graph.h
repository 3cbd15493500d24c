// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_OP_KERNELS_REGION_GRAPH_H_
#define TFPLUG_TESTS_OP_KERNELS_REGION_GRAPH_H_

#include <cstdlib>

#include "describe_op.h"
#include "runnable_graph.h"
#include "tfplug/op_kernels/activation.h"
#include "tfplug/op_kernels/array.h"
#include "tfplug/op_kernels/math.h"
#include "tfplug/op_kernels/matmul.h"
#include "tfplug/op_kernels/reduction.h"
#include "tfplug/op_kernels/region.h"
#include "tfplug/op_kernels/register.h"
#include "tfplug/op_kernels/stream_copy.h"
#include "tfplug/passes/compile_regions.h"
#include "tfplug/primitives/reference_backend.h"

namespace tfplug::region_test {

class Backend : public ReferenceBackend<minimal::Stream> {};
TFPLUG_REGISTER_BACKEND(Backend, ActivationOps, ArrayOps, MathOps, MatMulOps,
                        ReductionOps, RegionOps, StreamCopyOps);
TFPLUG_REGISTER_HOST_KERNELS(MathOps);

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

// RegionOps registers no kernel without it.
inline const int are_regions_on = ::setenv("TFPLUG_REGIONS", "1", 1);

// A graph whose regions the pass collapses.
struct RegionGraph : RunnableGraph {
  RegionGraph() {
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
  ~RegionGraph() { testing::KnownOpDefs().clear(); }

  // Collapses regions, forgets the values computed before, and returns the
  // number of regions.
  int64_t Compile() {
    Run<CompileRegions>();
    int64_t count = 0;
    for (const Node node : graph.nodes()) count += node.op() == kRegionOp;
    return count;
  }
  // Does the same, and checks that the results stay the same.
  int64_t CompileAndCompare() {
    const auto expected = Results();
    const int64_t count = Compile();
    CheckResults(expected);
    return count;
  }
};

}  // namespace tfplug::region_test

#endif  // TFPLUG_TESTS_OP_KERNELS_REGION_GRAPH_H_
