// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BENCHMARKS_BY_HAND_STATISTICS_H_
#define TFPLUG_BENCHMARKS_BY_HAND_STATISTICS_H_

#include <atomic>
#include <cstdint>

// Allocation statistics of a device, used by both plug-ins. Thread-safe.
class Statistics {
 public:
  void Add(uint64_t size) {
    const auto bytes = static_cast<int64_t>(size);
    num_allocs_.fetch_add(1, std::memory_order_relaxed);
    const int64_t in_use =
        bytes_in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    Raise(peak_bytes_in_use_, in_use);
    Raise(largest_alloc_size_, bytes);
  }
  void Subtract(uint64_t size) {
    bytes_in_use_.fetch_sub(static_cast<int64_t>(size),
                            std::memory_order_relaxed);
  }

  int64_t num_allocs() const { return num_allocs_; }
  int64_t bytes_in_use() const { return bytes_in_use_; }
  int64_t peak_bytes_in_use() const { return peak_bytes_in_use_; }
  int64_t largest_alloc_size() const { return largest_alloc_size_; }

 private:
  static void Raise(std::atomic<int64_t>& maximum, int64_t value) {
    int64_t seen = maximum.load(std::memory_order_relaxed);
    while (seen < value && !maximum.compare_exchange_weak(
                               seen, value, std::memory_order_relaxed)) {
    }
  }

  std::atomic<int64_t> num_allocs_{0}, bytes_in_use_{0};
  std::atomic<int64_t> peak_bytes_in_use_{0}, largest_alloc_size_{0};
};

#endif  // TFPLUG_BENCHMARKS_BY_HAND_STATISTICS_H_
