// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/kernel/kernel.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/passes/lower_variable_updates.h>
#include <tfplug/testing/fake_tensorflow.h>
#include <tfplug/testing/graph_text.h>

#include <string>

namespace tfplug::lower_variable_updates_test {
namespace {

struct NoKernel : Kernel {
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

// Registers kernels of this library, and unregisters them on destruction.
struct Kernels {
  Kernels() { kernel_internal::RegisteredKernels().Clear(); }
  ~Kernels() { kernel_internal::RegisteredKernels().Clear(); }
  template <class... Types>
  void Add(const char* op, const char* attr) {
    RegisterKernel<NoKernel>(
        KernelDef(op).Device("SIM").TypeConstraint<Types...>(attr));
  }
};

// A graph of updates of float variables, with slices at int64 indices. Nodes
// are on the device unless their text has another one.
struct Updates {
  // TensorFlow has had no functions that update variables since 2.19.
  explicit Updates(const std::string& text, testing::Release release = {2, 21})
      : fake({release, {}}) {
    const auto added = testing::AddNodes(
        graph, "u, v, w = VarHandleOp()\ni, x, p, before = Const()\n" + text,
        kOptions);
    REQUIRE_MESSAGE(added.ok(), added.status().ToString());
  }
  absl::Status TryRun() {
    const testing::TF_GrapplerItem item;
    return LowerVariableUpdates().Run(graph, PassContext("SIM", "", &item));
  }
  // Runs the pass, and returns how the result differs from a text.
  std::string Lowered(const std::string& text) {
    const absl::Status status = TryRun();
    REQUIRE_MESSAGE(status.ok(), status.ToString());
    REQUIRE(graph.status().ok());
    REQUIRE(graph.TopologicalOrder().ok());
    return testing::CompareGraph(graph, text, kOptions);
  }

  const testing::GraphTextOptions kOptions = {
      "SIM", "dtype=float, Tindices=int64", nullptr};
  testing::ScopedFakeTensorFlow fake;
  Graph graph;
};

TEST_CASE("an update becomes a read, a sum and an assignment") {
  Updates sub(R"(
      sub = AssignSubVariableOp(v, x:1, ^before) {_class=["loc:@v"]}
      after = NoOp(^sub))");
  CHECK(sub.Lowered(R"(
      after = NoOp(^sub)
      sub = AssignVariableOp(v, sub/sub, ^before) {validate_shape=true,
                                                   dtype=float}
      sub/read = ReadVariableOp(v, ^before, ^x) {dtype=float, _class=["loc:@v"]}
      sub/sub = Sub(sub/read, x:1) {T=float, _class=["loc:@v"]})") == "");
}

TEST_CASE("an update of slices becomes a read, a scatter and an assignment") {
  for (const std::string how : {"Add", "Sub", "Update", "Max", "Min"}) {
    Updates update("s = ResourceScatter" + how + "(v, i, x:1, ^before)");
    CHECK(update.Lowered(R"(
        s = AssignVariableOp(v, s/scatter, ^before) {validate_shape=true,
                                                     !Tindices}
        s/first_dim: int32 = 0 (^i)
        s/first_dim_1: int32 = 0 (^i)
        s/index = ExpandDims(s/indices, s/last_dim) {T=int64, Tdim=int32}
        s/indices = ExpandDims(i, s/first_dim)
        s/last_dim: int32 = -1 (^i)
        s/read = ReadVariableOp(v, ^before, ^i, ^x)
        s/slices = ExpandDims(x:1, s/first_dim_1)
        s/scatter = TensorScatter)" +
                         how +
                         R"((s/read, s/index, s/slices))"
                         R"( {T=float, Tindices=int64})") == "");
  }
}

TEST_CASE("a gather of a variable becomes a read and a gather") {
  Updates gather(R"(
      g = ResourceGather(v, i:1, ^before) {batch_dims=1, validate_indices=true}
      list = ResourceGather(v, i) {dtype=variant})");
  CHECK(gather.Lowered(R"(
      g = GatherV2(g/read, i:1, g/axis, ^before) {
          Tparams=float, Taxis=int32, Tindices=int64, batch_dims=1, !dtype,
          !validate_indices}
      g/axis: int32 = 1 (^i)
      g/read = ReadVariableOp(v, ^before, ^i)
      list = ResourceGather(v, i) {dtype=variant})") == "");
}

TEST_CASE("updates and reads of elements become ops on values") {
  Updates updates(R"(
      nd = ResourceScatterNdMax(v, i, x) {!dtype, T=float, use_locking=true}
      slice = ResourceStridedSliceAssign(v, i, i, i, x, ^nd) {
          !dtype, !Tindices, T=float, Index=int32, begin_mask=2}
      g = ResourceGatherNd(v, i, ^slice))");
  CHECK(updates.Lowered(R"(
      g = GatherNd(g/read, i, ^slice)
      g/read = ReadVariableOp(v, ^i, ^slice)
      nd = AssignVariableOp(v, nd/scatter) {
          dtype=float, validate_shape=true, !T, !Tindices, !use_locking}
      nd/read = ReadVariableOp(v, ^i, ^x)
      nd/scatter = TensorScatterMax(nd/read, i, x) {Tindices=int64,
                                                    !use_locking}
      slice = AssignVariableOp(v, slice/slice, ^nd)
      slice/read = ReadVariableOp(v, ^i, ^nd, ^x)
      slice/slice = TensorStridedSliceUpdate(slice/read, i, i, i, x) {
          begin_mask=2})") == "");
}

// Registers an optimizer's op and the op that computes its values.
struct OptimizerOps : Kernels {
  OptimizerOps() {
    kernel::UpdateOp op = {"ResourceSparseApplyMomentum", kNewTrainingValuesOp,
                           2, 6};
    op.indices = 4;
    op.option = "use_nesterov";
    kernel::UpdateOps() = {op};
    Add<float>(kNewTrainingValuesOp, "T");
  }
  ~OptimizerOps() { kernel::UpdateOps().clear(); }
};

constexpr char kMomentumInputs[] = "a, b = VarHandleOp()\nlr, g, m = Const()\n";

// Returns the text of an update by momentum.
std::string Momentum(const std::string& name, const std::string& variables,
                     const std::string& rest = "",
                     const std::string& attrs = "T=float, use_nesterov=true") {
  return name + " = ResourceSparseApplyMomentum(" + variables +
         ", lr, g, i, m" + rest +
         " {!dtype, Tindices=int32, use_locking=true, " + attrs + "}\n";
}

TEST_CASE("an optimizer's op becomes reads, new values and assignments") {
  OptimizerOps ops;
  Updates train(kMomentumInputs + Momentum("train", "v, a", ", ^before)") +
                "after = NoOp(^train)");
  CHECK(train.Lowered(R"(
      train = AssignVariableOp(v, train/values, ^before, ^train/assign) {
          dtype=float, validate_shape=true, !T, !Tindices, !use_locking,
          !use_nesterov}
      train/assign = AssignVariableOp(a, train/values:1) {validate_shape=true}
      train/values = TfplugNewTrainingValuesV1(train/read, train/read_1, lr, g,
                                               i, m) {
          op="ResourceSparseApplyMomentum", N=2, option=true,
          Targs=[float, float, int32, float]}
      train/read = ReadVariableOp(v, ^before, ^g, ^i, ^lr, ^m)
      train/read_1 = ReadVariableOp(a, ^before, ^g, ^i, ^lr, ^m)
      after = NoOp(^train))") == "");
}

TEST_CASE("updates that share one of several variables are ordered") {
  OptimizerOps ops;
  Updates updates(kMomentumInputs + Momentum("first", "v, a", ")") +
                  Momentum("second", "w, a", ", ^first)") +
                  "sum = AssignAddVariableOp(a, g, ^second)");
  CHECK(updates.Lowered(R"(
      second/read_1 = ReadVariableOp(a, ^first, ^g, ^i, ^lr, ^m)
      sum/read = ReadVariableOp(a, ^g, ^second)
      ...)") == "");
}

TEST_CASE("an optimizer's op is left alone if it can or must be") {
  OptimizerOps ops;
  const auto op_after = [](const std::string& text,
                           testing::Release release = {2, 21}) {
    Updates updates(kMomentumInputs + text, release);
    REQUIRE(updates.Lowered("...") == "");
    return std::string(updates.graph.FindNode("train").op());
  };
  const std::string op = "ResourceSparseApplyMomentum";
  CHECK(op_after(Momentum("train", "v, a", ")")) == "AssignVariableOp");
  CHECK(op_after(Momentum("train", "v, a", ") @CPU")) == op);
  // No kernel on the CPU, none for double, and an attribute that is absent.
  CHECK(op_after(Momentum("train", "v, a", ") @")) == op);
  CHECK(op_after(Momentum("train", "v, a", ")",
                          "T=double, use_nesterov=true")) == op);
  CHECK(op_after(Momentum("train", "v, a", ")", "T=float")) == op);
  ops.Add<float>("ResourceSparseApplyMomentum", "T");
  CHECK(op_after(Momentum("train", "v, a", ")"), {2, 18}) == op);
}

TEST_CASE("a gather with negative batch_dims is left alone") {
  Updates gather("g = ResourceGather(v, i) {batch_dims=-1}");
  CHECK(gather.Lowered("g = ResourceGather(v, i)") == "");
}

TEST_CASE("updates of slices and of the whole variable are ordered") {
  Updates both(R"(
      whole = AssignAddVariableOp(v, x)
      some = ResourceScatterAdd(v, i, x, ^whole))");
  CHECK(both.Lowered("some/read = ReadVariableOp(v, ^i, ^whole, ^x)\n...") ==
        "");
}

TEST_CASE("without a kernel for both types, the CPU updates slices") {
  Kernels kernels;
  RegisterKernel<NoKernel>(KernelDef("TensorScatterAdd")
                               .Device("SIM")
                               .TypeConstraint<float>("T")
                               .TypeConstraint<int32_t>("Tindices"));
  kernels.Add<float>("GatherV2", "Tparams");
  Updates updates(R"(
      long = ResourceScatterAdd(v, i, x)
      short = ResourceScatterAdd(v, i, x) {Tindices=int32}
      gather = ResourceGather(v, i)
      other = ResourceGather(v, i) {dtype=int64})");
  CHECK(updates.Lowered(R"(
      long/scatter = TensorScatterAdd(long/read, long/index, long/slices) @CPU
      long/index = ExpandDims(long/indices, long/last_dim) @CPU
      long/read = ReadVariableOp(v, ^i, ^x)
      short/scatter = TensorScatterAdd(short/read, short/index, short/slices) {
          Tindices=int32}
      gather = GatherV2(gather/read, i, gather/axis)
      other = GatherV2(other/read, i, other/axis) @CPU
      other/read = ReadVariableOp(v, ^i) {dtype=int64}
      ...)") == "");
}

TEST_CASE("added nodes do not take a name that is already used") {
  Updates add(R"(
      a/read = Const()
      a = AssignAddVariableOp(v, a/read))");
  CHECK(add.Lowered(R"(
      a = AssignVariableOp(v, a/add)
      a/add = AddV2(a/read_1, a/read)
      a/read_1 = ReadVariableOp(v, ^a/read))") == "");
}

TEST_CASE("unordered updates of one variable become ordered") {
  Updates updates(R"(
      same = Identity(v)
      a = AssignAddVariableOp(v, x)
      b = AssignSubVariableOp(same, x)
      c = AssignAddVariableOp(w, x))");
  const std::string a_first = updates.Lowered(R"(
      a/read = ReadVariableOp(v, ^x)
      b/read = ReadVariableOp(same, ^a, ^x)
      c/read = ReadVariableOp(w, ^x)
      ...)");
  const std::string b_first = updates.Lowered(R"(
      a/read = ReadVariableOp(v, ^b, ^x)
      b/read = ReadVariableOp(same, ^x)
      c/read = ReadVariableOp(w, ^x)
      ...)");
  CHECK((a_first.empty() || b_first.empty()));
}

TEST_CASE("an existing order is kept") {
  // The later update comes first in the graph.
  Updates updates(R"(
      late = AssignSubVariableOp(v, x, ^early)
      early = AssignSubVariableOp(v, x))");
  CHECK(updates.Lowered(R"(
      early/read = ReadVariableOp(v, ^x)
      late/read = ReadVariableOp(v, ^early, ^x)
      ...)") == "");
}

TEST_CASE("updates that hold different locks are not ordered") {
  Updates updates(R"(
      mutex = MutexV2()
      l1, l2 = MutexLock(mutex)
      a = AssignAddVariableOp(v, x, ^l1)
      b = AssignAddVariableOp(v, x, ^l2)
      c, d = AssignAddVariableOp(w, x, ^l2)
      e = AssignAddVariableOp(u, x, ^l1)
      f = AssignAddVariableOp(u, x, ^e)
      g = AssignAddVariableOp(u, x, ^l2)
      t = VarHandleOp()
      h = AssignAddVariableOp(t, x, ^l1)
      j = AssignAddVariableOp(t, x)
      k = AssignAddVariableOp(t, x, ^l2))");
  CHECK(updates.Lowered(R"(
      a/read = ReadVariableOp(v, ^l1, ^x)
      b/read = ReadVariableOp(v, ^l2, ^x)
      c/read = ReadVariableOp(w, ^l2, ^x)
      d/read = ReadVariableOp(w, ^c, ^l2, ^x)
      g/read = ReadVariableOp(u, ^l2, ^x)
      j/read = ReadVariableOp(t, ^h, ^x)
      k/read = ReadVariableOp(t, ^l2, ^x)
      ...)") == "");
}

TEST_CASE("no edge is added between the branches of a condition") {
  Updates updates(R"(
      switch = Switch(v, p)
      no = AssignAddVariableOp(switch, x)
      yes = AssignAddVariableOp(switch:1, x)
      pivot = Identity(switch)
      no_too = AssignAddVariableOp(v, x, ^pivot)
      always = AssignAddVariableOp(v, x))");
  CHECK(updates.Lowered(R"(
      no/read = ReadVariableOp(switch, ^x)
      yes/read = ReadVariableOp(switch:1, ^x)
      no_too/read = ReadVariableOp(v, ^pivot, ^x)
      always/read = ReadVariableOp(v, ^x)
      ...)") == "");
}

TEST_CASE("a cycle is an error that names its nodes and changes nothing") {
  Updates updates(R"(
      a = AssignAddVariableOp(v, x, ^b)
      b = AssignAddVariableOp(v, x, ^a))");
  updates.graph = Graph::Parse(updates.graph.ToString()).value();
  const absl::Status status = updates.TryRun();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(status.message().find("'a'") != absl::string_view::npos);
  CHECK(!updates.graph.changed());
}

TEST_CASE(
    "nodes on other devices are left alone; nodes without a device are not") {
  Updates updates(R"(
      cpu = AssignAddVariableOp(v, x) @CPU
      simon = AssignAddVariableOp(v, x) @SIMON
      none = AssignAddVariableOp(v, x) @
      short = AssignAddVariableOp(v, x) @/device:SIM:*)");
  CHECK(updates.Lowered(R"(
      cpu = AssignAddVariableOp(v, x) @CPU
      simon = AssignAddVariableOp(v, x) @SIMON
      none = AssignVariableOp(v, none/add) @
      short = AssignVariableOp(v, short/add) @/device:SIM:*
      ...)") == "");
}

TEST_CASE("updates with TensorFlow's functions and a kernel are left alone") {
  Kernels kernels;
  kernels.Add<float>("AssignAddVariableOp", "dtype");
  kernels.Add<float>("AddV2", "T");
  const std::string text =
      "f = AssignAddVariableOp(v, x)\n"
      "i64 = AssignAddVariableOp(w, x) {dtype=int64}";
  SUBCASE("2.18 has the functions, and there is no kernel for int64") {
    Updates updates(text, {2, 18});
    CHECK(updates.Lowered(R"(
        f = AssignAddVariableOp(v, x)
        i64 = AssignVariableOp(w, i64/add) {dtype=int64}
        ...)") == "");
  }
  SUBCASE("2.21 lacks the functions; the CPU adds where the device cannot") {
    Updates updates(text);
    CHECK(updates.Lowered(R"(
        f = AssignVariableOp(v, f/add)
        f/add = AddV2(f/read, x)
        i64 = AssignVariableOp(w, i64/add) {dtype=int64}
        i64/add = AddV2(i64/read, x) @CPU
        i64/read = ReadVariableOp(w, ^x) {dtype=int64}
        ...)") == "");
  }
  SUBCASE("an unplaced update without a kernel for the sum is left alone") {
    Updates updates(R"(
        f = AssignAddVariableOp(v, x) @
        i64 = AssignAddVariableOp(w, x) @ {dtype=int64})");
    CHECK(updates.Lowered(R"(
        f = AssignVariableOp(v, f/add) @
        i64 = AssignAddVariableOp(w, x) @ {dtype=int64}
        ...)") == "");
  }
}

TEST_CASE("a graph without updates is left unchanged") {
  Updates updates("broken = AssignAddVariableOp(v)");
  updates.graph = Graph::Parse(updates.graph.ToString()).value();
  CHECK(updates.Lowered("broken = AssignAddVariableOp(v)") == "");
  CHECK(!updates.graph.changed());
}

TEST_CASE("the device type is read from a device name") {
  using internal::DeviceTypeOf;
  const std::string kSim = testing::DeviceName("SIM");
  CHECK(DeviceTypeOf(kSim) == "SIM");
  CHECK(DeviceTypeOf("/device:SIM:*") == "SIM");
  CHECK(DeviceTypeOf("/job:a/device:SIM") == "SIM");
  CHECK(DeviceTypeOf("/gpu:0") == "GPU");
  CHECK(DeviceTypeOf("/job:localhost") == "");
  CHECK(DeviceTypeOf("") == "");
  CHECK(internal::CpuInSameTask(kSim) == testing::DeviceName("CPU"));
  CHECK(internal::CpuInSameTask("/device:SIM:1/job:a") ==
        "/device:CPU:0/job:a");
}

}  // namespace
}  // namespace tfplug::lower_variable_updates_test
