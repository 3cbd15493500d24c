// SPDX-License-Identifier: Apache-2.0
#include <tfplug/device/allocator.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"
#include "recording_device.h"

// A test allocates too much on purpose; AddressSanitizer must return null
// instead of aborting.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {  // NOLINT: its name
  return "allocator_may_return_null=1";
}

namespace tfplug::allocator_test {
namespace {

using recording::Memory;
using recording::Record;
using Calls = std::vector<std::string>;
using Recording = Fixture<recording::Platform>;

TEST_CASE_FIXTURE(Recording, "each slot calls its hook with its arguments") {
  Record::Get().Take();
  const DeviceMemory memory = device().Allocate(100, 5);
  CHECK(memory.opaque() == Memory::Address(0x1000));
  CHECK(memory.size() == 100);
  CHECK(memory.payload() == 77);
  device().Deallocate(memory);
  void* host_memory = device().AllocateHost(200);
  CHECK(host_memory == Memory::Address(0x2000));
  device().DeallocateHost(host_memory);
  REQUIRE(device().has_unified_memory());
  void* unified = device().AllocateUnified(300);
  CHECK(unified == Memory::Address(0x3000));
  device().DeallocateUnified(unified);
  CHECK(device().Usage()->free == 10);
  CHECK(device().Usage()->total == 11);
  CHECK(Record::Get().Take() ==
        Calls{"Allocate(100, 5)", "Deallocate(0x1000/100/77)",
              "AllocateHost(200)", "DeallocateHost(0x2000)",
              "AllocateUnified(300)", "DeallocateUnified(0x3000)", "Usage()",
              "Usage()"});
}

TEST_CASE_FIXTURE(Recording, "hooks are never called with null") {
  Record::Get().Take();
  device().Deallocate(DeviceMemory());
  device().DeallocateHost(nullptr);
  device().DeallocateUnified(nullptr);
  CHECK(Record::Get().Take() == Calls{});
}

TEST_CASE_FIXTURE(Recording,
                  "every field of the statistics reaches TensorFlow") {
  const auto stats = device().Stats();
  REQUIRE(stats.has_value());
  CHECK(stats->num_allocs == 1);
  CHECK(stats->bytes_in_use == 2);
  CHECK(stats->peak_bytes_in_use == 3);
  CHECK(stats->largest_alloc_size == 4);
  CHECK(stats->bytes_limit == 5);
  CHECK(stats->bytes_reserved == 6);
  CHECK(stats->peak_bytes_reserved == 7);
  CHECK(stats->bytes_reservable_limit == 8);
  CHECK(stats->largest_free_block_bytes == 9);
}

class NoLimits : public minimal::Memory {
 public:
  absl::StatusOr<AllocatorStats> Stats() override { return AllocatorStats(); }
};

TEST_CASE("limits without a value are not reported") {
  Fixture<minimal::PlatformOf<minimal::DeviceOf<minimal::Stream, NoLimits>>>
      fixture;
  const auto stats = fixture.device().Stats();
  REQUIRE(stats.has_value());
  CHECK_FALSE(stats->bytes_limit.has_value());
  CHECK_FALSE(stats->bytes_reservable_limit.has_value());
}

using Minimal = Fixture<minimal::Platform>;

TEST_CASE_FIXTURE(Minimal, "without statistics, nothing is logged") {
  CHECK_FALSE(device().Stats().has_value());
  CHECK(log().lines().empty());
}

TEST_CASE_FIXTURE(
    Minimal, "without unified memory, the slots are null and the flag is off") {
  CHECK_FALSE(device().has_unified_memory());
  CHECK(host().platform().supports_unified_memory == 0);
}

TEST_CASE_FIXTURE(Recording,
                  "with unified memory, both slots and the flag are set") {
  CHECK(device().has_unified_memory());
  CHECK(host().platform().supports_unified_memory == 1);
}

TEST_CASE_FIXTURE(Minimal, "the default host memory is aligned") {
  for (uint64_t size : {1, 255, 256, 257, 1000}) {
    CAPTURE(size);
    void* memory = device().AllocateHost(size);
    REQUIRE(memory != nullptr);
    CHECK(reinterpret_cast<uintptr_t>(memory) % kRequiredAlignment == 0);
    std::memset(memory, 1, size);
    device().DeallocateHost(memory);
  }
  device().DeallocateHost(device().AllocateHost(0));
}

TEST_CASE_FIXTURE(Minimal, "host memory that does not fit is null and logged") {
  for (uint64_t size : {std::numeric_limits<uint64_t>::max(),
                        std::numeric_limits<uint64_t>::max() - 254,
                        std::numeric_limits<uint64_t>::max() - 255}) {
    CAPTURE(size);
    CHECK(device().AllocateHost(size) == nullptr);
  }
  REQUIRE(log().lines().size() == 3);
  CHECK(log().lines()[0] ==
        "tfplug: host_memory_allocate: RESOURCE_EXHAUSTED: out of host memory "
        "allocating 18446744073709551615 bytes");
}

// An allocator that returns memory 64 bytes past a multiple of
// kRequiredAlignment and host memory 192 bytes past one.
class Misaligned : public minimal::Memory {
 public:
  absl::StatusOr<DeviceMemory> Allocate(uint64_t size, int64_t) override {
    return DeviceMemory(recording::Memory::Address(0x1040), size);
  }
  absl::Status Deallocate(DeviceMemory memory) override {
    CHECK(memory.opaque() == recording::Memory::Address(0x1040));
    ++released;
    return absl::OkStatus();
  }
  absl::StatusOr<void*> AllocateHost(uint64_t) override {
    return recording::Memory::Address(0x20c0);
  }
  absl::Status DeallocateHost(void* memory) override {
    CHECK(memory == recording::Memory::Address(0x20c0));
    ++released;
    return absl::OkStatus();
  }
  static inline int released = 0;
};
using MisalignedDevice = minimal::DeviceOf<minimal::Stream, Misaligned>;

TEST_CASE("memory on which TensorFlow 2.22 aborts is rejected") {
  Fixture<minimal::PlatformOf<MisalignedDevice>> fixture;
  Misaligned::released = 0;
  CHECK(fixture.device().Allocate(100).is_null());
  CHECK(fixture.device().AllocateHost(100) == nullptr);
  CHECK(Misaligned::released == 2);
  REQUIRE(fixture.log().lines().size() == 2);
  CHECK(fixture.log().lines()[0] ==
        "tfplug: allocate: FAILED_PRECONDITION: Allocator::Allocate returned "
        "memory 64 bytes past a multiple of 256, on which TensorFlow 2.22 "
        "aborts; align it to tfplug::kRequiredAlignment");
  CHECK(fixture.log().lines()[1] ==
        "tfplug: host_memory_allocate: FAILED_PRECONDITION: "
        "Allocator::AllocateHost returned memory 192 bytes past a multiple of "
        "256, on which TensorFlow 2.22 aborts; align it to "
        "tfplug::kRequiredAlignment");
}

class WithoutBfc : public minimal::PlatformOf<MisalignedDevice> {
 public:
  PlatformOptions Options() override {
    PlatformOptions options;
    options.use_bfc_allocator = false;
    return options;
  }
};

TEST_CASE("without the BFC allocator, device memory may be less aligned") {
  Fixture<WithoutBfc> fixture;
  Misaligned::released = 0;
  const DeviceMemory memory = fixture.device().Allocate(100);
  CHECK(memory.opaque() == recording::Memory::Address(0x1040));
  CHECK(memory.size() == 100);
  CHECK(Misaligned::released == 0);
  CHECK(fixture.log().lines().empty());
  fixture.device().Deallocate(memory);
}

class Full : public minimal::Memory {
 public:
  static inline bool is_full = true;

  absl::StatusOr<DeviceMemory> Allocate(uint64_t size,
                                        int64_t memory_space) override {
    if (is_full) return absl::ResourceExhaustedError("the device is full");
    return minimal::Memory::Allocate(size, memory_space);
  }
};

TEST_CASE("of failures in a row, few are logged") {
  Fixture<minimal::PlatformOf<minimal::DeviceOf<minimal::Stream, Full>>>
      fixture;
  const auto fail = [&](int times) {
    for (int i = 0; i < times; ++i) {
      CHECK(fixture.device().Allocate(256).opaque() == nullptr);
    }
  };
  Full::is_full = true;
  fail(255);
  const auto lines = [&] { return fixture.log().lines(); };
  CHECK(lines().size() == 8);  // the failures 1, 2, 4, ..., 128
  CHECK(lines().back() ==
        "tfplug: allocate: RESOURCE_EXHAUSTED: the device is full");
  fail(1);
  REQUIRE(lines().size() == 10);
  CHECK(lines()[8].find("repeats a small request until it succeeds") !=
        std::string::npos);
  Full::is_full = false;
  fixture.device().Deallocate(fixture.device().Allocate(256));
  Full::is_full = true;
  fail(3);
  CHECK(lines().size() == 12);  // each success begins a new row
}

TEST_CASE("an SP_DeviceMemoryBase that is too small is not written") {
  testing::HostOptions options;
  options.sizes.device_memory = 16;
  Recording fixture(options);
  Record::Get().Take();
  testing::WithCanary<capi::SP_DeviceMemoryBase> memory(16);
  const testing::FakeDevice& device = fixture.device();
  device.fns().allocate(device.c_device(), 8, 0, memory.get());
  CHECK(memory.intact());
  CHECK(Record::Get().Take() == Calls{});
}

TEST_CASE("statistics are written to a smaller or larger SP_AllocatorStats") {
  testing::HostOptions options;
  SUBCASE("not at all if it is smaller than every layout") {
    options.sizes.allocator_stats = 88;
    Recording fixture(options);
    CHECK_FALSE(fixture.device().Stats().has_value());
    CHECK(fixture.log().lines().size() == 1);
  }
  SUBCASE("only the known fields if it is larger") {
    options.sizes.allocator_stats = 200;
    Recording fixture(options);
    CHECK(fixture.device().Stats()->largest_free_block_bytes == 9);
  }
}

}  // namespace
}  // namespace tfplug::allocator_test
