// SPDX-License-Identifier: Apache-2.0
#include "tfplug/op_kernels/fused_map.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"
#include "tfplug/op_kernels/activation.h"
#include "tfplug/op_kernels/math.h"
#include "tfplug/op_kernels/register.h"
#include "tfplug/primitives/reference_backend.h"

// The attributes of the ops of FuseElementwise come from files, too: a kernel
// is constructed only if all of them are valid.
namespace {

using tfplug::DataType;
using tfplug::testing::AttrValue;
using tfplug::testing::FakeKernel;
using tfplug::testing::KernelRun;
using tfplug::testing::Node;
using Ints = std::vector<int64_t>;
using Strings = std::vector<std::string>;
using Types = std::vector<DataType>;

constexpr DataType kFloat = DataType::kFloat, kBool = DataType::kBool;

class Backend : public tfplug::ReferenceBackend<minimal::Stream> {};
TFPLUG_REGISTER_DEVICE(minimal::Platform);
TFPLUG_REGISTER_BACKEND(Backend, tfplug::FusedMapOps, tfplug::MathOps,
                        tfplug::ActivationOps);

Node MapNode() {
  Node node;
  node.op = tfplug::kFusedMapOp;
  node.attrs["Tin"] = Types{kFloat, kFloat};
  node.attrs["Tout"] = Types{kFloat, kBool};
  node.attrs["steps"] =
      Strings{"AddV2:float 0 1", "Less:float 2 0", "Select:float 3 2 1"};
  node.attrs["results"] = Ints{4, 3};
  return node;
}
Node ReduceNode() {
  Node node;
  node.op = tfplug::kFusedReduceOp;
  node.attrs["Tin"] = Types{kFloat};
  node.attrs["steps"] = Strings{"Square:float 0"};
  node.attrs["results"] = Ints{1};
  node.attrs["reduce"] = std::string("Sum");
  node.attrs["T"] = kFloat;
  node.attrs["Tidx"] = DataType::kInt32;
  node.attrs["keep_dims"] = false;
  node.attrs["Tafter"] = Types{kFloat};
  node.attrs["Tout"] = Types{kFloat};
  node.attrs["after_steps"] = Strings{"Mul:float 0 1"};
  node.attrs["after_results"] = Ints{2};
  return node;
}
Node MatMulNode() {
  Node node;
  node.op = tfplug::kFusedMatMulOp;
  node.attrs["T"] = kFloat;
  node.attrs["Tin"] = Types{kFloat};
  node.attrs["Tout"] = Types{kFloat};
  node.attrs["steps"] = Strings{"BiasAdd:float 0 1", "Relu:float 2"};
  node.attrs["results"] = Ints{3};
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
  absl::Status StatusWith(Node node, const std::string& attr, AttrValue value) {
    node.attrs[attr] = std::move(value);
    return Create(node).status();
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
    CHECK(absl::IsInvalidArgument(StatusWith(MapNode(), "Tout", types)));
  }
  for (const Node& node : {ReduceNode(), MatMulNode()}) {
    for (const Types& types : {Types{}, Types{DataType::kDouble}, Types{kBool},
                               Types{kFloat, kFloat}}) {
      CHECK(absl::IsInvalidArgument(StatusWith(node, "Tout", types)));
    }
  }
}

TEST_CASE_FIXTURE(FusedFixture, "results and arguments must exist") {
  for (const Ints& results :
       {Ints{}, Ints{4}, Ints{4, -1}, Ints{4, 5}, Ints{4, 1 << 30},
        Ints{4, INT64_MAX}, Ints{4, INT64_MIN},
        // Truncated to 32 bits, 3.
        Ints{4, (int64_t{1} << 32) + 3}}) {
    CHECK_FALSE(StatusWith(MapNode(), "results", results).ok());
  }
  CHECK_FALSE(StatusWith(ReduceNode(), "results", Ints{1, 1}).ok());
  CHECK_FALSE(StatusWith(ReduceNode(), "results", Ints{2}).ok());
  CHECK_FALSE(StatusWith(ReduceNode(), "after_results", Ints{3}).ok());
  CHECK_FALSE(StatusWith(MatMulNode(), "results", Ints{4}).ok());
  // Also in steps that no result needs.
  for (const char* step : {"Neg:float 3",
                           "Neg:float -1",
                           "Neg:float 2147483647",
                           "Neg:float 4294967296",
                           "Neg:float",
                           "Neg:float 0 1",
                           "AddV2:float 0",
                           "AddV2:float 0 99",
                           "Select:float 0",
                           "Select:float 0 1",
                           "Cast:float 0 1",
                           "BiasAdd:float 0",
                           "AddN:float",
                           "Const:float 0 =1",
                           "Foo:float 0",
                           "Neg:what 0",
                           "Neg 0",
                           "",
                           ":",
                           " ",
                           "Neg:float 0 "}) {
    CAPTURE(step);
    CHECK_FALSE(StatusWith(MapNode(), "steps",
                           Strings{"AddV2:float 0 1", step, "AddV2:float 0 1",
                                   "Less:float 0 1", "AddV2:float 0 1"})
                    .ok());
    CHECK_FALSE(StatusWith(ReduceNode(), "steps", Strings{step}).ok());
    CHECK_FALSE(
        StatusWith(ReduceNode(), "after_steps", Strings{"Neg:float 0", step})
            .ok());
    CHECK_FALSE(
        StatusWith(MatMulNode(), "steps", Strings{"Neg:float 0", step}).ok());
  }
}

TEST_CASE_FIXTURE(FusedFixture, "types that nothing is computed in") {
  for (const DataType type :
       {DataType::kString, DataType::kComplex64, DataType::kVariant,
        DataType::kResource, DataType::kQint8}) {
    CHECK_FALSE(StatusWith(MapNode(), "Tin", Types{type, kFloat}).ok());
    CHECK_FALSE(StatusWith(MatMulNode(), "T", type).ok());
    CHECK_FALSE(StatusWith(ReduceNode(), "T", type).ok());
  }
  for (const char* reduce : {"", "EuclideanNorm", "sum", "Neg"}) {
    CHECK(absl::IsInvalidArgument(
        StatusWith(ReduceNode(), "reduce", std::string(reduce))));
  }
}

// Returns an attribute like `value` with a change that may be a mistake.
AttrValue Changed(std::mt19937& random, const AttrValue& value) {
  const auto below = [&](size_t n) {
    return static_cast<size_t>(random() % static_cast<uint32_t>(n));
  };
  const auto type = [&] { return static_cast<DataType>(1 + below(25)); };
  AttrValue result = value;
  if (auto* flag = std::get_if<bool>(&result)) *flag = !*flag;
  if (auto* one = std::get_if<DataType>(&result)) *one = type();
  if (auto* text = std::get_if<std::string>(&result)) {
    const char* const names[] = {"Sum", "Mean", "Any", "Prod", "Max", "x"};
    *text = names[below(6)];
  }
  const auto change = [&](auto* list, auto make) {
    if (list == nullptr) return;
    if (list->empty() || below(4) == 0) {
      list->insert(
          list->begin() + static_cast<std::ptrdiff_t>(below(list->size() + 1)),
          make());
    } else if (below(4) == 0) {
      list->erase(list->begin() +
                  static_cast<std::ptrdiff_t>(below(list->size())));
    } else {
      (*list)[below(list->size())] = make();
    }
  };
  change(std::get_if<Types>(&result), type);
  change(std::get_if<Ints>(&result), [&] {
    const int64_t numbers[] = {0, 1, 2, 3, 4, 5, -1, INT64_MAX, 1 << 20};
    return numbers[below(9)];
  });
  change(std::get_if<Strings>(&result), [&] {
    const char* const ops[] = {"Neg",  "AddV2", "Select", "Cast",    "Const",
                               "AddN", "Pow",   "Less",   "BiasAdd", "Foo"};
    const char* const types[] = {"float", "bool", "int64", "half", "double"};
    std::string step = std::string(ops[below(10)]) + ":" + types[below(5)];
    for (size_t n = below(4); n > 0; --n) {
      step += " " + std::to_string(static_cast<int>(below(8)) - 1);
    }
    return below(5) == 0 ? step + " =" + std::to_string(random()) : step;
  });
  return result;
}

// What a kernel accepts it must also compute.
void RunKernel(FakeKernel& kernel, const Node& node,
               tfplug::testing::FakeDevice* device) {
  KernelRun run(kernel, device);
  const auto add = [&](DataType type) {
    if (type == kFloat) {
      run.AddInput<float>({{2, 2}, {1, -2, 3, -4}});
    } else if (type == kBool) {
      run.AddInput<bool>({{2, 2}, {true, false, true, true}});
    } else {
      return false;
    }
    return true;
  };
  const auto types = [&](const char* name) {
    return std::get<Types>(node.attrs.at(name));
  };
  bool can_run = true;
  if (node.op == tfplug::kFusedMatMulOp) {
    const DataType type = std::get<DataType>(node.attrs.at("T"));
    can_run = add(type) && add(type);
  }
  for (const DataType type : types("Tin")) can_run = can_run && add(type);
  if (node.op == tfplug::kFusedReduceOp || !can_run) return;
  for (const DataType type : types("Tout")) run.AddOutput(type);
  run.Run().IgnoreError();
}

TEST_CASE_FIXTURE(FusedFixture, "random attributes") {
  std::mt19937 random(3);
  int accepted = 0;
  for (int i = 0; i < 4000; ++i) {
    Node node = i % 3 == 0   ? MapNode()
                : i % 3 == 1 ? ReduceNode()
                             : MatMulNode();
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      auto attr = node.attrs.begin();
      std::advance(attr, random() % node.attrs.size());
      attr->second = Changed(random, attr->second);
    }
    const auto kernel = Create(node);
    if (!kernel.ok()) continue;
    ++accepted;
    RunKernel(**kernel, node, &fixture.device());
  }
  CHECK(accepted > 100);
}

}  // namespace
