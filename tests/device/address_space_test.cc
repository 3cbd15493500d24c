// SPDX-License-Identifier: Apache-2.0
#include "tfplug/device/address_space.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cstdint>

namespace address_space_test {
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
  CHECK(space.Used() == 100 + (uint64_t{5} << 30));
  const auto in_small = space.Find(small + 99);
  REQUIRE(in_small.ok());
  CHECK(in_small->handle == 1);
  CHECK(in_small->offset == 99);
  const auto in_large = space.Find(large + (uint64_t{3} << 30));
  REQUIRE(in_large.ok());
  CHECK(in_large->handle == 2);
  CHECK(in_large->offset == uint64_t{3} << 30);
  CHECK(space.removals() == 0);
  REQUIRE(space.Remove(large).ok());
  CHECK(space.removals() == 1);
  CHECK(space.Used() == 100);
}

TEST_CASE("addresses beyond a region, or of a removed one, are not found") {
  Space space;
  char* const first = Insert(space, 1, 100);
  char* const second = Insert(space, 2, 100);
  CHECK(space.Find(first + 100).ok());
  CHECK_FALSE(space.Find(first + 101).ok());
  CHECK_FALSE(space.Find(second - 1).ok());
  CHECK_FALSE(space.Find(&space).ok());
  CHECK(space.Find(nullptr)->handle == 0);
  CHECK(*space.Remove(first) == 1);
  CHECK_FALSE(space.Find(first).ok());
  CHECK(space.Find(second).ok());
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

TEST_CASE("a process that may have few addresses gets fewer") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  MESSAGE("skipped: a sanitizer uses more addresses than the limit allows");
  return;
#endif
  rlimit limit;
  REQUIRE(getrlimit(RLIMIT_AS, &limit) == 0);
  const rlimit before = limit;
  limit.rlim_cur = uint64_t{100} << 30;
  REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
  Space space;
  char* const half = Insert(space, 1, uint64_t{40} << 30);
  const auto second = space.Insert(2, uint64_t{40} << 30);
  REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(space.Find(half + (uint64_t{40} << 30)).ok());
  CHECK(absl::IsResourceExhausted(second.status()));
}

}  // namespace
}  // namespace address_space_test
