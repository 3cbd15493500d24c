// SPDX-License-Identifier: Apache-2.0
#include "tfplug/base/shape.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace tfplug::shape_test {
namespace {

TEST_CASE("Shape: num_elements and ToString") {
  CHECK(Shape{}.num_elements() == 1);
  CHECK(Shape({2, 0, 3}).num_elements() == 0);
  CHECK(Shape({2, 3}).ToString() == "[2,3]");
  CHECK(Shape().ToString() == "[]");
  CHECK(Shape({2, 3}) != Shape({3, 2}));
  CHECK(Shape({2, 3}) != Shape({4, 3}));
  CHECK(Shape({2, 3}) != Shape({2, 4}));
}

TEST_CASE("Shape: grows beyond its inline storage and shrinks again") {
  Shape deep;
  for (int i = 1; i <= 8; ++i) deep.add_dim(i);
  CHECK(deep.ToString() == "[1,2,3,4,5,6,7,8]");
  const Shape copy = deep;
  deep.set_rank(5);
  CHECK(deep == Shape({1, 2, 3, 4, 5}));
  deep.set_rank(7);
  CHECK(deep == Shape({1, 2, 3, 4, 5, 0, 0}));
  Shape taken = std::move(deep);
  CHECK(taken == Shape({1, 2, 3, 4, 5, 0, 0}));
  CHECK(deep.rank() == 0);  // NOLINT(bugprone-use-after-move)
  deep = taken;
  deep.add_dim(8);
  CHECK(deep == Shape({1, 2, 3, 4, 5, 0, 0, 8}));
  CHECK(taken.rank() == 7);
  Shape& itself = deep;
  deep = itself;
  deep = std::move(itself);
  CHECK(deep.rank() == 8);
  deep = Shape{4};
  CHECK(deep == Shape({4}));
  taken.set_rank(2);
  CHECK(taken == Shape({1, 2}));
  CHECK(copy.num_elements() == 40320);
}

TEST_CASE("Shape: num_elements is -1 for shapes that no tensor can have") {
  CHECK(Shape({-1}).num_elements() == -1);
  CHECK(Shape({-2, -3}).num_elements() == -1);
  CHECK(Shape({0, -1}).num_elements() == -1);
  CHECK(Shape({int64_t{1} << 32, int64_t{1} << 32}).num_elements() == -1);
  CHECK(Shape({INT64_MAX}).num_elements() == INT64_MAX);
  CHECK(Shape(std::vector<int64_t>(254, 1)).num_elements() == 1);
  CHECK(Shape(std::vector<int64_t>(255, 1)).num_elements() == -1);
}

TEST_CASE("PartialShape: unknown ranks and dimensions") {
  CHECK(PartialShape().ToString() == "<unknown rank>");
  CHECK(PartialShape(Shape{1, -1}).ToString() == "[1,?]");
  CHECK(!PartialShape(Shape{1, -1}).is_fully_known());
  CHECK(!PartialShape().is_fully_known());
  CHECK(PartialShape(Shape{}).is_fully_known());
  CHECK(PartialShape(Shape{2, 0}).is_fully_known());
}

}  // namespace
}  // namespace tfplug::shape_test
