// SPDX-License-Identifier: Apache-2.0
#include "heap.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace cpu_sim::rt {

Heap::Heap(size_t size) {
  stats_.limit = size / kAlignment * kAlignment;
  if (stats_.limit > 0) AddHole(0, stats_.limit);
}

absl::StatusOr<size_t> Heap::Allocate(size_t bytes) {
  if (bytes == 0) return absl::InvalidArgumentError("cannot allocate 0 bytes");
  std::lock_guard<std::mutex> lock(mutex_);
  if (bytes > stats_.limit) {  // also keeps the rounding from overflowing
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot allocate ", bytes, " bytes: the device has ", stats_.limit));
  }
  const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const auto best = holes_by_size_.lower_bound({size, 0});
  if (best == holes_by_size_.end()) {
    const size_t largest =
        holes_by_size_.empty() ? 0 : holes_by_size_.rbegin()->first;
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot allocate ", bytes, " bytes: ", stats_.in_use, " of ",
        stats_.limit, " bytes are in use, the largest hole has ", largest));
  }
  const auto [hole_size, offset] = *best;
  used_.emplace(offset, size);
  RemoveHole(holes_.find(offset));
  if (hole_size > size) AddHole(offset + size, hole_size - size);

  stats_.in_use += size;
  stats_.peak = std::max(stats_.peak, stats_.in_use);
  stats_.largest = std::max(stats_.largest, size);
  ++stats_.allocations;
  return offset;
}

absl::Status Heap::Free(size_t offset) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto used = used_.find(offset);
  if (used == used_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("nothing is allocated at offset ", offset));
  }
  size_t size = used->second;
  stats_.in_use -= size;
  used_.erase(used);

  const auto next = holes_.lower_bound(offset);
  if (next != holes_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      offset = previous->first;
      size += previous->second;
      RemoveHole(previous);
    }
  }
  if (next != holes_.end() && next->first == offset + size) {
    size += next->second;
    RemoveHole(next);
  }
  AddHole(offset, size);
  return absl::OkStatus();
}

HeapStats Heap::stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

void Heap::AddHole(size_t offset, size_t size) {
  holes_.emplace(offset, size);
  holes_by_size_.emplace(size, offset);
}

void Heap::RemoveHole(Holes::iterator hole) {
  holes_by_size_.erase({hole->second, hole->first});
  holes_.erase(hole);
}

}  // namespace cpu_sim::rt
