// SPDX-License-Identifier: Apache-2.0
#include "tfplug/base/internal/tensor_size.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"

namespace tfplug::internal::tensor_size_test {
namespace {

TEST_CASE("CheckedSize: counts elements and bytes") {
  const auto check = [](DataType dtype, const Shape& shape, int64_t elements,
                        size_t bytes) {
    const auto size = CheckedSize(dtype, shape);
    REQUIRE(size.ok());
    CHECK(size->elements == elements);
    CHECK(size->bytes == bytes);
  };
  check(DataType::kFloat, {2, 3}, 6, 24);
  check(DataType::kComplex128, {}, 1, 16);
  check(DataType::kInt4, {5}, 5, 5);
  check(DataType::kFloat, {2, 0, 3}, 0, 0);
  check(DataType::kFloat, {0, int64_t{1} << 62, 4}, 0, 0);
  CHECK(CheckShape({2, 0}).ok());
  CHECK(CheckShape({}).ok());
  check(DataType::kString, {10}, 10, 240);
  check(DataType::kUint8, {INT64_MAX}, INT64_MAX, INT64_MAX);
  check(DataType::kInt8, Shape(std::vector<int64_t>(254, 1)), 1, 1);
}

TEST_CASE("CheckedSize: rejects shapes that no tensor can have") {
  const auto message = [](DataType dtype, const Shape& shape) {
    const absl::Status status = CheckedSize(dtype, shape).status();
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  CHECK(message(DataType::kFloat, {3, -1}) ==
        "a tensor cannot have the shape [3,?]: dimension -1 is negative");
  CHECK(message(DataType::kFloat, {-2, -3}) ==
        "a tensor cannot have the shape [?,?]: dimension -3 is negative");
  CHECK(message(DataType::kFloat, {int64_t{1} << 32, int64_t{1} << 32}) ==
        "a tensor cannot have the shape [4294967296,4294967296]: the number "
        "of elements exceeds the range of int64");
  CHECK(message(DataType::kFloat, Shape(std::vector<int64_t>(300, 1))) ==
        "a tensor cannot have 300 dimensions: TensorFlow's limit is 254");
  CHECK(absl::EndsWith(
      message(DataType::kFloat, Shape(std::vector<int64_t>(254, 2))),
      "the number of elements exceeds the range of int64"));
  CHECK(message(DataType::kFloat, {-1, 0}) ==
        "a tensor cannot have the shape [?,0]: dimension -1 is negative");
  // Without the checks, the sizes in bytes would wrap around to 4 and 8.
  CHECK(message(DataType::kFloat, {(int64_t{1} << 62) + 1}) ==
        "a tensor float[4611686018427387905] is too large: its number of bytes "
        "exceeds the range of int64");
  CHECK(message(DataType::kString, {0x0AAAAAAAAAAAAAAB}) ==
        "a tensor string[768614336404564651] is too large: its number of bytes "
        "exceeds the range of int64");
}

TEST_CASE("CheckedSize: rejects types without a fixed size") {
  for (DataType dtype : {DataType::kResource, DataType::kVariant, DataType(0),
                         DataType(99), DataType(101)}) {
    CHECK(CheckedSize(dtype, {2}).status() ==
          absl::InvalidArgumentError("elements of type " + DataTypeName(dtype) +
                                     " have no fixed size"));
  }
}

}  // namespace
}  // namespace tfplug::internal::tensor_size_test
