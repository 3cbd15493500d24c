// SPDX-License-Identifier: Apache-2.0
#include "tfplug/passes/fuse_elementwise.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "capture_stderr.h"
#include "fusion_graph.h"
#include "tfplug/passes/default_passes.h"
#include "tfplug/passes/internal/fused_cluster.h"

namespace tfplug::fuse_elementwise_test {
namespace {

TEST_CASE("a chain becomes one op, whose result is the same") {
  Fusion f;
  f.Feed(R"(x: float[2,2] = [-1, 0, 1, 2]
            row: float[2] = [3, 4])");
  f.Add(R"(
      half = 0.5
      mul = Mul(x, half)
      sum = AddV2(mul, row)
      leaky = LeakyRelu(sum) {alpha=0.25}
      out = Identity(leaky))");
  CHECK(f.FuseAndCompare() == kFusedMapOp);
  CHECK(num_maps == 1);
  CHECK(absl::StartsWith(
      f.ExpressionOf("leaky/fused"),
      "float float;input:float 0;input:float 1;"
      "constant:float 4602678819172646912;mul:float 0 2;add:float 3 1;"));
  CHECK(f.Fuse() == kFusedMapOp);  // nothing is left to do
}

TEST_CASE("a scalar of any type becomes the bits of an instruction") {
  Fusion f;
  const PassContext context("MINIMAL", "", &f.item);
  const auto bits_of = [&](auto value) {
    using T = decltype(value);
    const Node node = f.graph.AddNode(f.graph.UniqueName("c"), "Const").value();
    Constant::Of<T>({}, {value}).Write(node);
    uint64_t bits = 0;
    CHECK(passes_internal::ReadScalar(context, node, DataTypeOf<T>(), &bits));
    return bits;
  };
  const uint64_t half = ConstantBits(DataType::kDouble, 1.5, 0);
  CHECK(bits_of(1.5f) == half);
  CHECK(bits_of(1.5) == half);
  CHECK(bits_of(Half(1.5f)) == half);
  CHECK(bits_of(BFloat16(1.5f)) == half);
  CHECK(bits_of(int8_t{-3}) == static_cast<uint64_t>(-3));
  constexpr int64_t kFar = -(int64_t{1} << 40);
  CHECK(bits_of(kFar) == static_cast<uint64_t>(kFar));
  CHECK(bits_of(uint8_t{200}) == 200);
  CHECK(bits_of(UINT64_MAX) == UINT64_MAX);
  CHECK(bits_of(true) == 1);
}

TEST_CASE("the first formula of an op counts, as for its kernel") {
  Fusion f;
  f.Feed("x: float[2] = [1, 2]");
  f.Add(R"(
      neg = Neg(x)
      exp = Exp(neg)
      out = Identity(exp))");
  ir::FusableOp second = ir::FusableOps().front();
  for (const ir::FusableOp& row : ir::FusableOps()) {
    if (absl::string_view(row.op.name) == "Exp") second = row;
  }
  second.op.name = "Neg";
  ir::FusableOps().push_back(second);
  f.FuseAndCompare();
  ir::FusableOps().pop_back();
  CHECK(absl::StrContains(f.ExpressionOf("exp/fused"), ";neg:float 0;exp:"));
}

TEST_CASE("a constant that may be fed stays an input") {
  for (const bool is_fetched : {true, false}) {
    Fusion f;
    f.Feed("x: float[2] = [1, 2]");
    f.Add(R"(
        half = 0.5
        mul = Mul(x, half)
        neg = Neg(mul)
        out = Identity(neg))");
    f.item.nodes_to_preserve = {"half"};
    if (is_fetched) f.item.fetch_nodes = {"half:0"};
    f.Fuse();
    CHECK(f["neg/fused"].num_inputs() == (is_fetched ? 1 : 2));
  }
}

TEST_CASE("a value with other uses becomes an output") {
  Fusion f;
  f.Feed("x: float[3] = [-1, 0, 1]");
  f.Add(R"(
      tanh = Tanh(x)
      exp = Exp(tanh)
      out1 = Identity(tanh)
      out2 = Identity(exp))");
  f.FuseAndCompare();
  CHECK(num_maps == 1);
  CHECK(f.Compare(R"(
      exp/fused = TfplugFusedMapV2(x)
      out1 = Identity(exp/fused)
      out2 = Identity(exp/fused:1))") == "");
}

TEST_CASE("no cycle is created") {
  Fusion f;
  f.Feed("x: float[2] = [1, 2]");
  f.Add(R"(
      a = Tanh(x)
      other = Identity(a)
      b = Exp(a)
      c = Mul(b, other)
      d = Neg(c)
      out = Identity(d))");
  CHECK(f.FuseAndCompare() == absl::StrCat("Tanh ", kFusedMapOp));
}

TEST_CASE("control edges are kept") {
  Fusion f;
  f.Add(R"(
      x, before, scalar_before = Placeholder()
      two = 2 (^scalar_before)
      a = Tanh(x, ^before)
      b = Mul(a, two)
      out = Identity(b)
      after = Identity(x, ^a))");
  f.Fuse();
  CHECK(f.Compare(R"(
      b/fused = TfplugFusedMapV2(x, ^before, ^scalar_before)
      out = Identity(b/fused)
      after = Identity(x, ^b/fused)
      ...)") == "");
}

TEST_CASE("a value that only a control edge uses") {
  Fusion f;
  f.Feed(R"(c: float[1,3] = [5, 6, 7]
            a: float[3] = [-1, 0, 1]
            b: float[3] = [1, 2, 3])");
  f.Add("used = AddV2(a, b)");
  SUBCASE("with an input of its own after the others") {
    f.Add("unused = Mul(used, c)");
  }
  SUBCASE("with an input of its own before the others") {
    f.Add("unused = Mul(c, used)");
  }
  f.Add(R"(
      out = Identity(used)
      after = Identity(a, ^unused))");
  CHECK(f.FuseAndCompare() == kFusedMapOp);
}

TEST_CASE("a control edge between two ops keeps them apart") {
  Fusion f;
  f.Add(R"(
      x = Placeholder()
      a = Tanh(x)
      b = Exp(a, ^a)
      out = Identity(b))");
  CHECK(f.Fuse() == "Exp Tanh");
}

TEST_CASE("some ops are left out") {
  Fusion f;
  std::string a = "Tanh(x)", b = "Exp(a)", result = "b";
  SUBCASE("on another device") { a += " @CPU"; }
  SUBCASE("without a device, as in a function's body") { a += " @"; }
  SUBCASE("with a kernel of the author") { b = "Elu(a)"; }
  SUBCASE("with the label of a kernel") { a += R"( {_kernel="label"})"; }
  SUBCASE("on the host") {
    a = "Neg(x) {T=int32}";
    b = "Abs(a) {T=int32}";
  }
  SUBCASE("preserved") { f.item.nodes_to_preserve = {"a"}; }
  SUBCASE("with a result for shapes that do not fit") {
    b = "Equal(a, x) {incompatible_shape_error=false}";
  }
  SUBCASE("that nothing uses") { result = "x"; }
  f.Add(absl::StrCat("x = Placeholder()\na = ", a, "\nb = ", b,
                     "\nout = Identity(", result, ")"));
  const std::string ops = f.Ops();
  CHECK(f.Fuse() == ops);
}

TEST_CASE("branches and loops") {
  Fusion f;
  f.Add(R"(
      x, p = Placeholder()
      a = Tanh(x)
      switch1 = Switch(a, p)
      switch2 = Switch(x, p))");
  SUBCASE("one branch") {
    f.Add(R"(
        b = Exp(switch1:1)
        c = Mul(b, switch2:1)
        out1 = Identity(b)
        out2 = Identity(c))");
    f.Fuse();
    CHECK(f["c/fused"]);
  }
  SUBCASE("a node outside of the branch") {
    SUBCASE("of a value") {}
    SUBCASE("of a reference") { f["switch2"].SetOp("RefSwitch"); }
    // out1 is needed also where c does not run.
    f.Add(R"(
        late = Identity(a)
        later = Identity(late)
        b = Exp(later)
        c = Mul(b, switch2:1)
        out1 = Identity(b)
        out2 = Identity(c))");
    f.Fuse();
    CHECK(f["b"]);
    CHECK(f["c"]);
  }
  SUBCASE("after both branches") {
    f.Add(R"(
        b = Exp(switch1)
        c = Neg(switch1:1)
        merge = Merge(b, c)
        d = Tanh(merge)
        e = Exp(x)
        sum = AddV2(d, e)
        out1 = Identity(e)
        out2 = Identity(sum))");
    f.Fuse();
    CHECK(f["sum/fused"]);
    CHECK(f["b"]);
    CHECK(f["c"]);
  }
  SUBCASE("a loop") {
    f.Add(R"(
        enter, constant = Enter(x) {frame_name="loop"}
        merge = Merge(enter, next)
        limit = LoopCond(merge)
        switch = Switch(merge, limit)
        b = Exp(switch:1)
        c = Mul(b, constant)
        side = Identity(b)
        next = NextIteration(c)
        exit = Exit(switch)
        d = Tanh(exit)
        e = AddV2(d, a)
        out1 = Identity(d)
        out2 = Identity(e))");
    f.Fuse();
    CHECK(f["c/fused"]);
    CHECK(f["e/fused"].num_inputs() == 2);
  }
}

TEST_CASE("a large cluster is divided") {
  Fusion f;
  f.Feed("n0: float[3] = [-1, 0, 1]");
  for (int i = 0; i < 100; ++i) {
    f.Feed(absl::StrCat("y", i, ": float[3] = [1, 2, 3]"));
    f.Add(absl::StrCat("n", i + 1, i % 2 == 0 ? " = AddV2(n" : " = Mul(n", i,
                       ", y", i, ")"));
  }
  f.Add("out = Identity(n100)");
  CHECK(absl::StrContains(f.FuseAndCompare(), kFusedMapOp));
  for (const Node node : f.graph.nodes(kFusedMapOp)) {
    CHECK(node.num_inputs() <= 16);
  }
}

TEST_CASE("errors name the shapes") {
  Fusion f;
  f.Feed(R"(x: float[3] = [-1, 0, 1]
            y: float[2] = [1, 2])");
  f.Add(R"(
      a = Tanh(x)
      b = AddV2(a, y)
      out = Identity(b))");
  f.Fuse();
  CHECK(absl::StrContains(f.Result("out"), "Incompatible shapes: [3] vs. [2]"));
}

TEST_CASE("an op's constant has the shape of its input") {
  for (const std::string type : {"float", "half"}) {
    Fusion f;
    f.Feed(absl::StrCat("x: ", type, "[3] = [-1, 0, 1]"));
    f.Feed(absl::StrCat("y: ", type, "[2,3] = [1, 2, 3, 4, 5, 6]"));
    f.Add(R"(
        ones = OnesLike(y)
        sum = AddV2(x, ones)
        out1 = Identity(sum)
        out2 = Identity(ones))",
          type);
    f.FuseAndCompare();
    CHECK(!f["ones"]);
  }
}

TEST_CASE("ops check the shapes of their inputs") {
  Fusion f;
  f.Feed(R"(x: float[2,3] = [-1, 0, 1, 2, 3, 4]
            row: float[3] = [1, 2, 3]
            one: float[1] = [1]
            scalar: float = 1)");
  std::string last, expected;
  SUBCASE("a bias for each column") { last = "BiasAdd(tanh, row)"; }
  SUBCASE("a bias of one element") {
    last = "BiasAdd(tanh, one)";
    expected = "Must provide as many biases";
  }
  SUBCASE("a bias of a vector") {
    last = "BiasAdd(exp, row)";
    expected = "Must provide as many biases";
  }
  SUBCASE("a sum of tensors of one shape") {
    last = "AddN(tanh, x, tanh) {N=3}";
  }
  SUBCASE("a sum with a row") {
    last = "AddN(tanh, x, row) {N=3}";
    expected = "all inputs must have the same shape: [3] vs. [2,3]";
  }
  SUBCASE("scalar bounds") { last = "ClipByValue(tanh, scalar, x)"; }
  SUBCASE("a row of bounds") {
    last = "ClipByValue(tanh, row, x)";
    expected = "all inputs must have the same shape: [3] vs. [2,3]";
  }
  f.Add(R"(
      tanh = Tanh(x)
      exp = Exp(row)
      end = Neg(last)
      out = Identity(end)
      last = )" +
        last);
  if (expected.empty()) {
    f.FuseAndCompare();
  } else {
    f.Fuse();
    const std::string result = f.Result("out");
    CHECK_MESSAGE(absl::StrContains(result, expected), result);
  }
  CHECK(f["end/fused"]);
}

TEST_CASE("int32 values of the device are compared there") {
  Fusion f;
  f.Feed(R"(bits: int32[3] = [-2147483648, 0, 5]
            zero: bool[3] = [1, 1, 0])");
  std::string number = "none";
  bool is_fused = false;
  SUBCASE("with a scalar") { is_fused = true; }
  SUBCASE("but not with a vector") { number = "many"; }
  SUBCASE("but not with a scalar that may be fed") {
    f.item.nodes_to_preserve = {"none"};
  }
  f.Add(R"(
      mask: int32 = -8
      none: int32 = 0
      many: int32[3] = 0
      sign = BitwiseAnd(bits, mask) {T=int32}
      less = Less(sign, )" +
        number + R"() {T=int32}
      and = LogicalAnd(less, zero) {!T}
      out = Identity(and) {T=bool})");
  CHECK((f.Fuse() == kFusedMapOp) == is_fused);
  if (!is_fused) {
    CHECK(f["less"]);
    return;
  }
  f.Feed("expected: bool[3] = [1, 0, 0]");
  CHECK(f.Result("out") == f.Result("expected"));
}

TEST_CASE("int32 values of the host are compared there") {
  Fusion f;
  f.Add(R"(
      yes = Placeholder()
      n: int32 = 3
      i = _Arg()
      less = Less(i, n) {T=int32}
      and = LogicalAnd(less, yes) {!T}
      not = LogicalNot(and) {!T}
      out = Identity(not) {T=bool})");
  f.Fuse();
  CHECK(f["less"]);
  CHECK(f["not/fused"]);
}

TEST_CASE("int32 values that only the device needs are computed there") {
  Fusion f;
  std::string tokens = "tokens = Placeholder() @CPU {dtype=int32}",
              op = "AddV2", more;
  std::string expected = kFusedMapOp;
  SUBCASE("as by an embedding") {}
  SUBCASE("but not if the host has them") {
    tokens = "tokens = _Arg() {T=int32}";
    expected = "AddV2 Less SelectV2";
  }
  SUBCASE("but not if the host needs them") {
    more = "other = Identity(moved) {T=int32}";
    expected = absl::StrCat("AddV2 ", kFusedMapOp);
  }
  SUBCASE("but not if this may fail") {
    op = "FloorDiv";
    expected = absl::StrCat("FloorDiv ", kFusedMapOp);
  }
  SUBCASE("but not if one must be preserved") {
    f.item.nodes_to_preserve = {"less", "moved"};
    expected = "AddV2 Less SelectV2";
  }
  f.Add(absl::StrCat(tokens, R"(
      zero: int32 = 0
      words: int32 = 10
      less = Less(tokens, zero) {T=int32}
      moved = )",
                     op, R"((tokens, words) {T=int32}
      select = SelectV2(less, moved, tokens) {T=int32}
      )",
                     more, R"(
      out = Identity(select) {T=int32})"));
  CHECK(f.Fuse() == expected);
  if (expected != kFusedMapOp) return;
  CHECK(f["select/fused"].num_inputs() == 1);
  CHECK(f.ExpressionOf("select/fused") ==
        "int32;input:int32 0;constant:int32 0;lt:bool 0 1;"
        "constant:int32 10;add:int32 0 3;select:int32 2 4 0;5:int32");
}

TEST_CASE("decisions are logged") {
  Fusion f;
  f.Add(R"(
      x = Placeholder()
      product, other = MatMul(x, x)
      a = Tanh(product)
      b = Exp(a)
      between = Elu(b)
      c = Mul(b, between)
      last: int32[1] = [-1]
      sum = Sum(c, last)
      d = Neg(other)
      out = Identity(other))");
  setenv("TFPLUG_LOG_FUSION", "1", 1);
  const std::string log = CaptureStderr([&] { f.Fuse(); });
  unsetenv("TFPLUG_LOG_FUSION");
  CHECK(log ==
        "tfplug: 'd' (Neg) is not fused with 'other' (MatMul): other nodes use "
        "it as well\n"
        "tfplug: 'c' (Mul) is not fused with 'b' (Exp): a node between them "
        "cannot be fused, or the cluster would have too many operands\n"
        "tfplug: fused 2 ops into 'b/fused' (1 inputs, 1 outputs): Tanh, Exp\n"
        "tfplug: fused a reduction (Sum) and the ops before it into "
        "'sum/fused'\n"
        "tfplug: fused 'product' (MatMul) and the ops after it into "
        "'b/fused/matmul'\n");
}

TEST_CASE("the pass is among the default passes") {
  const auto is_among_them = [] {
    std::vector<graph_internal::PassEntry> entries;
    passes_internal::AppendLastPasses("SIM", OptimizerSettings(), entries);
    return std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
      return absl::EndsWith(entry.name, "FuseElementwise");
    });
  };
  CHECK(is_among_them());
  setenv("TFPLUG_FUSION", "0", 1);
  CHECK_FALSE(is_among_them());
  unsetenv("TFPLUG_FUSION");
}

}  // namespace
}  // namespace tfplug::fuse_elementwise_test
