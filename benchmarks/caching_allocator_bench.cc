// SPDX-License-Identifier: Apache-2.0
//
// Measures Allocate and Deallocate of CachingAllocator, compared with malloc
// and free and with a simple best fit that uses the standard containers:
//
//   caching_allocator_bench              a table: nanoseconds, ratios, memory
//   caching_allocator_bench TRACE ALLOCATOR
//                                        runs one allocator once, for callgrind
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tfplug/device/caching_allocator.h"

namespace {

// ---- The allocators ---------------------------------------------------------

// Allocates addresses without memory behind them, which are never accessed.
class Source : public tfplug::Allocator {
 public:
  absl::StatusOr<tfplug::DeviceMemory> Allocate(uint64_t size,
                                                int64_t) override {
    next_ += size;
    return tfplug::DeviceMemory(
        reinterpret_cast<void*>(next_ - size),  // NOLINT(*-no-int-to-ptr)
        size);
  }
  absl::Status Deallocate(tfplug::DeviceMemory) override {
    return absl::OkStatus();
  }
  absl::StatusOr<tfplug::MemoryUsage> Usage() override {
    return tfplug::MemoryUsage{INT64_MAX, INT64_MAX};
  }

 private:
  uint64_t next_ = uint64_t{1} << 40;
};

class Caching {
 public:
  Caching() { (void)caching_.Init(); }
  void* Allocate(uint64_t size) {
    return caching_.Measured::Allocate(size, 0)->opaque();
  }
  void Deallocate(void* memory) {
    (void)caching_.Measured::Deallocate(tfplug::DeviceMemory(memory, 0));
  }
  uint64_t Reserved() {
    return static_cast<uint64_t>(caching_.Stats()->peak_bytes_reserved);
  }

 private:
  // Calls are qualified, like tfplug's.
  using Measured = tfplug::CachingAllocator<Source>;
  Measured caching_;
};

// Best fit in one unlimited region: free ranges in trees ordered by size and by
// address, allocated ranges in a hash table.
class Containers {
 public:
  Containers() { AddHole(uint64_t{1} << 40, uint64_t{1} << 40); }

  void* Allocate(uint64_t size) {
    std::lock_guard<std::mutex> lock(mutex_);
    size = (size + 255) / 256 * 256;
    const auto found = by_size_.lower_bound({size, 0});
    const auto [hole_size, address] = *found;
    by_size_.erase(found);
    by_address_.erase(address);
    if (hole_size > size) AddHole(address + size, hole_size - size);
    used_.emplace(address, size);
    end_ = std::max(end_, address + size);
    return reinterpret_cast<void*>(address);  // NOLINT(*-no-int-to-ptr)
  }

  void Deallocate(void* memory) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto address = reinterpret_cast<uint64_t>(memory);
    const auto used = used_.find(address);
    uint64_t size = used->second;
    used_.erase(used);
    const auto after = by_address_.lower_bound(address);
    if (after != by_address_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == address) {
        address = before->first;
        size += before->second;
        RemoveHole(before);
      }
    }
    if (after != by_address_.end() && address + size == after->first) {
      size += after->second;
      RemoveHole(after);
    }
    AddHole(address, size);
  }

  uint64_t Reserved() const { return end_ - (uint64_t{1} << 40); }

 private:
  using Holes = std::map<uint64_t, uint64_t>;

  void AddHole(uint64_t address, uint64_t size) {
    by_address_.emplace(address, size);
    by_size_.emplace(size, address);
  }
  void RemoveHole(Holes::iterator hole) {
    by_size_.erase({hole->second, hole->first});
    by_address_.erase(hole);
  }

  std::mutex mutex_;
  Holes by_address_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
  std::unordered_map<uint64_t, uint64_t> used_;
  uint64_t end_ = 0;
};

class Malloc {
 public:
  void* Allocate(uint64_t size) { return std::malloc(size); }
  void Deallocate(void* memory) { std::free(memory); }
  uint64_t Reserved() const { return 0; }
};

// ---- The traces -------------------------------------------------------------

// Allocates `size` bytes into slot `slot`, or frees its memory if `size` is 0.
struct Step {
  uint32_t slot;
  uint64_t size;
};
struct Trace {
  std::string name;
  std::vector<Step> steps;
  size_t slots = 0;

  // Returns the largest number of bytes that are allocated at the same time.
  uint64_t Peak() const {
    std::vector<uint64_t> sizes(slots);
    uint64_t live = 0, peak = 0;
    for (const Step& step : steps) {
      live += step.size - sizes[step.slot];
      sizes[step.slot] = step.size;
      peak = std::max(peak, live);
    }
    return peak;
  }
};

// Returns 40 training steps of a network of 24 layers: activations live until
// the backward pass; each kernel has a workspace; gradients and updates are
// freed soon.
Trace Training() {
  Trace trace{"training", {}, size_t{4} * 24};
  for (int repeat = 0; repeat < 40; ++repeat) {
    const auto size = [](uint32_t layer) {
      return 6000 + 900 * uint64_t{layer % 7};
    };
    for (uint32_t layer = 0; layer < 24; ++layer) {
      const uint32_t slot = 4 * layer;
      trace.steps.push_back({slot, 64 * size(layer)});
      trace.steps.push_back({slot + 1, 4 * size(layer)});
      trace.steps.push_back({slot + 2, 64 * size(layer)});
      trace.steps.push_back({slot + 1, 0});
    }
    for (uint32_t layer = 24; layer-- > 0;) {
      const uint32_t slot = 4 * layer;
      trace.steps.push_back({slot + 1, 64 * size(layer)});
      trace.steps.push_back({slot + 3, 3 * size(layer)});
      trace.steps.push_back({slot + 2, 0});
      trace.steps.push_back({slot + 3, 0});
      trace.steps.push_back({slot + 1, 0});
      trace.steps.push_back({slot, 0});
    }
  }
  return trace;
}

// Returns allocations of 1 to `largest` bytes, equally many in each power of
// two; `live` allocations exist at the same time.
Trace Random(const char* name, uint32_t live, double largest, int steps) {
  Trace trace{name, {}, live};
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(0, std::log2(largest));
  std::vector<bool> filled(live);
  for (int i = 0; i < steps; ++i) {
    const uint32_t slot = random() % live;
    if (filled[slot]) trace.steps.push_back({slot, 0});
    trace.steps.push_back(
        {slot, static_cast<uint64_t>(std::exp2(exponent(random)))});
    filled[slot] = true;
  }
  for (uint32_t slot = 0; slot < live; ++slot) {
    if (filled[slot]) trace.steps.push_back({slot, 0});
  }
  return trace;
}

// ---- The measurement --------------------------------------------------------

template <class Allocator>
__attribute__((noinline)) void Run(const Trace& trace,
                                   std::vector<void*>& slots,
                                   Allocator& allocator) {
  for (const Step& step : trace.steps) {
    if (step.size != 0) {
      slots[step.slot] = allocator.Allocate(step.size);
    } else {
      allocator.Deallocate(slots[step.slot]);
    }
  }
}

struct Result {
  double nanoseconds = INFINITY;  // per Allocate and Deallocate
  double overhead = 0;            // memory taken from the driver / Trace::Peak
};

// Stores the best of several runs, the first of which also warms up.
template <class Allocator>
void Measure(const Trace& trace, Result& result) {
  using Clock = std::chrono::steady_clock;
  Allocator allocator;
  std::vector<void*> slots(trace.slots);
  for (int run = 0; run < 5; ++run) {
    const auto start = Clock::now();
    Run(trace, slots, allocator);
    const std::chrono::duration<double, std::nano> taken = Clock::now() - start;
    result.nanoseconds =
        std::min(result.nanoseconds,
                 taken.count() / (static_cast<double>(trace.steps.size()) / 2));
  }
  result.overhead = static_cast<double>(allocator.Reserved()) /
                    static_cast<double>(trace.Peak());
}

template <class Allocator>
int RunOnce(const Trace& trace) {
  Allocator allocator;
  std::vector<void*> slots(trace.slots);
  Run(trace, slots, allocator);
  std::printf("%zu pairs\n", trace.steps.size() / 2);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // Makes malloc reuse its memory instead of calling mmap for each block.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, INT32_MAX);
  const Trace traces[] = {
      Training(),
      Random("small", 1000, 1 << 16, 200000),
      Random("large", 20000, 1 << 22, 200000),
  };
  if (argc == 3) {
    for (const Trace& trace : traces) {
      if (trace.name != argv[1]) continue;
      if (std::strcmp(argv[2], "caching") == 0) return RunOnce<Caching>(trace);
      if (std::strcmp(argv[2], "map") == 0) return RunOnce<Containers>(trace);
      if (std::strcmp(argv[2], "malloc") == 0) return RunOnce<Malloc>(trace);
    }
    std::fprintf(stderr, "training|small|large caching|map|malloc\n");
    return 2;
  }
  std::printf(
      "| trace | CachingAllocator | / malloc | / containers | memory taken / "
      "needed | of containers |\n|---|---|---|---|---|---|\n");
  for (const Trace& trace : traces) {
    // malloc's time for the large trace is mostly spent on page faults.
    const bool with_malloc = trace.name != "large";
    Result caching, containers, c;
    for (int round = 0; round < 3; ++round) {
      Measure<Caching>(trace, caching);
      Measure<Containers>(trace, containers);
      if (with_malloc) Measure<Malloc>(trace, c);
    }
    const std::string ratio =
        with_malloc ? std::to_string(caching.nanoseconds / c.nanoseconds) : "-";
    std::printf("| %s | %.0f ns | %.4s | %.2f | %.2f | %.2f |\n",
                trace.name.c_str(), caching.nanoseconds, ratio.c_str(),
                caching.nanoseconds / containers.nanoseconds, caching.overhead,
                containers.overhead);
  }
}
