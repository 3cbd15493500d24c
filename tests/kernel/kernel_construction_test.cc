// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/kernel/kernel_construction.h>

#include <cstdint>
#include <string>
#include <vector>

#include "leak_checked_fake.h"

namespace tfplug::kernel_construction_test {
namespace {

using testing::LeakCheckedFake;

template <class T>
using List = std::vector<T>;

// A node with one attribute of each kind, single and as a list.
capi::TF_OpKernelConstruction MakeNode() {
  const auto tensor = testing::MakeTensor<float>({2}, {1, 2});
  testing::Node node = {"Conv2D", "model/conv", {}, {}};
  node.attrs = {
      {"bool", true},
      {"bools", List<bool>{true, false}},
      {"int", int64_t{-5}},
      {"ints", List<int64_t>{1, -2, 3}},
      {"big", int64_t{1} << 40},
      {"bigs", List<int64_t>{1, int64_t{1} << 40}},
      {"none", List<int64_t>{}},
      {"type", DataType::kHalf},
      {"types", List<DataType>{DataType::kHalf, DataType::kInt4}},
      {"float", 0.5f},
      {"floats", List<float>{0.5f, 2}},
      {"string", std::string("a\0b", 3)},
      {"empty", std::string()},
      {"strings", List<std::string>{"one", "", "three"}},
      {"shape", PartialShape(Shape{2, 3})},
      {"partial", PartialShape(Shape{2, -1})},
      {"shapes", List<PartialShape>{Shape{2}, PartialShape()}},
      {"scalar_shape", PartialShape(Shape{})},
      {"tensor", tensor},
      {"tensors", List<testing::TF_Tensor>{tensor, tensor}},
      {"func", Function{"body", ""}},
      {"funcs", List<Function>{{"then", ""}, {"else", ""}}},
  };
  return {node, {}};
}

TEST_CASE("every kind of attribute, single and as a list") {
  LeakCheckedFake fake;
  auto node = MakeNode();
  const KernelConstruction c(&node);
  CHECK(c.GetAttr<bool>("bool").value());
  CHECK(c.GetAttr<std::vector<bool>>("bools").value() ==
        std::vector<bool>{true, false});
  CHECK(c.GetAttr<int32_t>("int").value() == -5);
  CHECK(c.GetAttr<int64_t>("big").value() == int64_t{1} << 40);
  CHECK(c.GetAttr<std::vector<int32_t>>("ints").value() ==
        std::vector<int32_t>{1, -2, 3});
  CHECK(c.GetAttr<std::vector<int64_t>>("bigs").value()[1] == int64_t{1} << 40);
  CHECK(c.GetAttr<std::vector<int32_t>>("none").value().empty());
  CHECK(c.GetAttr<std::vector<std::string>>("none").status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(c.GetAttr<float>("float").value() == 0.5f);
  CHECK(c.GetAttr<std::vector<float>>("floats").value()[1] == 2);
  CHECK(c.GetAttr<DataType>("type").value() == DataType::kHalf);
  CHECK(c.GetAttr<std::vector<DataType>>("types").value()[1] ==
        DataType::kInt4);
  CHECK(c.GetAttr<std::string>("string").value() == std::string("a\0b", 3));
  CHECK(c.GetAttr<std::string>("empty").value().empty());
  CHECK(c.GetAttr<std::vector<std::string>>("strings").value() ==
        std::vector<std::string>{"one", "", "three"});
  CHECK(c.GetAttr<Shape>("shape").value() == Shape({2, 3}));
  CHECK(c.GetAttr<Shape>("scalar_shape").value() == Shape());
  CHECK(c.GetAttr<PartialShape>("partial").value().ToString() == "[2,?]");
  const auto shapes = c.GetAttr<std::vector<PartialShape>>("shapes").value();
  CHECK(shapes.size() == 2);
  CHECK(!shapes[1].has_rank());
  CHECK(c.GetAttr<Tensor>("tensor").value().ToString() == "float[2]");
  CHECK(c.GetAttr<std::vector<Tensor>>("tensors").value().size() == 2);
  CHECK(c.GetAttr<Function>("func").value().name == "body");
  CHECK(!c.GetAttr<Function>("func").value().name_attr_list.empty());
  CHECK(c.GetAttr<std::vector<Function>>("funcs").value()[1].name == "else");
  CHECK(c.name() == "model/conv");
  CHECK(c.GetOp().value() == "Conv2D");
  CHECK(!c.GetNodeDef().value().bytes().empty());
  CHECK(c.HasAttr("int"));
  CHECK(!c.HasAttr("nothing"));
}

// Checks that reading as T fails with INVALID_ARGUMENT for every attribute that
// is not in `good`, and with NOT_FOUND for a missing one, and that both errors
// name the attribute.
template <class T>
void CheckOnly(const std::vector<std::string>& good) {
  auto node = MakeNode();
  const KernelConstruction c(&node);
  for (const auto& attr : node.node.attrs) {
    const std::string& name = attr.first;
    const auto value = c.GetAttr<T>(name.c_str());
    bool expected = false;
    for (const std::string& one : good) expected = expected || one == name;
    CAPTURE(name);
    CHECK(value.ok() == expected);
    if (value.ok()) continue;
    CAPTURE(value.status().ToString());
    CHECK(value.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(value.status().message().find("attribute '" + name + "'") !=
          absl::string_view::npos);
  }
  const absl::Status absent = c.GetAttr<T>("absent").status();
  CHECK(absent.code() == absl::StatusCode::kNotFound);
  CHECK(absent.message().find("attribute 'absent'") != absl::string_view::npos);
}

TEST_CASE("wrong kinds and missing attributes are errors that name them") {
  LeakCheckedFake fake;
  CheckOnly<bool>({"bool"});
  CheckOnly<int32_t>({"int"});
  CheckOnly<int64_t>({"int", "big"});
  CheckOnly<float>({"float"});
  CheckOnly<DataType>({"type"});
  CheckOnly<std::string>({"string", "empty"});
  CheckOnly<Shape>({"shape", "scalar_shape"});
  CheckOnly<PartialShape>({"shape", "partial", "scalar_shape"});
  CheckOnly<Tensor>({"tensor"});
  CheckOnly<Function>({"func"});
  CheckOnly<std::vector<bool>>({"bools"});
  CheckOnly<std::vector<int32_t>>({"ints", "none"});
  CheckOnly<std::vector<int64_t>>({"ints", "bigs", "none"});
  CheckOnly<std::vector<float>>({"floats"});
  CheckOnly<std::vector<DataType>>({"types"});
  CheckOnly<std::vector<std::string>>({"strings"});
  CheckOnly<std::vector<Tensor>>({"tensors"});
  // A NodeDef does not record the kind of an empty list.
  CheckOnly<std::vector<PartialShape>>({"shapes", "none"});
  CheckOnly<std::vector<Function>>({"funcs", "none"});
}

template <class T>
void CheckFaults(const char* attr) {
  auto node = MakeNode();
  const KernelConstruction c(&node);
  testing::FailEachCall([&] { return c.GetAttr<T>(attr).status(); });
}

TEST_CASE("a failure of any C call is returned and nothing leaks") {
  LeakCheckedFake fake;
  CheckFaults<bool>("bool");
  CheckFaults<int32_t>("int");
  CheckFaults<int64_t>("int");
  CheckFaults<float>("float");
  CheckFaults<DataType>("type");
  CheckFaults<std::string>("string");
  CheckFaults<Shape>("shape");
  CheckFaults<Tensor>("tensor");
  CheckFaults<Function>("func");
  CheckFaults<std::vector<bool>>("bools");
  CheckFaults<std::vector<int32_t>>("ints");
  CheckFaults<std::vector<int64_t>>("ints");
  CheckFaults<std::vector<float>>("floats");
  CheckFaults<std::vector<DataType>>("types");
  CheckFaults<std::vector<std::string>>("strings");
  CheckFaults<std::vector<PartialShape>>("shapes");
  CheckFaults<std::vector<Tensor>>("tensors");
  CheckFaults<std::vector<Function>>("funcs");
}

TEST_CASE(
    "older releases: shapes are read by the C function, or are an error") {
  auto node = MakeNode();
  const KernelConstruction c(&node);
  {
    LeakCheckedFake fake({{2, 10}, {}});
    CHECK(c.GetAttr<Shape>("shape").value() == Shape({2, 3}));
    CHECK(c.GetAttr<PartialShape>("partial").status().code() ==
          absl::StatusCode::kInvalidArgument);
    CHECK(c.GetAttr<Function>("func").status().code() ==
          absl::StatusCode::kUnimplemented);
    CHECK(absl::IsUnimplemented(c.GetOp().status()));
    testing::FailEachCall([&] { return c.GetAttr<Shape>("shape").status(); });
  }
  LeakCheckedFake fake({{2, 5}, {}});
  const absl::Status tensor = c.GetAttr<Tensor>("tensor").status();
  CHECK(tensor.code() == absl::StatusCode::kUnimplemented);
  CHECK(tensor.message().find("from 2.8 on") != absl::string_view::npos);
  CHECK(c.GetAttr<Shape>("shape").status().code() ==
        absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace tfplug::kernel_construction_test
