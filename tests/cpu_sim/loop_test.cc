// SPDX-License-Identifier: Apache-2.0
#include "kernels/loop.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace cpu_sim {
namespace {

using Shape = std::vector<int64_t>;

// Returns the elements that are read when a tensor of shape `from`, which holds
// 0, 1, 2, ..., is broadcast to shape `to`.
std::vector<int64_t> Broadcast(const Shape& from, const Shape& to) {
  const Loop<2> loop = MakeBroadcastLoop<2>(to, {from}).value();
  std::vector<int64_t> read(static_cast<size_t>(ElementCount(to)), -1);
  ForEachRow(loop, [&](const auto& at) {
    for (int64_t i = 0; i < loop.row_size(); ++i) {
      read[at[0] + i * loop.row_stride(0)] = at[1] + i * loop.row_stride(1);
    }
  });
  return read;
}

TEST_CASE("Loop: broadcasts like NumPy") {
  CHECK(Broadcast({2, 3}, {2, 3}) == std::vector<int64_t>{0, 1, 2, 3, 4, 5});
  CHECK(Broadcast({}, {2, 2}) == std::vector<int64_t>{0, 0, 0, 0});
  CHECK(Broadcast({3}, {2, 3}) == std::vector<int64_t>{0, 1, 2, 0, 1, 2});
  CHECK(Broadcast({2, 1}, {2, 3}) == std::vector<int64_t>{0, 0, 0, 1, 1, 1});
  CHECK(Broadcast({2, 1, 2}, {2, 2, 2}) ==
        std::vector<int64_t>{0, 1, 0, 1, 2, 3, 2, 3});
  CHECK(Broadcast({}, {}) == std::vector<int64_t>{0});
  CHECK(Broadcast({2, 0}, {2, 0}).empty());
  CHECK(Broadcast({1, 1}, {0, 3}).empty());
}

TEST_CASE("Loop: incompatible shapes cause a descriptive error") {
  CHECK(BroadcastShape(Shape{2, 3}, Shape{2}).status().message() ==
        "Incompatible shapes: [2,3] vs. [2]");
  CHECK_FALSE(BroadcastStrides(Shape{2, 3}, Shape{3}).ok());
  CHECK_FALSE(BroadcastStrides(Shape{2}, Shape{1}).ok());
  const auto both = BroadcastShape(Shape{4, 1, 3}, Shape{5, 1});
  CHECK(both.value() == Dims{4, 5, 3});
  CHECK(BroadcastShape(Shape{0}, Shape{1}).value() == Dims{0});
}

TEST_CASE("Loop: merges contiguous dimensions") {
  const Shape shape = {2, 1, 3, 4};
  CHECK(MakeBroadcastLoop<2>(shape, {shape})->rank == 1);
  CHECK(MakeBroadcastLoop<2>(shape, {shape})->row_size() == 24);
  CHECK(MakeBroadcastLoop<2>(shape, {Shape{3, 4}})->rank == 2);
  CHECK(MakeBroadcastLoop<2>(shape, {Shape{3, 1}})->rank == 3);
  // Ten dimensions merge into two; nine alternating ones do not merge.
  CHECK(MakeBroadcastLoop<2>(Shape(10, 2), {Shape(5, 2)})->rank == 2);
  const Shape alternating = {1, 2, 1, 2, 1, 2, 1, 2, 1};
  CHECK_FALSE(MakeBroadcastLoop<2>(Shape(9, 2), {alternating}).ok());
}

TEST_CASE("Loop: supports negative strides") {
  const Loop<2> loop =
      MakeLoop<2>(Shape{2, 3}, {Dims{3, 1}, Dims{3, -1}}).value();
  std::vector<int64_t> starts;
  ForEachRow(loop, [&](const auto& at) { starts.push_back(at[1]); });
  CHECK(starts == std::vector<int64_t>{0, 3});
  CHECK(loop.row_stride(1) == -1);
}

}  // namespace
}  // namespace cpu_sim
