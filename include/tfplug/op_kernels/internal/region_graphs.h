// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_REGION_GRAPHS_H_
#define TFPLUG_OP_KERNELS_INTERNAL_REGION_GRAPHS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/base/internal/environment.h"
#include "tfplug/primitives/launch_graph.h"
#include "tfplug/primitives/launcher.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// The graphs of one record (Backend::Capture). TensorFlow's allocator gives a
// step the same addresses as an earlier one as a rule: launches are captured
// when addresses come a second time, and enqueued one by one otherwise.
// Threads: any.
class RegionGraphs {
 public:
  // Fewer launches take no longer than a graph of them.
  static constexpr size_t kFewestLaunches = 4;
  // Addresses that are remembered, each with its graph if it came again.
  static constexpr size_t kMost = 16;
  // Runs in a row without known addresses, after which graphs are given up.
  static constexpr int kMostMisses = 1024;

  // Reads TFPLUG_REGION_GRAPHS.
  explicit RegionGraphs(size_t num_launches)
      : is_off_(num_launches < kFewestLaunches ||
                !internal::IsTurnedOn("TFPLUG_REGION_GRAPHS", true)) {}

  // Enqueues as a graph what work(stream) enqueues, whose operands are in these
  // buffers. Returns false if nothing is enqueued. Calls log(text) after a
  // decision, with the end of a sentence about the region's launches.
  template <class Work, class Log>
  bool Launch(const primitives::PrimitiveTable& table, void* backend,
              void* stream, const std::vector<char*>& buffers, const Work& work,
              const Log& log) {
    if (table.capture == nullptr) return false;
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    // Another thread may be capturing, which takes longer than the launches.
    if (!lock.owns_lock() || is_off_) return false;
    Entry* const entry = Find(stream, buffers);
    if (entry == nullptr) {
      if (++misses_ == kMostMisses) TurnOff(log, "addresses do not repeat");
      return false;
    }
    misses_ = 0;
    entry->used = ++runs_;
    if (entry->graph == nullptr) {
      // A capture takes as long as several runs.
      if (captures_ >= kMost + runs_ / 16) return false;
      ++captures_;
      NewLaunchGraph graph = table.capture(backend, stream, work);
      if (!graph.ok() || *graph == nullptr) {
        TurnOff(log, graph.ok() ? "the device has no graphs"
                                : std::string(graph.status().message()));
        return false;
      }
      entry->graph = *std::move(graph);
      log("are captured as a graph");
    }
    if (entry->graph->Launch().ok()) return true;
    entry->graph.reset();
    return false;
  }

 private:
  struct Entry {
    void* stream = nullptr;
    std::vector<char*> buffers;
    std::unique_ptr<LaunchGraph> graph;  // null at the first time
    uint64_t used = 0;                   // the run that used it last
  };

  // Returns the entry, or null for new addresses, which replace the least
  // recently used ones.
  Entry* Find(void* stream, const std::vector<char*>& buffers) {
    Entry* oldest = &entries_[0];
    for (Entry& entry : entries_) {
      if (entry.stream == stream && entry.buffers == buffers) return &entry;
      if (entry.used < oldest->used) oldest = &entry;
    }
    oldest->stream = stream;
    oldest->buffers = buffers;
    oldest->graph.reset();
    oldest->used = ++runs_;
    return nullptr;
  }

  template <class Log>
  void TurnOff(const Log& log, const std::string& reason) {
    is_off_ = true;
    for (Entry& entry : entries_) entry = Entry();
    log("are enqueued one by one: " + reason);
  }

  std::mutex mutex_;
  bool is_off_;
  int misses_ = 0;
  uint64_t runs_ = 0, captures_ = 0;
  std::array<Entry, kMost> entries_;
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_REGION_GRAPHS_H_
