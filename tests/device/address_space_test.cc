// SPDX-License-Identifier: Apache-2.0
#include "tfplug/device/address_space.h"

#include <doctest/doctest.h>

#include <cstdint>

namespace {

using Space = tfplug::AddressSpace<int>;

char* Insert(Space& space, int handle, uint64_t size) {
  const auto address = space.Insert(handle, size);
  REQUIRE(address.ok());
  CHECK(reinterpret_cast<uintptr_t>(*address) % 256 == 0);
  return static_cast<char*>(*address);
}

TEST_CASE("an address in the middle of a region has a handle and an offset") {
  Space space;
  char* const small = Insert(space, 1, 100);
  char* const large = Insert(space, 2, uint64_t{5} << 30);
  Space::Location location;
  REQUIRE(space.Find(small + 99, &location));
  CHECK(location.handle == 1);
  CHECK(location.offset == 99);
  REQUIRE(space.Find(large + (uint64_t{3} << 30), &location));
  CHECK(location.handle == 2);
  CHECK(location.offset == uint64_t{3} << 30);
}

TEST_CASE("addresses beyond a region, or of a removed one, are not found") {
  Space space;
  char* const first = Insert(space, 1, 100);
  char* const second = Insert(space, 2, 100);
  Space::Location location;
  CHECK(space.Find(first + 100, &location));
  CHECK_FALSE(space.Find(first + 101, &location));
  CHECK_FALSE(space.Find(second - 1, &location));
  CHECK_FALSE(space.Find(&location, &location));
  CHECK_FALSE(space.Find(nullptr, &location));
  CHECK(*space.Remove(first) == 1);
  CHECK_FALSE(space.Find(first, &location));
  CHECK(space.Find(second, &location));
  CHECK(absl::IsInvalidArgument(space.Remove(first).status()));
}

TEST_CASE("addresses are not reused soon, and run out in the end") {
  Space space;
  char* const first = Insert(space, 1, 1);
  REQUIRE(space.Remove(first).ok());
  char* const second = Insert(space, 2, 1);
  CHECK(first != second);
  CHECK(absl::IsResourceExhausted(space.Insert(3, uint64_t{1} << 40).status()));
  // The second half of the addresses is free, then the first.
  char* const half = Insert(space, 3, uint64_t{600} << 30);
  CHECK(
      absl::IsResourceExhausted(space.Insert(4, uint64_t{600} << 30).status()));
  REQUIRE(space.Remove(half).ok());
  Insert(space, 4, uint64_t{600} << 30);
}

}  // namespace
