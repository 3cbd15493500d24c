// SPDX-License-Identifier: Apache-2.0
#include "staging.h"

#include "cuda_like.h"

namespace cuda_like {

void* Staging::Allocate() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (memory_ == nullptr && is_used_) {
    const auto chosen = LibraryNames("CUDA_LIKE_STAGING", {});
    void* memory = nullptr;
    is_used_ = (chosen.empty() || chosen[0] != "0") &&
               device_
                   .Call(device_.driver().cuMemHostAlloc, &memory,
                         kSize * kCount, CU_MEMHOSTALLOC_PORTABLE)
                   .ok();
    if (!is_used_) return nullptr;
    memory_ = static_cast<char*>(memory);
    for (size_t i = kCount; i-- > 0;) free_.push_back(memory_ + i * kSize);
  }
  if (free_.empty()) return nullptr;
  void* const memory = free_.back();
  free_.pop_back();
  return memory;
}

void Staging::Free(void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(memory);
}

void Staging::Destroy() {
  if (memory_ == nullptr) return;
  device_.Call(device_.driver().cuMemFreeHost, static_cast<void*>(memory_))
      .IgnoreError();
}

}  // namespace cuda_like
