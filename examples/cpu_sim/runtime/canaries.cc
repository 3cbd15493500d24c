// SPDX-License-Identifier: Apache-2.0
#include "canaries.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace cpu_sim::rt {

void Canaries::Place(uint8_t* block, size_t bytes) {
  memset(block - kBytes, kPoison, bytes + 2 * kBytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  sizes_[block] = bytes;
}

std::string Canaries::Remove(uint8_t* block) {
  size_t bytes;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = sizes_.find(block);
    if (found == sizes_.end()) return "";
    bytes = found->second;
    sizes_.erase(found);
  }
  std::string text;
  for (size_t i = 0; i < kBytes && text.empty(); ++i) {
    if (block[bytes + i] != kPoison) {
      text = absl::StrCat("byte ", i, " after a block of ", bytes,
                          " bytes was overwritten");
    } else if ((block - kBytes)[i] != kPoison) {
      text = absl::StrCat("byte ", kBytes - i, " before a block of ", bytes,
                          " bytes was overwritten");
    }
  }
  memset(block - kBytes, kPoison, bytes + 2 * kBytes);
  return text;
}

}  // namespace cpu_sim::rt
