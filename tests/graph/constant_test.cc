// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/narrow_types.h>
#include <tfplug/graph/constant.h>
#include <tfplug/graph/graph.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace tfplug::constant_test {
namespace {

using internal::AppendField;

// Returns the dtype and shape fields of a TensorProto.
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

TEST_CASE("A constant is serialized and parsed") {
  const auto constant = Constant::Of(Shape{2, 1}, std::vector<double>{1.5, -2});
  const auto again = Constant::Parse(constant.Serialize());
  REQUIRE(again.ok());
  CHECK(again->dtype() == DataType::kDouble);
  CHECK(again->shape() == Shape{2, 1});
  CHECK(again->num_elements() == 2);
  CHECK(again->GetElements<double>().value() == std::vector<double>{1.5, -2});
  CHECK(again->GetElements<float>().status().message() ==
        "the constant has elements of type double, not float");
  CHECK(again->Reshaped({2}).shape() == Shape{2});
}

TEST_CASE("Booleans are elements like all others") {
  const std::vector<bool> bits{true, false, true};
  const auto constant = Constant::Of(Shape{3}, bits);
  CHECK(constant.GetBytes() == std::string("\1\0\1", 3));
  const auto again = Constant::Parse(constant.Serialize());
  REQUIRE(again.ok());
  CHECK(again->GetElements<bool>().value() == bits);
  CHECK(!again->GetElements<int8_t>().ok());

  std::string splat = Tensor(DataType::kBool, {3});
  AppendField(splat, 11, uint64_t{1});
  CHECK(Elements<bool>(splat) == std::vector<bool>{true, true, true});
}

TEST_CASE("Every form of a TensorProto is parsed") {
  using Floats = std::vector<float>;
  SUBCASE("bytes") {
    std::string tensor = Tensor(DataType::kFloat, {2});
    AppendField(tensor, 4, Bytes(Floats{1, 2}));
    CHECK(Elements<float>(tensor) == Floats{1, 2});
  }
  SUBCASE("doubles, and Booleans other than 0 and 1") {
    std::string tensor = Tensor(DataType::kDouble, {2});
    AppendField(tensor, 6, Bytes(std::vector<double>{1, 2}));
    CHECK(Elements<double>(tensor) == std::vector<double>{1, 2});
    tensor = Tensor(DataType::kBool, {3});
    AppendField(tensor, 11, std::string("\0\1\2", 3));
    CHECK(Constant::Parse(tensor)->GetBytes() == std::string("\0\1\1", 3));
  }
  SUBCASE("packed numbers") {
    std::string tensor = Tensor(DataType::kFloat, {2});
    AppendField(tensor, 5, Bytes(Floats{1, 2}));
    CHECK(Elements<float>(tensor) == Floats{1, 2});
  }
  SUBCASE("unpacked numbers") {
    std::string tensor = Tensor(DataType::kFloat, {2});
    for (float value : {1.0f, 2.0f}) {
      internal::AppendVarint(tensor,
                             internal::MakeTag(5, internal::kFixed32Type));
      tensor += Bytes(Floats{value});
    }
    CHECK(Elements<float>(tensor) == Floats{1, 2});
  }
  SUBCASE("a repeated last element") {
    std::string tensor = Tensor(DataType::kFloat, {2, 2});
    AppendField(tensor, 5, Bytes(Floats{1, 2}));
    CHECK(Elements<float>(tensor) == Floats{1, 2, 2, 2});
  }
  SUBCASE("zeros if no elements are stored") {
    CHECK(Elements<float>(Tensor(DataType::kFloat, {2})) == Floats{0, 0});
  }
  SUBCASE("no elements") {
    CHECK(Elements<float>(Tensor(DataType::kFloat, {0, 3})).empty());
  }
  SUBCASE("int32, including negative values") {
    std::string tensor = Tensor(DataType::kInt32, {3});
    std::string packed;
    internal::AppendVarint(packed, 7);
    internal::AppendVarint(packed, static_cast<uint64_t>(int64_t{-1}));
    AppendField(tensor, 7, packed);
    CHECK(Elements<int32_t>(tensor) == std::vector<int32_t>{7, -1, -1});
  }
  SUBCASE("int8") {
    std::string tensor = Tensor(DataType::kInt8, {2});
    AppendField(tensor, 7, static_cast<uint64_t>(int64_t{-3}));
    AppendField(tensor, 7, uint64_t{4});
    CHECK(Elements<int8_t>(tensor) == std::vector<int8_t>{-3, 4});
  }
  SUBCASE("int64") {
    std::string tensor = Tensor(DataType::kInt64, {});
    AppendField(tensor, 10, uint64_t{1} << 40);
    CHECK(Elements<int64_t>(tensor) == std::vector<int64_t>{int64_t{1} << 40});
  }
}

TEST_CASE("GetIntegers reads int32 and int64") {
  const auto narrow = Constant::Of(Shape{2}, std::vector<int32_t>{-1, 2});
  CHECK(narrow.GetIntegers().value() == std::vector<int64_t>{-1, 2});
  const auto wide = Constant::Of(Shape{1}, std::vector<int64_t>{-5});
  CHECK(wide.GetIntegers().value() == std::vector<int64_t>{-5});
  CHECK_FALSE(Constant::Of(Shape{}, std::vector<float>{1}).GetIntegers().ok());
}

TEST_CASE("Invalid constants are rejected") {
  std::string tensor = Tensor(DataType::kFloat, {2});
  AppendField(tensor, 4, "abc");
  CHECK(Error(tensor) ==
        "the tensor of shape [2] needs 8 bytes of elements, but has 3");
  tensor = Tensor(DataType::kFloat, {1});
  AppendField(tensor, 5, Bytes(std::vector<float>{1, 2}));
  CHECK(Error(tensor) ==
        "the tensor of shape [1] needs 4 bytes of elements, but has 8");
  CHECK(Error(Tensor(DataType::kString, {1})) ==
        "a tensor of type string has no elements of fixed size");
  CHECK(Error(Tensor(DataType::kFloat, {-1})) ==
        "the tensor's bytes are malformed");
  CHECK(Error(Tensor(DataType::kFloat, {1 << 30, 1 << 30})) ==
        "the tensor has more than 4294967296 bytes");
  CHECK(Error("\xff") == "the tensor's bytes are malformed");
  tensor = Tensor(DataType::kInt32, {1});
  AppendField(tensor, 7, "\xff");
  CHECK(Error(tensor) == "the tensor's bytes are malformed");
}

TEST_CASE("The constant of a node is read and written") {
  Graph graph;
  const Node node = graph.AddNode("c", "Const").value();
  CHECK(Constant::Read(node).status().message() ==
        "node 'c' (Const): its attribute 'value' is not a tensor");
  std::string value;
  AppendField(value, 8,
              Constant::Of(Shape{}, std::vector<float>{4}).Serialize());
  node.SetRawAttr("value", value);
  CHECK(Constant::Read(node)->GetElements<float>().value() ==
        std::vector<float>{4});
  Constant::Of(Shape{2}, std::vector<int16_t>{-7, 8}).Write(node);
  CHECK(node.GetAttr<DataType>("dtype").value() == DataType::kInt16);
  CHECK(Constant::Read(node)->GetElements<int16_t>().value() ==
        std::vector<int16_t>{-7, 8});
  CHECK(Constant::ReadShape(node).value() == Shape{2});
  const Node other = graph.AddNode("x", "Placeholder").value();
  CHECK(Constant::ReadShape(other).status() == Constant::Read(other).status());
  CHECK(Constant::Read(other).status().message() ==
        "node 'x' is a Placeholder, not a Const, and has no constant value");
}

// Expanding 4 GiB would exceed the test's timeout.
TEST_CASE("A repeated last element is not expanded") {
  const auto splat = [](DataType dtype, int field, const std::string& packed,
                        int64_t count) {
    std::string tensor = Tensor(dtype, {count});
    AppendField(tensor, field, packed);
    return tensor;
  };
  const int64_t many = int64_t{1} << 30;
  const std::string bytes =
      splat(DataType::kFloat, 5, Bytes(std::vector<float>{2.5f}), many);
  const auto constant = Constant::Parse(bytes);
  REQUIRE(constant.ok());
  CHECK(constant->is_splat());
  CHECK(constant->num_elements() == many);
  CHECK(constant->Serialize() == bytes);
  CHECK(constant->Reshaped(Shape{many / 2, 2}).Serialize().size() < 100);
  Graph graph;
  const Node node = graph.AddNode("c", "Const").value();
  constant->Write(node);
  CHECK(Constant::ReadShape(node).value() == Shape{many});
  CHECK(graph.ByteSize() < 100);

  // Each encoding of the elements is parsed and serialized again.
  std::string varints;
  for (int64_t value : {int64_t{3}, int64_t{-3}}) {
    internal::AppendVarint(varints, static_cast<uint64_t>(value));
  }
  for (const auto& [dtype, field] :
       std::vector<std::pair<DataType, int>>{{DataType::kInt8, 7},
                                             {DataType::kInt16, 7},
                                             {DataType::kInt32, 7},
                                             {DataType::kInt64, 10}}) {
    const std::string tensor = splat(dtype, field, varints, many / 4);
    const auto parsed = Constant::Parse(tensor);
    REQUIRE(parsed.ok());
    CHECK_FALSE(parsed->is_splat());
    CHECK(parsed->Serialize() == tensor);
  }
  const auto few = Constant::Parse(splat(DataType::kInt8, 7, varints, 7));
  CHECK(few->GetElements<int8_t>().value() ==
        std::vector<int8_t>{3, -3, -3, -3, -3, -3, -3});
  CHECK(few->GetBytes().size() == 7);
}

// The shape is read although the elements are invalid.
TEST_CASE("ReadShape() does not read the elements") {
  Graph graph;
  const Node node = graph.AddNode("c", "Const").value();
  std::string tensor = Tensor(DataType::kInt32, {3, 4}), value;
  AppendField(tensor, 7, "\xff");
  AppendField(value, 8, tensor);
  node.SetRawAttr("value", value);
  CHECK_FALSE(Constant::Read(node).ok());
  CHECK(Constant::ReadShape(node).value() == Shape{3, 4});
  node.SetRawAttr("value", "");
  CHECK_FALSE(Constant::ReadShape(node).ok());
}

}  // namespace
}  // namespace tfplug::constant_test
