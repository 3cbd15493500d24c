// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/narrow_types.h>
#include <tfplug/graph/constant.h>
#include <tfplug/graph/graph.h>

#include <cstring>
#include <string>
#include <vector>

namespace tfplug {
namespace {

using internal::AppendField;

// A TensorProto of this type and shape, before its values.
std::string Tensor(DataType dtype, const std::vector<int64_t>& dims) {
  std::string shape, tensor;
  for (int64_t dim : dims) {
    std::string size;
    AppendField(size, 1, static_cast<uint64_t>(dim));
    AppendField(shape, 2, size);
  }
  AppendField(tensor, 1, static_cast<uint64_t>(dtype));
  AppendField(tensor, 2, shape);
  return tensor;
}
template <class T>
std::string Bytes(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(&bytes[0], values.data(), bytes.size());
  return bytes;
}
template <class T>
std::vector<T> Elements(const std::string& tensor) {
  const auto constant = Constant::Parse(tensor);
  REQUIRE_MESSAGE(constant.ok(), constant.status().ToString());
  const auto elements = constant->GetElements<T>();
  REQUIRE(elements.ok());
  return *elements;
}
std::string Error(const std::string& tensor) {
  return std::string(Constant::Parse(tensor).status().message());
}

TEST_CASE("there and back") {
  const auto constant = Constant::Of(Shape{2, 1}, std::vector<double>{1.5, -2});
  const auto again = Constant::Parse(constant.Serialize());
  REQUIRE(again.ok());
  CHECK(again->dtype() == DataType::kDouble);
  CHECK(again->shape() == Shape{2, 1});
  CHECK(again->num_elements() == 2);
  CHECK(again->GetElements<double>().value() == std::vector<double>{1.5, -2});
  CHECK(again->GetElements<float>().status().message() ==
        "the constant holds double, not float");
  CHECK(again->Reshaped({2}).shape() == Shape{2});
}

TEST_CASE("each form that a TensorProto has") {
  using Floats = std::vector<float>;
  SUBCASE("bytes") {
    std::string tensor = Tensor(DataType::kFloat, {2});
    AppendField(tensor, 4, Bytes(Floats{1, 2}));
    CHECK(Elements<float>(tensor) == Floats{1, 2});
  }
  SUBCASE("packed numbers") {
    std::string tensor = Tensor(DataType::kFloat, {2});
    AppendField(tensor, 5, Bytes(Floats{1, 2}));
    CHECK(Elements<float>(tensor) == Floats{1, 2});
  }
  SUBCASE("one number after the other") {
    std::string tensor = Tensor(DataType::kFloat, {2});
    for (float value : {1.0f, 2.0f}) {
      internal::AppendVarint(tensor,
                             internal::MakeTag(5, internal::kFixed32Type));
      tensor += Bytes(Floats{value});
    }
    CHECK(Elements<float>(tensor) == Floats{1, 2});
  }
  SUBCASE("the last one repeated") {
    std::string tensor = Tensor(DataType::kFloat, {2, 2});
    AppendField(tensor, 5, Bytes(Floats{1, 2}));
    CHECK(Elements<float>(tensor) == Floats{1, 2, 2, 2});
  }
  SUBCASE("none: zeros") {
    CHECK(Elements<float>(Tensor(DataType::kFloat, {2})) == Floats{0, 0});
  }
  SUBCASE("no elements") {
    CHECK(Elements<float>(Tensor(DataType::kFloat, {0, 3})).empty());
  }
  SUBCASE("whole numbers, negative too") {
    std::string tensor = Tensor(DataType::kInt32, {3});
    std::string packed;
    internal::AppendVarint(packed, 7);
    internal::AppendVarint(packed, static_cast<uint64_t>(int64_t{-1}));
    AppendField(tensor, 7, packed);
    CHECK(Elements<int32_t>(tensor) == std::vector<int32_t>{7, -1, -1});
  }
  SUBCASE("small ones") {
    std::string tensor = Tensor(DataType::kInt8, {2});
    AppendField(tensor, 7, static_cast<uint64_t>(int64_t{-3}));
    AppendField(tensor, 7, uint64_t{4});
    CHECK(Elements<int8_t>(tensor) == std::vector<int8_t>{-3, 4});
  }
  SUBCASE("long ones") {
    std::string tensor = Tensor(DataType::kInt64, {});
    AppendField(tensor, 10, uint64_t{1} << 40);
    CHECK(Elements<int64_t>(tensor) == std::vector<int64_t>{int64_t{1} << 40});
  }
}

TEST_CASE("integers of either size") {
  const auto narrow = Constant::Of(Shape{2}, std::vector<int32_t>{-1, 2});
  CHECK(narrow.GetIntegers().value() == std::vector<int64_t>{-1, 2});
  const auto wide = Constant::Of(Shape{1}, std::vector<int64_t>{-5});
  CHECK(wide.GetIntegers().value() == std::vector<int64_t>{-5});
  CHECK_FALSE(Constant::Of(Shape{}, std::vector<float>{1}).GetIntegers().ok());
}

TEST_CASE("what is no constant") {
  std::string tensor = Tensor(DataType::kFloat, {2});
  AppendField(tensor, 4, "abc");
  CHECK(Error(tensor) == "the tensor of shape [2] has 3 bytes");
  tensor = Tensor(DataType::kFloat, {1});
  AppendField(tensor, 5, Bytes(std::vector<float>{1, 2}));
  CHECK(Error(tensor) == "the tensor of shape [1] has 8 bytes");
  CHECK(Error(Tensor(DataType::kString, {1})) ==
        "a tensor of string has no plain numbers to read");
  CHECK(Error(Tensor(DataType::kFloat, {-1})) ==
        "the tensor's bytes are no tensor");
  CHECK(Error(Tensor(DataType::kFloat, {1 << 30, 1 << 30})) ==
        "the tensor is larger than 4294967296 bytes");
  CHECK(Error("\xff") == "the tensor's bytes are no tensor");
  tensor = Tensor(DataType::kInt32, {1});
  AppendField(tensor, 7, "\xff");
  CHECK(Error(tensor) == "the tensor's bytes are no tensor");
}

TEST_CASE("of a node") {
  Graph graph;
  const Node node = graph.AddNode("c", "Const").value();
  CHECK(Constant::Read(node).status().message() ==
        "node 'c' has no tensor as its 'value'");
  std::string value;
  AppendField(value, 8,
              Constant::Of(Shape{}, std::vector<float>{4}).Serialize());
  node.SetRawAttr("value", value);
  CHECK(Constant::Read(node)->GetElements<float>().value() ==
        std::vector<float>{4});
  const Node other = graph.AddNode("x", "Placeholder").value();
  CHECK(Constant::Read(other).status().message() ==
        "node 'x' is no Const, but a Placeholder");
}

}  // namespace
}  // namespace tfplug
