// SPDX-License-Identifier: Apache-2.0
#include "tfplug/passes/lower_list_gradients.h"

#include <doctest/doctest.h>
#include <tfplug/kernel/kernel.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/testing/fake_tensorflow.h>
#include <tfplug/testing/graph_text.h>

#include <string>

namespace tfplug::lower_list_gradients_test {
namespace {

struct NoKernel : Kernel {
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

// A graph of variants, and a list of floats. Nodes are on the device unless
// their text has another one.
struct Variants {
  // TensorFlow has had no functions for such kernels from 2.19 to 2.21.
  explicit Variants(const std::string& text, testing::Release release = {2, 21})
      : fake({release, {}}) {
    kernel_internal::RegisteredKernels().Clear();
    const auto added = testing::AddNodes(
        graph,
        "shape, n, i, j, x, y, before = Const()\n"
        "list = TensorListFromTensor(x, shape) {element_dtype=float}\n" +
            text,
        {"SIM", "T=variant", nullptr});
    REQUIRE_MESSAGE(added.ok(), added.status().ToString());
    graph = Graph::Parse(graph.ToString()).value();
  }
  ~Variants() { kernel_internal::RegisteredKernels().Clear(); }

  // Runs the pass, and returns how the result differs from a text and the list.
  std::string Lowered(const std::string& text) {
    REQUIRE(LowerListGradients().Run(graph, PassContext("SIM", "", nullptr)) ==
            absl::OkStatus());
    REQUIRE(graph.Check().ok());
    REQUIRE(graph.TopologicalOrder().ok());
    return testing::CompareGraph(
        graph, "list = TensorListFromTensor(x, shape)\n" + text,
        {"SIM", "", nullptr});
  }

  testing::ScopedFakeTensorFlow fake;
  Graph graph;
};

TEST_CASE("zeros like a list are the list, resized to 0 and back") {
  Variants zeros(R"(
      same = Identity(list)
      z = ZerosLike(same, ^before) {_class=["loc:@list"]})");
  CHECK(zeros.Lowered(R"(
      same = Identity(list)
      z = TensorListResize(z/empty, z/length, ^before) {
          !T, _class=["loc:@list"]}
      z/empty = TensorListResize(same, z/zero)
      z/length = TensorListLength(same)
      z/zero = Sub(z/length, z/length) {T=int32})") == "");
}

// Lists of zeros with one element.
constexpr char kElements[] = R"(
    zeros = TensorListReserve(shape, n)
    first = TensorListSetItem(zeros, i, x) {element_dtype=float}
    second = TensorListSetItem(zeros, j, y) {element_dtype=float}
)";

TEST_CASE("a list and lists of one element are added element by element") {
  Variants sums(std::string(kElements) + R"(
      sum = AddN(first, list, second, first, ^before) {N=4}
      two = AddN(first, second) @)");
  CHECK(sums.Lowered(R"(
      sum = TensorListSetItem(sum/set_1, i, sum/add_2, ^before) {
          element_dtype=float, !T, !N}
      sum/shape = Shape(x) {T=float, out_type=int32}
      sum/get = TensorListGetItem(list, i, sum/shape) {element_dtype=float}
      sum/add = AddV2(sum/get, x) {T=float}
      sum/set = TensorListSetItem(list, i, sum/add) {element_dtype=float}
      sum/get_1 = TensorListGetItem(sum/set, j, sum/shape_1)
      sum/set_1 = TensorListSetItem(sum/set, j, sum/add_1)
      two = TensorListSetItem(second, i, two/add) @
      two/get = TensorListGetItem(second, i, two/shape) @
      two/add = AddV2(two/get, x) @
      ...)") == "");
}

TEST_CASE("other variants and other sums of lists move to the CPU") {
  Variants others(std::string(kElements) + R"(
      unknown = Placeholder()
      argument = _Arg()
      optional = OptionalFromValue(x)
      lists = TensorListReserve(shape, n) {element_dtype=variant}
      short = TensorListReserve(shape, n) {element_dtype=int8}
      set = TensorListSetItem(list, i, x) {element_dtype=float}
      scattered = TensorListScatterIntoExistingList(zeros, x, i) {
          element_dtype=float}
      a = ZerosLike(unknown) {_class=["loc:@list"]}
      b = AddN(argument, argument)
      c = ZerosLike(optional)
      d = ZerosLike(lists)
      e = AddN(short, short)
      f = AddN(list, first, set) {_class=["loc:@list"]}
      g = AddN(list, scattered)
      h = AddN(list)
      in_function = ZerosLike(argument) @
      on_cpu = ZerosLike(list) @CPU
      number = ZerosLike(x) {T=float})");
  CHECK(others.Lowered(R"(
      a = ZerosLike(unknown) @CPU {!_class}
      b = AddN(argument, argument) @CPU
      c = ZerosLike(optional) @CPU
      d = ZerosLike(lists) @CPU
      e = AddN(short, short) @CPU
      f = AddN(list, first, set) @CPU {!_class}
      g = AddN(list, scattered) @CPU
      h = AddN(list) @CPU
      in_function = ZerosLike(argument) @
      on_cpu = ZerosLike(list) @CPU
      number = ZerosLike(x)
      ...)") == "");
}

TEST_CASE("what forwards maps of tensors moves to the CPU") {
  const std::string map = "more = TensorMapInsert(x, x, y)\n";
  for (const testing::Release release : {testing::Release{2, 18}, {2, 21}}) {
    Variants maps(map + R"(
        a = Identity(more) {_class=["loc:@list"]}
        b = Identity(a) @
        other = Identity(list))",
                  release);
    CHECK(maps.Lowered(map + R"(
        a = Identity(more) @CPU {!_class}
        b = Identity(a) @/device:CPU:0
        other = Identity(list))") == "");
  }
}

TEST_CASE("kernels for lists leave only lists of other types to the CPU") {
  const std::string lists = R"(
      short = TensorListReserve(shape, n) {element_dtype=int8}
      a = ZerosLike(list)
      b = AddN(list, list)
      c = ZerosLike(short) )";
  CHECK(Variants(lists, {2, 18}).Lowered(lists + "@CPU") == "");
}

TEST_CASE("lists whose elements the device cannot add move to the CPU") {
  Variants added(R"(
      halfs = TensorListReserve(shape, n) {element_dtype=half}
      counts = TensorListReserve(shape, n) {element_dtype=int32}
      a = ZerosLike(list)
      b = ZerosLike(halfs)
      c = ZerosLike(counts))");
  RegisterKernel<NoKernel>(
      KernelDef("AddV2").Device("SIM").TypeConstraint<float>("T"));
  CHECK(added.Lowered(R"(
      a = TensorListResize(a/empty, a/length)
      b = ZerosLike(halfs) @CPU
      c = TensorListResize(c/empty, c/length)
      ...)") == "");
}

}  // namespace
}  // namespace tfplug::lower_list_gradients_test
