// SPDX-License-Identifier: Apache-2.0
#include "tfplug/device/caching_allocator.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fake_memory_driver.h"
#include "fixture.h"
#include "minimal_device.h"

namespace tfplug::caching_allocator_test {
namespace {

using Caching = CachingAllocator<Memory>;

class CachingPlatform
    : public minimal::PlatformOf<minimal::DeviceOf<
          minimal::Stream, CachingAllocator<minimal::Memory>>> {
 public:
  PlatformOptions Options() override {
    PlatformOptions options;
    options.use_bfc_allocator = false;
    return options;
  }
};

TEST_CASE_FIXTURE(Fixture<CachingPlatform>,
                  "CachingAllocator: serves TensorFlow's calls") {
  CHECK_FALSE(device().has_unified_memory());
  const DeviceMemory memory = device().Allocate(1000);
  const DeviceMemory other = device().Allocate(1000);
  CHECK(memory.size() == 1000);
  CHECK(other.as<char>() == memory.as<char>() + 1024);
  device().Deallocate(DeviceMemory(memory.opaque(), 0));
  CHECK(device().Allocate(1).opaque() == memory.opaque());
  REQUIRE(device().Stats().has_value());
  CHECK(device().Stats()->num_allocs == 3);
  CHECK(device().Stats()->bytes_in_use == 1024 + 256);
  CHECK(device().Stats()->bytes_reserved == 2 << 20);
  CHECK(device().Usage()->free == 1 << 20);
  CHECK(device().Allocate(0).is_null());
  CHECK(log().lines().empty());
  CHECK(device().Allocate(UINT64_MAX).is_null());
  CHECK(log().text().find("RESOURCE_EXHAUSTED: out of device memory") !=
        std::string::npos);
}

TEST_CASE("CachingAllocator: region sizes double; large regions are exact") {
  Driver driver;
  driver.options.first_region = 4096;
  driver.options.largest_region = 8192;
  Caching caching(driver);
  REQUIRE(caching.Init().ok());
  for (uint64_t size : {4096, 1, 8192, 9000, 8192}) {
    REQUIRE(caching.Allocate(size, 0).ok());
  }
  REQUIRE(driver.allocated.size() == 5);
  CHECK(driver.allocated[0].second == 4096);
  CHECK(driver.allocated[1].second == 8192);
  CHECK(driver.allocated[2].second == 8192);
  CHECK(driver.allocated[3].second == 9216);
  CHECK(driver.allocated[4].second == 8192);
}

TEST_CASE(
    "CachingAllocator: remembers the size that the driver could not allocate") {
  Driver driver;
  driver.capacity = 40 << 10;
  driver.options.first_region = 1 << 20;
  Caching caching(driver);
  REQUIRE(caching.Init().ok());
  REQUIRE(caching.Allocate(32 << 10, 0).ok());
  CHECK(driver.in_use == 32 << 10);
  CHECK(driver.allocations == 6);  // 1 MiB, halved five times.
  REQUIRE(caching.Allocate(1, 0).ok());
  CHECK(driver.in_use == 40 << 10);
  CHECK(driver.allocations == 6 + 4);  // 64 KiB, halved three times.
}

TEST_CASE("CachingAllocator: a small remainder is not split off") {
  Driver driver;
  Caching caching(driver);
  REQUIRE(caching.Init().ok());
  constexpr uint64_t kSize = 65536;
  const DeviceMemory memory = caching.Allocate(kSize / 16 * 17, 0).value();
  REQUIRE(caching.Allocate(1, 0).ok());
  CHECK(caching.Deallocate(memory).ok());
  REQUIRE(caching.Allocate(kSize, 0).value().opaque() == memory.opaque());
  CHECK(caching.Stats()->bytes_in_use == 17 * 4096 + 256);
  CHECK(caching.Deallocate(memory).ok());
  REQUIRE(caching.Allocate(kSize - 256, 0)->opaque() == memory.opaque());
  CHECK(caching.Stats()->bytes_in_use == 16 * 4096);
}

TEST_CASE(
    "CachingAllocator: size 0 is null; sizes beyond the address space fail") {
  Driver driver;
  Caching caching(driver);
  REQUIRE(caching.Init().ok());
  CHECK(caching.Stats()->peak_bytes_reserved == 0);
  const auto nothing = caching.Allocate(0, 0);
  REQUIRE(nothing.ok());
  CHECK(nothing->is_null());
  CHECK(caching.Deallocate(*nothing).ok());
  CHECK(caching.Stats()->num_allocs == 0);
  driver.capacity = 1 << 20;
  for (uint64_t size : {UINT64_MAX, UINT64_MAX - 255, UINT64_MAX / 2,
                        UINT64_MAX / 4 + 2, uint64_t{2} << 20}) {
    CAPTURE(size);
    CHECK(absl::IsResourceExhausted(caching.Allocate(size, 0).status()));
  }
  REQUIRE(caching.Allocate(1000, 0).ok());
  CHECK(caching.Allocate(2 << 20, 0).status().message() ==
        "out of device memory allocating 2097152 bytes: 1024 bytes in use, "
        "1048576 reserved in 1 region, largest free block 1047552: error 2");
}

TEST_CASE(
    "CachingAllocator: free regions are released before memory runs out") {
  Driver driver;
  driver.capacity = 64 << 10;
  driver.options.first_region = 16 << 10;
  driver.options.largest_region = 16 << 10;
  Caching caching(driver);
  REQUIRE(caching.Init().ok());
  DeviceMemory held[4];
  for (DeviceMemory& memory : held) {
    memory = caching.Allocate(16 << 10, 0).value();
  }
  for (int i = 1; i < 4; ++i) CHECK(caching.Deallocate(held[i]).ok());
  CHECK(driver.freed.empty());
  CHECK(caching.Allocate(64 << 10, 0).status().message() ==
        "out of device memory allocating 65536 bytes: 16384 bytes in use, "
        "16384 reserved in 1 region, largest free block 0: error 2");
  CHECK(driver.freed.size() == 3);
  REQUIRE(caching.Allocate(32 << 10, 0).ok());
  held[1] = caching.Allocate(16 << 10, 0).value();
  const int calls = driver.allocations;
  CHECK(caching.Allocate(16 << 10, 0).status().message().find("error 2") !=
        std::string::npos);
  CHECK(driver.allocations == calls + 1);  // There was nothing to release.
  CHECK(caching.Deallocate(held[0]).ok());
  CHECK(caching.Deallocate(held[1]).ok());
  CHECK(caching.Allocate(32 << 10, 0).ok());
  CHECK(driver.freed.size() == 5);
}

TEST_CASE(
    "CachingAllocator: survives each kind of failure in each driver call") {
  for (int failure = Driver::kExhausted; failure <= Driver::kThrows;
       ++failure) {
    for (int fail_at = 0; fail_at < 16; ++fail_at) {
      CAPTURE(failure);
      CAPTURE(fail_at);
      Driver driver;
      driver.capacity = 300 << 10;
      driver.options.first_region = 4096;
      driver.fail_at = fail_at;
      driver.failure = static_cast<Driver::Failure>(failure);
      Caching caching(driver);
      REQUIRE(caching.Init().ok());
      std::map<uint64_t, DeviceMemory> held;
      int internal = 0, exhausted = 0;
      for (int i = 1; i <= 30; ++i) {
        const auto memory = caching.Allocate(static_cast<uint64_t>(i) * 999, 0);
        if (memory.ok()) {
          held[reinterpret_cast<uint64_t>(memory->opaque())] = *memory;
        } else if (absl::IsResourceExhausted(memory.status())) {
          ++exhausted;
        } else {
          CHECK(absl::IsInternal(memory.status()));
          ++internal;
        }
        if (i % 7 == 0) {
          CHECK(caching.Deallocate(held.begin()->second).ok());
          held.erase(held.begin());
        }
        CHECK(static_cast<uint64_t>(caching.Stats()->bytes_reserved) ==
              driver.in_use);
      }
      const bool broke =
          failure == Driver::kBroken && fail_at < driver.allocations;
      CHECK(internal == (broke || driver.gave_short ? 1 : 0));
      CHECK(exhausted > 0);
      uint64_t end = 0;
      for (const auto& [address, memory] : held) {
        CHECK(address >= end);
        end = address + memory.size();
      }
      for (const auto& [address, memory] : held)
        CHECK(caching.Deallocate(memory).ok());
      caching.ReleaseFreeRegions();
      CHECK(driver.live.empty());
    }
  }
}

TEST_CASE("CachingAllocator: a region that is split needs two records") {
  // There are 255 records at first, of which some are left.
  for (uint64_t pieces = 248; pieces <= 258; ++pieces) {
    CAPTURE(pieces);
    Driver driver;
    driver.capacity = 64 << 20;
    driver.options.first_region = 128 << 10;
    Caching caching(driver);
    REQUIRE(caching.Init().ok());
    std::vector<DeviceMemory> held;
    for (uint64_t i = 0; i < pieces; ++i) {
      held.push_back(caching.Allocate(256, 0).value());
    }
    CHECK(driver.allocations == 1);
    held.push_back(caching.Allocate(129 << 10, 0).value());
    // The remainder of the second region, which has 256 KiB.
    held.push_back(caching.Allocate(127 << 10, 0).value());
    CHECK(driver.allocations == 2);
    for (const DeviceMemory memory : held) {
      CHECK(caching.Deallocate(memory).ok());
    }
    CHECK(caching.ReleaseFreeRegions() == 384 << 10);
    CHECK(driver.live.empty());
  }
}

TEST_CASE("CachingAllocator: errors of the driver are returned unchanged") {
  Driver driver;
  driver.fail_at = 0;
  driver.failure = Driver::kBroken;
  Caching caching(driver);
  REQUIRE(caching.Init().ok());
  CHECK(caching.Allocate(1, 0).status() == absl::InternalError("error 719"));
  driver.failure = Driver::kShort;
  driver.fail_at = 1;
  CHECK(caching.Allocate(3 << 20, 0).status().message() ==
        "the allocator that CachingAllocator wraps returned 3145727 bytes "
        "instead of 3145728");
  CHECK(driver.live.empty());
}

TEST_CASE("CachingAllocator: the limit caps regions and usage") {
  Driver driver;
  driver.capacity = 1 << 20;
  driver.options.limit = 10000;
  driver.options.first_region = 8192;
  Caching caching(driver);
  REQUIRE(caching.Init().ok());
  CHECK(caching.Usage()->free == 10000);
  CHECK(caching.Usage()->total == 10000);
  const DeviceMemory memory = caching.Allocate(4000, 0).value();
  REQUIRE(caching.Allocate(4000, 0).ok());
  CHECK(caching.Usage()->free == 10000 - 2 * 4096);
  CHECK(caching.Allocate(1793, 0).status().message() ==
        "out of device memory allocating 1793 bytes: 8192 bytes in use, 8192 "
        "reserved in 1 region, largest free block 0, limit 10000: another "
        "region would exceed CachingAllocatorOptions::limit");
  CHECK(caching.Allocate(1000, 0).ok());
  CHECK(driver.in_use == 8192 + 1792);
  CHECK(caching.Deallocate(memory).ok());
  CHECK(caching.Usage()->free == 10000 - 4096 - 1024);
  CHECK(caching.Stats()->bytes_limit == 10000);
  CHECK(caching.Stats()->bytes_reservable_limit == 10000);
}

TEST_CASE("CachingAllocator: usage counts cached memory as free") {
  Driver driver;
  driver.capacity = 10 << 20;
  Caching caching(driver);
  REQUIRE(caching.Init().ok());
  REQUIRE(caching.Allocate(1 << 20, 0).ok());
  CHECK(driver.in_use == 2 << 20);
  CHECK(caching.Usage()->free == 9 << 20);
  CHECK(caching.Usage()->total == 10 << 20);
  CHECK(!caching.Stats()->bytes_limit.has_value());
}

TEST_CASE("CachingAllocator: other memory spaces are not cached") {
  Driver driver;
  Caching caching(driver);
  REQUIRE(caching.Init().ok());
  const DeviceMemory memory = caching.Allocate(1000, 1).value();
  CHECK(driver.in_use == 1024);
  CHECK(caching.Stats()->bytes_in_use == 1024);
  REQUIRE(caching.Allocate(1000, 0).ok());
  CHECK(caching.Deallocate(memory).ok());
  CHECK(driver.in_use == 2 << 20);
  CHECK(caching.Stats()->bytes_reserved == 2 << 20);
  CHECK(caching.Allocate(1000, 0)->opaque() != memory.opaque());
}

// Returns the processor time in seconds of `count` allocations outside memory
// space 0.
double SecondsOutsideSpace0(int count) {
  Driver driver;
  Caching caching(driver);
  REQUIRE(caching.Init().ok());
  const std::clock_t start = std::clock();
  for (int i = 0; i < count; ++i) {
    if (!caching.Allocate(1, 1).ok()) FAIL_CHECK("out of memory");
  }
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST_CASE(
    "CachingAllocator: allocations outside memory space 0 take linear time") {
  double small = 1e9;
  for (int i = 0; i < 3; ++i)
    small = std::min(small, SecondsOutsideSpace0(4000));
  // 16 times as many allocations take 16 times as long, or 256 times if each
  // one searches linearly.
  CHECK(SecondsOutsideSpace0(64000) < 64 * small);
}

TEST_CASE("CachingAllocator: entries of released regions are reused") {
  Driver driver;
  Caching caching(driver);
  REQUIRE(caching.Init().ok());
  std::vector<DeviceMemory> held;
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 20; ++i) {
      held.push_back(caching.Allocate(1000, i % 2).value());
    }
    std::shuffle(held.begin(), held.end(), std::mt19937(round));
    for (int i = 0; i < 15; ++i) {
      CHECK(caching.Deallocate(held.back()).ok());
      held.pop_back();
    }
    CHECK(static_cast<uint64_t>(caching.Stats()->bytes_reserved) ==
          driver.in_use);
  }
  for (const DeviceMemory& memory : held)
    CHECK(caching.Deallocate(memory).ok());
  CHECK(caching.Stats()->bytes_in_use == 0);
  caching.ReleaseFreeRegions();
  CHECK(driver.live.empty());
}

TEST_CASE("CachingAllocator: a stray pointer is an error and changes nothing") {
  Driver driver;
  driver.next = 0x10000;
  Caching caching(driver);
  REQUIRE(caching.Init().ok());
  const DeviceMemory memory = caching.Allocate(1000, 0).value();
  const DeviceMemory other = caching.Allocate(1000, 0).value();
  CHECK(caching.Deallocate(DeviceMemory(reinterpret_cast<void*>(0x4000), 8)) ==
        absl::InvalidArgumentError(
            "ignored: 0x4000 is not memory of this allocator"));
  CHECK(caching.Deallocate(memory).ok());
  CHECK(caching.Deallocate(memory) ==
        absl::InvalidArgumentError(
            "ignored: 0x10000 was already deallocated, or is not the beginning "
            "of an allocation"));
  for (const DeviceMemory& stray :
       {DeviceMemory(other.as<char>() + 256, 8),
        DeviceMemory(memory.as<char>() + (2 << 20), 8)}) {
    CHECK(absl::IsInvalidArgument(caching.Deallocate(stray)));
  }
  CHECK(caching.Stats()->bytes_in_use == 1024);
  CHECK(caching.Deallocate(other).ok());
  CHECK(caching.Allocate(2 << 20, 0)->opaque() == memory.opaque());
}

TEST_CASE("CachingAllocator: a failed deallocation is returned or logged") {
  testing::ScopedFakeTensorFlow fake(Fixture<CachingPlatform>::WithLog());
  testing::LogCapture log;
  Driver driver;
  Caching caching(driver);
  REQUIRE(caching.Init().ok());
  const DeviceMemory uncached = caching.Allocate(1000, 1).value();
  const DeviceMemory cached = caching.Allocate(1000, 0).value();
  driver.free_result = absl::DataLossError("driver error 7");
  CHECK(caching.Deallocate(uncached) == driver.free_result);
  // Cached regions are released later, when there is no caller to return the
  // error to.
  CHECK(caching.Deallocate(cached).ok());
  CHECK(log.text() == "");
  CHECK(caching.ReleaseFreeRegions() > 0);
  CHECK(log.text() == "tfplug: deallocate: DATA_LOSS: driver error 7\n");
  driver.free_result = absl::OkStatus();
}

TEST_CASE("CachingAllocator: releases all regions when it is destroyed") {
  Driver driver;
  {
    Caching caching(driver);
    REQUIRE(caching.Init().ok());
    REQUIRE(caching.Allocate(1, 0).ok());
    REQUIRE(caching.Allocate(3 << 20, 0).ok());
    CHECK(driver.live.size() == 2);
  }
  CHECK(driver.live.empty());
}

TEST_CASE("CachingAllocator: rejects an invalid rounding") {
  for (uint64_t rounding : {0, 32, 96, 257}) {
    Driver driver;
    driver.options.rounding = rounding;
    CHECK(absl::IsInvalidArgument(Caching(driver).Init()));
  }
}

}  // namespace
}  // namespace tfplug::caching_allocator_test
