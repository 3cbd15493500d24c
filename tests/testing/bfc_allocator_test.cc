// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/testing/bfc_allocator.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace tfplug::bfc_allocator_test {
namespace {

using testing::BfcAllocator;
using Sizes = std::vector<size_t>;

constexpr size_t kMebi = size_t{1} << 20;

// The memory that the allocator requests: addresses only, which nobody accesses.
struct Source {
  // Refuses each request for more than `most` bytes.
  size_t most = SIZE_MAX;
  Sizes requests, returned;

  auto Allocate() {
    return [this](size_t size) -> void* {
      requests.push_back(size);
      if (size > most) return nullptr;
      next += size + kMebi;  // regions have gaps
      return reinterpret_cast<void*>(next - size - kMebi);
    };
  }
  auto Deallocate() {
    return [this](void*, size_t size) { returned.push_back(size); };
  }
  uintptr_t next = uintptr_t{1} << 40;
};

struct Fixture {
  explicit Fixture(size_t limit, bool grows = false)
      : allocator({limit, grows}, source.Allocate(), source.Deallocate()) {}
  uintptr_t Allocate(size_t size) {
    return reinterpret_cast<uintptr_t>(allocator.Allocate(size));
  }
  void Deallocate(uintptr_t address) {
    allocator.Deallocate(reinterpret_cast<void*>(address));
  }
  Source source;
  BfcAllocator allocator;
};

TEST_CASE("one region of all memory, requested by the first allocation") {
  Source source;
  {
    BfcAllocator allocator({kMebi, false}, source.Allocate(),
                           source.Deallocate());
    CHECK(source.requests.empty());
    CHECK(allocator.Allocate(1) != nullptr);
    CHECK(source.requests == Sizes{kMebi});
    CHECK(allocator.Allocate(kMebi) == nullptr);
    CHECK(allocator.Allocate(0) == nullptr);
    CHECK(allocator.Allocate(kMebi + 1) == nullptr);
    CHECK(source.requests == Sizes{kMebi});
    CHECK(source.returned.empty());
  }
  CHECK(source.returned == Sizes{kMebi});
}

TEST_CASE(
    "sizes are rounded to 256, and a chunk is split if half would be left") {
  Fixture bfc(kMebi);
  const uintptr_t a = bfc.Allocate(1), b = bfc.Allocate(257),
                  c = bfc.Allocate(256);
  CHECK(b - a == 256);
  CHECK(c - b == 512);
  // 512 bytes serve 256 by a split: twice as much.
  bfc.Deallocate(b);
  CHECK(bfc.Allocate(1) == b);
  CHECK(bfc.Allocate(1) == b + 256);
  // 768 bytes serve 512 whole.
  const uintptr_t d = bfc.Allocate(768), e = bfc.Allocate(256);
  CHECK(e - d == 768);
  bfc.Deallocate(d);
  CHECK(bfc.Allocate(512) == d);
  CHECK(bfc.Allocate(256) == e + 256);
}

TEST_CASE("neighbours that are free are one chunk") {
  for (const auto& order : std::vector<std::vector<size_t>>{
           {0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}}) {
    Fixture bfc(kMebi);
    std::vector<uintptr_t> chunks(4);
    for (uintptr_t& chunk : chunks) chunk = bfc.Allocate(1024);
    for (const size_t i : order) bfc.Deallocate(chunks[i]);
    CHECK(bfc.Allocate(3072) == chunks[0]);
  }
}

TEST_CASE("the smallest chunk that fits is taken, then the lowest address") {
  Fixture bfc(kMebi);
  std::vector<uintptr_t> chunks;
  for (const size_t size : {4096, 256, 2048, 256, 3072, 256, 2048, 256}) {
    chunks.push_back(bfc.Allocate(size));
  }
  for (const size_t i : {6, 4, 2, 0}) bfc.Deallocate(chunks[i]);
  CHECK(bfc.Allocate(2048) == chunks[2]);
  CHECK(bfc.Allocate(2048) == chunks[6]);
  CHECK(bfc.Allocate(2048) == chunks[4]);
  CHECK(bfc.Allocate(2048) == chunks[0]);
}

TEST_CASE("growing memory: 2 MiB, then twice as much each time") {
  Fixture bfc(64 * kMebi, /*grows=*/true);
  bfc.Allocate(1);
  CHECK(bfc.source.requests == Sizes{2 * kMebi});
  bfc.Allocate(2 * kMebi);
  CHECK(bfc.source.requests == Sizes{2 * kMebi, 4 * kMebi});
  // For a large one, the size is doubled until it fits.
  bfc.Allocate(20 * kMebi);
  CHECK(bfc.source.requests == Sizes{2 * kMebi, 4 * kMebi, 32 * kMebi});
  // The last region has what is left: 64 - 38.
  CHECK(bfc.Allocate(27 * kMebi) == 0);
  CHECK(bfc.Allocate(26 * kMebi) != 0);
  CHECK(bfc.source.requests.back() == 26 * kMebi);
}

TEST_CASE("after the first failure, and only then, a tenth less is requested") {
  Fixture bfc(10 * kMebi);
  bfc.source.most = 17 * kMebi / 2;  // 8.5 MiB
  CHECK(bfc.Allocate(kMebi) != 0);
  const auto less = [](size_t size) {
    return (static_cast<size_t>(static_cast<float>(size) * 0.9f) + 255) / 256 *
           256;
  };
  const size_t second = less(10 * kMebi), third = less(second);
  CHECK(bfc.source.requests == Sizes{10 * kMebi, second, third});
  bfc.source.most = 0;
  CHECK(bfc.Allocate(8 * kMebi) == 0);
  CHECK(bfc.source.requests.size() == 3);  // 2 MiB are left: not enough
  CHECK(bfc.Allocate(kMebi) != 0);

  Fixture growing(64 * kMebi, /*grows=*/true);
  growing.Allocate(1);
  growing.source.most = kMebi;
  CHECK(growing.Allocate(2 * kMebi) == 0);
  const size_t requests = growing.source.requests.size();
  CHECK(requests > 4);
  CHECK(growing.Allocate(2 * kMebi) == 0);
  CHECK(growing.source.requests.size() == requests + 1);
}

TEST_CASE(
    "a plug-in that has no memory at all is asked a limited number of times") {
  Fixture bfc(10 * kMebi);
  bfc.source.most = 0;
  CHECK(bfc.Allocate(kMebi) == 0);
  CHECK(bfc.source.requests.size() > 10);
  CHECK(bfc.source.requests.size() < 40);
  CHECK(bfc.source.requests.back() >= kMebi);
}

TEST_CASE("chunks never overlap, from many threads") {
  constexpr size_t kLimit = 64 * kMebi;
  Fixture bfc(kLimit, /*grows=*/true);
  std::mutex mutex;
  std::map<uintptr_t, size_t> live;
  int overlaps = 0, failures = 0;
  const auto work = [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<uintptr_t> mine;
    for (int i = 0; i < 5000; ++i) {
      if (mine.size() > 50 || (!mine.empty() && random() % 2 == 0)) {
        const size_t at = random() % mine.size();
        const uintptr_t address = mine[at];
        mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(at));
        {
          std::lock_guard<std::mutex> lock(mutex);
          live.erase(address);
        }
        bfc.Deallocate(address);
        continue;
      }
      const size_t size = 1 + random() % 20000;
      const uintptr_t address = bfc.Allocate(size);
      std::lock_guard<std::mutex> lock(mutex);
      if (address == 0) {
        ++failures;
        continue;
      }
      const auto next = live.lower_bound(address);
      overlaps += next != live.end() && next->first < address + size;
      overlaps += next != live.begin() &&
                  std::prev(next)->first + std::prev(next)->second > address;
      live.emplace(address, size);
      mine.push_back(address);
    }
    for (const uintptr_t address : mine) {
      std::lock_guard<std::mutex> lock(mutex);
      live.erase(address);
      bfc.Deallocate(address);
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  CHECK(overlaps == 0);
  CHECK(failures == 0);
  // All is one chunk again in each region.
  const size_t largest = bfc.source.requests.back();
  CHECK(bfc.Allocate(largest) != 0);
}

}  // namespace
}  // namespace tfplug::bfc_allocator_test
