// SPDX-License-Identifier: Apache-2.0
#include "tfplug/op_kernels/fused_map.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "fixture.h"
#include "minimal_device.h"
#include "tfplug/op_kernels/register.h"
#include "tfplug/primitives/reference_backend.h"

// The attributes of the ops of FuseElementwise come from files, too: a kernel
// is constructed only if all of them are valid. fuzz_fused.cc tries others.
namespace {

using tfplug::DataType;
using tfplug::testing::AttrValue;
using tfplug::testing::FakeKernel;
using tfplug::testing::Node;
using Ints = std::vector<int64_t>;
using Types = std::vector<DataType>;

constexpr DataType kFloat = DataType::kFloat, kBool = DataType::kBool;

class Backend : public tfplug::ReferenceBackend<minimal::Stream> {};
TFPLUG_REGISTER_DEVICE(minimal::Platform);
TFPLUG_REGISTER_BACKEND(Backend, tfplug::FusedMapOps);

Node MapNode() {
  Node node;
  node.op = tfplug::kFusedMapOp;
  node.attrs["Tin"] = Types{kFloat, kFloat};
  node.attrs["Tout"] = Types{kFloat, kBool};
  node.attrs["expression"] = std::string(
      "float float;input:float 0;input:float 1;add:float 0 1;lt:bool 2 0;"
      "select:float 3 2 1;4:float;3:bool");
  node.attrs["checks"] = Ints{0, 0, 1, 1, 2, 1};
  return node;
}
Node ReduceNode() {
  Node node;
  node.op = tfplug::kFusedReduceOp;
  node.attrs["Tin"] = Types{kFloat};
  node.attrs["expression"] =
      std::string("float;input:float 0;mul:float 0 0;1:float");
  node.attrs["checks"] = Ints{};
  node.attrs["reduce"] = std::string("Sum");
  node.attrs["T"] = kFloat;
  node.attrs["Tidx"] = DataType::kInt32;
  node.attrs["keep_dims"] = false;
  node.attrs["Tafter"] = Types{kFloat};
  node.attrs["Tout"] = Types{kFloat};
  node.attrs["after_expression"] = std::string(
      "float float;input:float 0;input:float 1;mul:float 0 1;2:float");
  node.attrs["after_checks"] = Ints{};
  return node;
}
Node MatMulNode() {
  Node node;
  node.op = tfplug::kFusedMatMulOp;
  node.attrs["T"] = kFloat;
  node.attrs["Tin"] = Types{kFloat};
  node.attrs["Tout"] = Types{kFloat};
  node.attrs["expression"] = std::string(
      "float float;input:float 0;input:float 1;add:float 0 1;2:float");
  node.attrs["checks"] = Ints{2, 0, 1};
  node.attrs["is_batch"] = false;
  node.attrs["transpose_a"] = false;
  node.attrs["transpose_b"] = false;
  return node;
}

struct FusedFixture {
  FusedFixture() {
    tfplug::testing::KernelRegistry::Get().Refill(&TF_InitKernel);
  }
  auto Create(const Node& node) {
    return FakeKernel::Create(node, fixture.host().device_type());
  }
  // Checks that the node is an error that contains `expected` with another
  // value of an attribute.
  void CheckMalformed(Node node, const std::string& attr, AttrValue value,
                      const std::string& expected) {
    node.attrs[attr] = std::move(value);
    const absl::Status status = Create(node).status();
    CHECK_MESSAGE(absl::IsInvalidArgument(status), node.op, " ", attr, ": ",
                  status.ToString());
    CHECK_MESSAGE(absl::StrContains(status.message(), expected),
                  status.ToString());
  }

  tfplug::Fixture<minimal::Platform> fixture;
};

TEST_CASE_FIXTURE(FusedFixture, "valid attributes") {
  for (const Node& node : {MapNode(), ReduceNode(), MatMulNode()}) {
    const auto kernel = Create(node);
    CHECK_MESSAGE(kernel.ok(), kernel.status().ToString());
  }
}

TEST_CASE_FIXTURE(FusedFixture, "outputs must have the types of the results") {
  for (const Types& types :
       {Types{}, Types{kFloat}, Types{kFloat, kFloat}, Types{kBool, kFloat},
        Types{DataType::kInt64, kBool}, Types{DataType::kDouble, kBool},
        Types{kFloat, kBool, kBool}, Types(50, kFloat)}) {
    CheckMalformed(MapNode(), "Tout", types, "outputs of other types");
  }
  for (const Node& node : {ReduceNode(), MatMulNode()}) {
    for (const Types& types : {Types{}, Types{DataType::kDouble}, Types{kBool},
                               Types{kFloat, kFloat}}) {
      CheckMalformed(node, "Tout", types, "outputs of other types");
    }
  }
  // What is reduced has the type of the reduction.
  CheckMalformed(ReduceNode(), "expression",
                 std::string("float;input:float 0;0:half"),
                 "outputs of other types");
  CheckMalformed(ReduceNode(), "expression",
                 std::string("float;input:float 0;0:float;0:float"),
                 "outputs of other types");
}

TEST_CASE_FIXTURE(FusedFixture, "inputs must have the types of the arguments") {
  for (const Types& types :
       {Types{}, Types{kFloat}, Types{kFloat, kBool},
        Types{kFloat, kFloat, kFloat}, Types{kFloat, DataType::kString}}) {
    CheckMalformed(MapNode(), "Tin", types, "inputs of other types");
    if (types.size() == 1) continue;
    CheckMalformed(MatMulNode(), "Tin", types, "inputs of other types");
  }
  CheckMalformed(ReduceNode(), "Tafter", Types{}, "inputs of other types");
  CheckMalformed(MatMulNode(), "T", DataType::kHalf, "inputs of other types");
  CheckMalformed(ReduceNode(), "T", DataType::kDouble, "of other types");
}

TEST_CASE_FIXTURE(FusedFixture, "expressions are valid") {
  const std::string begin = "float float;input:float 0;input:float 1;";
  const std::pair<std::string, const char*> wrong[] = {
      {"Tanh", "is no part of an expression"},
      {"float floating;0:float", "is no part of an expression"},
      {begin + "matmul:float 0 1;2:float", "is no part of an expression"},
      {begin + "add:float 0 4294967296;2:float", "is no part of an expression"},
      {begin + ";0:float", "is no part of an expression"},
      {"", "needs an output"},
      {begin + "add:float 0 1;3:float;2:float", "refers to no value"},
      {begin + "add:float 0 1;2:string", "refers to no value"},
      // Also in instructions that no output needs.
      {begin + "add:float 0 2;0:float", "does not precede it"},
      {begin + "add:float 0 -1;0:float", "does not precede it"},
      {begin + "neg:float 0 9;0:float", "has too many operands"},
      {begin + "add:float 0;0:float", "does not precede it"},
      {"float;input:float 1;0:float", "an input that does not exist"},
  };
  for (const auto& [text, expected] : wrong) {
    CheckMalformed(MapNode(), "expression", text, expected);
    CheckMalformed(ReduceNode(), "expression", text, expected);
    CheckMalformed(ReduceNode(), "after_expression", text, expected);
    CheckMalformed(MatMulNode(), "expression", text, expected);
  }
  CheckMalformed(MapNode(), "expression",
                 begin + "neg:float 0;lt:bool 2 0;2:float;3:bool",
                 "no output depends on one of its inputs");
  CheckMalformed(MapNode(), "expression",
                 begin +
                     "constant:int64 0;element:float 1 2;add:float 0 3;"
                     "lt:bool 4 1;4:float;5:bool",
                 "reads an input at an index");
}

TEST_CASE_FIXTURE(FusedFixture, "checks are valid") {
  for (const Ints& checks :
       {Ints{3, 0, 1}, Ints{-1, 0, 1}, Ints{0, -1, 0}, Ints{0, 0, 5},
        Ints{0, 0, INT64_MAX}, Ints{0, INT64_MIN, 0},
        // Truncated to 32 bits, valid.
        Ints{0, 0, int64_t{1} << 32}, Ints{int64_t{1} << 32, 0, 1}}) {
    for (const Node& node : {MapNode(), ReduceNode(), MatMulNode()}) {
      CheckMalformed(node, "checks", checks, "a check is unknown");
    }
    CheckMalformed(ReduceNode(), "after_checks", checks, "a check is unknown");
  }
  CheckMalformed(MapNode(), "checks", Ints{0, 0}, "its checks are no triples");
}

TEST_CASE_FIXTURE(FusedFixture, "types that nothing is computed in") {
  for (const DataType type :
       {DataType::kString, DataType::kComplex64, DataType::kVariant,
        DataType::kResource, DataType::kQint8}) {
    CheckMalformed(MapNode(), "Tin", Types{type, kFloat}, "of other types");
    CheckMalformed(MatMulNode(), "T", type, "T is no real number");
    CheckMalformed(ReduceNode(), "T", type, "no reduction Sum has this type");
  }
  CheckMalformed(ReduceNode(), "T", kBool, "no reduction Sum has this type");
  for (const char* reduce : {"", "EuclideanNorm", "sum", "Neg", "All"}) {
    CheckMalformed(ReduceNode(), "reduce", std::string(reduce), "no reduction");
  }
}

}  // namespace
