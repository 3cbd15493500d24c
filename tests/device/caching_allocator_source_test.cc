// SPDX-License-Identifier: Apache-2.0
// CachingAllocator over different allocators.

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "fake_memory_driver.h"
#include "tfplug/base/internal/construct.h"
#include "tfplug/base/internal/override.h"
#include "tfplug/device/caching_allocator.h"

namespace tfplug::caching_allocator_source_test {
namespace {

using Caching = CachingAllocator<Memory>;

// Allocates host memory. Has a default constructor, and overrides the
// hooks of host and unified memory.
class HostMemory : public Allocator {
 public:
  absl::Status Init() override {
    return fail_init ? absl::UnavailableError("no driver") : absl::OkStatus();
  }
  absl::StatusOr<DeviceMemory> Allocate(uint64_t size, int64_t) override {
    return DeviceMemory(std::aligned_alloc(256, size), size);
  }
  absl::Status Deallocate(DeviceMemory memory) override {
    std::free(memory.opaque());
    return absl::OkStatus();
  }
  absl::StatusOr<void*> AllocateHost(uint64_t) override { return &host; }
  absl::Status DeallocateHost(void* memory) override {
    host_freed = memory;
    return absl::OkStatus();
  }
  absl::StatusOr<void*> AllocateUnified(uint64_t) override { return &unified; }
  absl::Status DeallocateUnified(void* memory) override {
    unified_freed = memory;
    return absl::OkStatus();
  }
  absl::StatusOr<MemoryUsage> Usage() override {
    return absl::UnavailableError("no driver");
  }

  char host, unified;
  void* host_freed = nullptr;
  void* unified_freed = nullptr;
  static inline bool fail_init = false;
};

TEST_CASE("CachingAllocator: has unified memory only if Source does") {
  using WithUnified = CachingAllocator<HostMemory>;
  static_assert(!internal::Overrides(&Caching::AllocateUnified,
                                     &Allocator::AllocateUnified));
  static_assert(!internal::Overrides(&Caching::DeallocateUnified,
                                     &Allocator::DeallocateUnified));
  static_assert(internal::Overrides(&WithUnified::AllocateUnified,
                                    &Allocator::AllocateUnified));
  static_assert(internal::Overrides(&WithUnified::DeallocateUnified,
                                    &Allocator::DeallocateUnified));
  WithUnified caching;
  CHECK(caching.AllocateUnified(1).value() == &caching.source().unified);
  CHECK(caching.DeallocateUnified(&caching).ok());
  CHECK(caching.source().unified_freed == &caching);
  CHECK(caching.AllocateHost(1).value() == &caching.source().host);
  CHECK(caching.DeallocateHost(&caching).ok());
  CHECK(caching.source().host_freed == &caching);
}

TEST_CASE("CachingAllocator: has the constructors of Source") {
  static_assert(std::is_constructible_v<Caching, Driver&>);
  static_assert(!std::is_default_constructible_v<Caching>);
  static_assert(
      !std::is_constructible_v<CachingAllocator<HostMemory>, Driver&>);
  Driver driver;
  CHECK(internal::Create<Caching>(driver).ok());
  CHECK(internal::Create<CachingAllocator<HostMemory>>(driver).ok());
  HostMemory::fail_init = true;
  CHECK(internal::Create<CachingAllocator<HostMemory>>(driver).status() ==
        absl::UnavailableError("no driver"));
  HostMemory::fail_init = false;
  CHECK(CachingAllocator<HostMemory>().Usage().status() ==
        absl::UnavailableError("no driver"));
}

TEST_CASE("CachingAllocator: threads never share memory") {
  CachingAllocator<HostMemory> caching;
  REQUIRE(caching.Init().ok());
  const auto work = [&](uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<DeviceMemory> held;
    int wrong = 0;
    for (int i = 0; i < 5000; ++i) {
      if (held.empty() || (held.size() < 50 && random() % 2 == 0)) {
        held.push_back(caching.Allocate(8 + random() % 20000, 0).value());
        held.back().as<uint32_t>()[0] = seed;
        held.back().as<uint32_t>()[held.back().size() / 4 - 1] = seed;
      } else {
        std::swap(held[random() % held.size()], held.back());
        const DeviceMemory memory = held.back();
        wrong += memory.as<uint32_t>()[0] != seed;
        wrong += memory.as<uint32_t>()[memory.size() / 4 - 1] != seed;
        CHECK(caching.Deallocate(memory).ok());
        held.pop_back();
      }
      if (i % 100 == 0) {
        const AllocatorStats stats = caching.Stats().value();
        wrong += stats.bytes_in_use > stats.bytes_reserved;
        if (seed == 1) caching.ReleaseFreeRegions();
      }
    }
    for (const DeviceMemory& memory : held)
      CHECK(caching.Deallocate(memory).ok());
    return wrong;
  };
  int wrong[4];
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] { wrong[i] = work(i + 1); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int count : wrong) CHECK(count == 0);
  CHECK(caching.Stats()->bytes_in_use == 0);
  caching.ReleaseFreeRegions();
  CHECK(caching.Stats()->bytes_reserved == 0);
}

}  // namespace
}  // namespace tfplug::caching_allocator_source_test
