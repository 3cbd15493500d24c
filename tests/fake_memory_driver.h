// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_FAKE_MEMORY_DRIVER_H_
#define TFPLUG_TESTS_FAKE_MEMORY_DRIVER_H_

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/device_memory.h"
#include "tfplug/device/allocator.h"
#include "tfplug/device/caching_allocator.h"

namespace tfplug {

// A driver for memory that does not exist: its addresses must not be accessed.
// Regions are adjacent.
struct Driver {
  enum Failure { kExhausted, kBroken, kNull, kShort, kThrows };

  uint64_t capacity = UINT64_MAX;
  uint64_t next = 0x7f0000000000;
  std::map<uint64_t, uint64_t> live;  // address -> size
  uint64_t in_use = 0;
  int allocations = 0;  // calls, including failed ones
  int fail_at = -1;     // the index of the call that fails
  Failure failure = kExhausted;
  bool gave_short = false;
  absl::Status free_result;  // the result of Deallocate
  CachingAllocatorOptions options;

  // Regions since the test last cleared the lists.
  std::vector<std::pair<uint64_t, uint64_t>> allocated, freed;
};

class Memory : public Allocator {
 public:
  explicit Memory(Driver& driver) : driver_(driver) {}

  CachingAllocatorOptions CachingOptions() { return driver_.options; }

  absl::StatusOr<DeviceMemory> Allocate(uint64_t size, int64_t) override {
    uint64_t given = size;
    if (driver_.allocations++ == driver_.fail_at) {
      switch (driver_.failure) {
        case Driver::kExhausted:
          return absl::ResourceExhaustedError("error 2");
        case Driver::kBroken:
          return absl::InternalError("error 719");
        case Driver::kNull:
          return DeviceMemory();
        case Driver::kShort:
          --given;
          break;
        case Driver::kThrows:
#if defined(__cpp_exceptions)
          throw std::bad_alloc();
#else
          return absl::ResourceExhaustedError("error 2");
#endif
      }
    }
    if (size > driver_.capacity - driver_.in_use) {
      return absl::ResourceExhaustedError("error 2");
    }
    driver_.gave_short |= given != size;
    const uint64_t address = driver_.next;
    driver_.next += size;
    driver_.live[address] = size;
    driver_.in_use += size;
    driver_.allocated.emplace_back(address, size);
    return DeviceMemory(
        reinterpret_cast<void*>(address),  // NOLINT(*-no-int-to-ptr)
        given);
  }

  absl::Status Deallocate(DeviceMemory memory) override {
    const auto address = reinterpret_cast<uint64_t>(memory.opaque());
    REQUIRE(driver_.live.count(address) == 1);
    driver_.in_use -= driver_.live[address];
    driver_.freed.emplace_back(address, driver_.live[address]);
    driver_.live.erase(address);
    return driver_.free_result;
  }

  absl::StatusOr<MemoryUsage> Usage() override {
    return MemoryUsage{static_cast<int64_t>(driver_.capacity - driver_.in_use),
                       static_cast<int64_t>(driver_.capacity)};
  }

 private:
  Driver& driver_;
};

}  // namespace tfplug

#endif  // TFPLUG_TESTS_FAKE_MEMORY_DRIVER_H_
