// SPDX-License-Identifier: Apache-2.0
#include "runtime/heap.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace cpu_sim::rt::heap_test {
namespace {

TEST_CASE("Heap: sizes are rounded up, and a hole is reused") {
  Heap heap(4096);
  const size_t a = heap.Allocate(1).value();
  const size_t b = heap.Allocate(257).value();
  CHECK(a == 0);
  CHECK(b == 256);
  CHECK(heap.stats().in_use == 768);
  CHECK(heap.Free(a).ok());
  CHECK(heap.Allocate(256).value() == a);
  CHECK(heap.stats().peak == 768);
  CHECK(heap.stats().largest == 512);
  CHECK(heap.stats().allocations == 3);
}

TEST_CASE("Heap: uses the smallest hole that fits") {
  Heap heap(16 * 256);
  const size_t large = heap.Allocate(3 * 256).value();
  REQUIRE(heap.Allocate(1).ok());
  const size_t small = heap.Allocate(2 * 256).value();
  REQUIRE(heap.Allocate(1).ok());
  REQUIRE(heap.Free(large).ok());
  REQUIRE(heap.Free(small).ok());
  CHECK(heap.Allocate(2 * 256).value() == small);
}

TEST_CASE("Heap: errors are descriptive and change nothing") {
  Heap heap(1000);  // three blocks
  CHECK(heap.stats().limit == 768);
  CHECK(heap.Allocate(0).status().code() == absl::StatusCode::kInvalidArgument);
  for (size_t bytes : {size_t{769}, SIZE_MAX, SIZE_MAX - 255}) {
    CHECK(heap.Allocate(bytes).status().code() ==
          absl::StatusCode::kResourceExhausted);
  }
  REQUIRE(heap.Allocate(512).ok());
  CHECK(heap.Allocate(512).status().message() ==
        "cannot allocate 512 bytes: 512 of 768 bytes are in use, the largest "
        "hole has 256");
  CHECK(heap.Free(256).code() == absl::StatusCode::kInvalidArgument);
  CHECK(heap.Free(0).ok());
  CHECK(heap.Free(0).code() == absl::StatusCode::kInvalidArgument);
  CHECK(heap.Allocate(768).ok());
}

TEST_CASE("Heap: random blocks never overlap, and all are merged when freed") {
  constexpr size_t kSize = 1 << 20;
  Heap heap(kSize);
  std::mt19937 random(1);
  std::map<size_t, size_t> live;
  size_t in_use = 0;
  for (int i = 0; i < 20000; ++i) {
    if (live.empty() || random() % 2 == 0) {
      const size_t bytes = 1 + random() % 20000;
      const absl::StatusOr<size_t> offset = heap.Allocate(bytes);
      if (!offset.ok()) continue;
      const size_t size = (bytes + 255) / 256 * 256;
      const auto next = live.lower_bound(*offset);
      REQUIRE((next == live.end() || *offset + size <= next->first));
      REQUIRE((next == live.begin() ||
               std::prev(next)->first + std::prev(next)->second <= *offset));
      live[*offset] = size;
      in_use += size;
    } else {
      auto victim = live.lower_bound(random() % kSize);
      if (victim == live.end()) victim = live.begin();
      REQUIRE(heap.Free(victim->first).ok());
      in_use -= victim->second;
      live.erase(victim);
    }
    REQUIRE(heap.stats().in_use == in_use);
  }
  for (const auto& [offset, size] : live) REQUIRE(heap.Free(offset).ok());
  CHECK(heap.Allocate(kSize).ok());
}

}  // namespace
}  // namespace cpu_sim::rt::heap_test
