// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "fake_memory_driver.h"
#include "tfplug/device/caching_allocator.h"

namespace tfplug::caching_allocator_model_test {
namespace {

using Caching = CachingAllocator<Memory>;

// A model of CachingAllocator: the same policy, implemented naively with linear
// searches.
class Model {
 public:
  explicit Model(const Driver& driver) : rounding_(driver.options.rounding) {}

  AllocatorStats stats;

  void Apply(Driver& driver) {
    for (auto [address, size] : driver.freed) {
      const std::vector<Block>& region = regions_.at(address);
      CHECK(region.size() == 1);
      CHECK(region.front().requested == 0);
      regions_.erase(address);
      stats.bytes_reserved -= static_cast<int64_t>(size);
    }
    for (auto [address, size] : driver.allocated) {
      regions_[address] = {Block{address, size, 0}};
      stats.bytes_reserved += static_cast<int64_t>(size);
    }
    stats.peak_bytes_reserved =
        std::max(stats.peak_bytes_reserved, stats.bytes_reserved);
    driver.freed.clear();
    driver.allocated.clear();
  }

  bool Fits(uint64_t size) { return Find(Round(size)).first != nullptr; }

  uint64_t Allocate(uint64_t size) {
    const uint64_t rounded = Round(size);
    auto [region, i] = Find(rounded);
    REQUIRE(region != nullptr);
    Block& block = (*region)[i];
    const uint64_t address = block.address;
    const uint64_t rest = block.size - rounded;
    block.requested = size;
    if (rest > rounded / 16) {
      block.size = rounded;
      region->insert(region->begin() + static_cast<ptrdiff_t>(i) + 1,
                     Block{address + rounded, rest, 0});
    }
    const auto bytes = static_cast<int64_t>((*region)[i].size);
    ++stats.num_allocs;
    stats.bytes_in_use += bytes;
    stats.peak_bytes_in_use =
        std::max(stats.peak_bytes_in_use, stats.bytes_in_use);
    stats.largest_alloc_size = std::max(stats.largest_alloc_size, bytes);
    return address;
  }

  void Deallocate(uint64_t address) {
    auto& region = std::prev(regions_.upper_bound(address))->second;
    size_t i = 0;
    while (region[i].address != address) ++i;
    stats.bytes_in_use -= static_cast<int64_t>(region[i].size);
    region[i].requested = 0;
    std::vector<Block> merged;
    for (const Block& block : region) {
      if (!merged.empty() && merged.back().requested == 0 &&
          block.requested == 0) {
        merged.back().size += block.size;
      } else {
        merged.push_back(block);
      }
    }
    region = merged;
  }

  int64_t LargestFree() const {
    uint64_t largest = 0;
    for (const auto& [address, region] : regions_) {
      for (const Block& block : region) {
        if (block.requested == 0) largest = std::max(largest, block.size);
      }
    }
    return static_cast<int64_t>(largest);
  }

  void CheckClasses(const std::vector<CachingSizeClass>& classes) const {
    std::map<uint64_t, CachingSizeClass> expected;
    int64_t num_allocs = 0;
    for (const CachingSizeClass& c : classes) {
      expected[c.min_size].min_size = c.min_size;
      num_allocs += c.num_allocs;
    }
    CHECK(num_allocs == stats.num_allocs);
    for (const auto& [start, region] : regions_) {
      for (const Block& block : region) {
        uint64_t min_size = 1;
        while (2 * min_size <= block.size) min_size *= 2;
        CachingSizeClass& c = expected[min_size];
        const auto bytes = static_cast<int64_t>(block.size);
        if (block.requested == 0) {
          ++c.free_chunks;
          c.free_bytes += bytes;
        } else {
          ++c.chunks_in_use;
          c.bytes_in_use += bytes;
          c.bytes_requested += static_cast<int64_t>(block.requested);
        }
      }
    }
    REQUIRE(classes.size() == expected.size());
    for (const CachingSizeClass& c : classes) {
      const CachingSizeClass& e = expected[c.min_size];
      CHECK(c.chunks_in_use == e.chunks_in_use);
      CHECK(c.bytes_in_use == e.bytes_in_use);
      CHECK(c.bytes_requested == e.bytes_requested);
      CHECK(c.free_chunks == e.free_chunks);
      CHECK(c.free_bytes == e.free_bytes);
    }
  }

 private:
  struct Block {
    uint64_t address, size, requested;  // requested is 0 for a free one
  };

  uint64_t Round(uint64_t size) const {
    return (size + rounding_ - 1) / rounding_ * rounding_;
  }

  // Returns the smallest free block that fits; of several, the one at the
  // lowest address.
  std::pair<std::vector<Block>*, size_t> Find(uint64_t rounded) {
    std::pair<std::vector<Block>*, size_t> best = {nullptr, 0};
    uint64_t best_size = UINT64_MAX;
    for (auto& [address, region] : regions_) {
      for (size_t i = 0; i < region.size(); ++i) {
        const Block& block = region[i];
        if (block.requested == 0 && block.size >= rounded &&
            block.size < best_size) {
          best = {&region, i};
          best_size = block.size;
        }
      }
    }
    return best;
  }

  uint64_t rounding_;
  std::map<uint64_t, std::vector<Block>> regions_;  // by address
};

void CheckStats(Caching& caching, const Model& model, const Driver& driver) {
  const AllocatorStats stats = caching.Stats().value();
  CHECK(stats.num_allocs == model.stats.num_allocs);
  CHECK(stats.bytes_in_use == model.stats.bytes_in_use);
  CHECK(stats.peak_bytes_in_use == model.stats.peak_bytes_in_use);
  CHECK(stats.largest_alloc_size == model.stats.largest_alloc_size);
  CHECK(stats.bytes_reserved == model.stats.bytes_reserved);
  CHECK(stats.peak_bytes_reserved == model.stats.peak_bytes_reserved);
  CHECK(stats.largest_free_block_bytes == model.LargestFree());
  CHECK(static_cast<uint64_t>(stats.bytes_reserved) == driver.in_use);
}

uint64_t RandomSize(std::mt19937& random) {
  return 1 + (random() & ((uint64_t{2} << (random() % 17)) - 1));
}

// Allocates and deallocates at random and compares with the model after every
// call: the addresses (nothing overlaps, and free neighbors are merged), the
// statistics, and the memory obtained from the driver.
void CompareWithModel(Driver& driver, uint32_t seed, int steps, size_t most) {
  Caching caching(driver);
  REQUIRE(caching.Init().ok());
  Model model(driver);
  std::mt19937 random(seed);
  std::vector<DeviceMemory> held;
  int exhausted = 0;
  for (int step = 0; step < steps; ++step) {
    // From time to time, deallocate most of the memory, so that large blocks
    // form again.
    const bool drain = step / 300 % 3 == 2;
    if (held.empty() || (!drain && held.size() < most && random() % 4 != 0)) {
      const uint64_t size = RandomSize(random);
      const bool fits = model.Fits(size);
      const auto memory = caching.Allocate(size, 0);
      if (fits) CHECK(driver.allocated.size() + driver.freed.size() == 0);
      model.Apply(driver);
      if (memory.ok()) {
        CHECK(memory->size() == size);
        CHECK(reinterpret_cast<uint64_t>(memory->opaque()) ==
              model.Allocate(size));
        held.push_back(*memory);
      } else {
        CHECK(absl::IsResourceExhausted(memory.status()));
        CHECK(!model.Fits(size));
        CHECK(driver.capacity - driver.in_use < size + driver.options.rounding);
        ++exhausted;
      }
    } else {
      std::swap(held[random() % held.size()], held.back());
      // Pass only the address, as TensorFlow does.
      CHECK(caching.Deallocate(DeviceMemory(held.back().opaque(), 0)).ok());
      model.Deallocate(reinterpret_cast<uint64_t>(held.back().opaque()));
      held.pop_back();
    }
    CheckStats(caching, model, driver);
    if (step % 50 == 0) model.CheckClasses(caching.SizeClasses());
  }
  CHECK((exhausted > 0) == (driver.capacity != UINT64_MAX));
  for (const DeviceMemory& memory : held)
    CHECK(caching.Deallocate(memory).ok());
  CHECK(caching.Stats()->bytes_in_use == 0);
  CHECK(caching.Stats()->bytes_reserved != 0);
  const uint64_t reserved = driver.in_use;
  CHECK(caching.ReleaseFreeRegions() == reserved);
  CHECK(driver.live.empty());
  CHECK(caching.Stats()->bytes_reserved == 0);
  CHECK(caching.Stats()->largest_free_block_bytes == 0);
}

TEST_CASE("CachingAllocator: random use agrees with a naive model") {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    Driver driver;
    driver.options.first_region = 64 << 10;
    driver.options.rounding = seed % 2 != 0 ? 256 : 64;
    CompareWithModel(driver, seed, 3000, 400);
  }
}

TEST_CASE("CachingAllocator: random use of little memory also agrees") {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    Driver driver;
    driver.capacity = 1 << 20;
    driver.options.first_region = seed % 2 != 0 ? 16 << 10 : 4 << 20;
    CompareWithModel(driver, seed, 3000, 400);
  }
}

}  // namespace
}  // namespace tfplug::caching_allocator_model_test
