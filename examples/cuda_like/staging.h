// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_LIKE_STAGING_H_
#define CUDA_LIKE_STAGING_H_

#include <cstddef>
#include <mutex>
#include <vector>

#include "absl/status/status.h"

namespace cuda_like {

class Device;

// Page-locked memory for small copies to the host: CUDA returns from a copy to
// ordinary memory when it is done, after all work before it on the stream.
// Threads: any.
class Staging {
 public:
  static constexpr size_t kSize = 16 << 10;  // the largest copy
  static constexpr size_t kCount = 64;       // copies at a time

  explicit Staging(Device& device) : device_(device) {}
  // Frees the memory, before the device is destroyed.
  void Destroy();

  // Returns kSize bytes, or null if all are in use or there are none.
  void* Allocate();
  void Free(void* memory);

 private:
  Device& device_;
  std::mutex mutex_;
  bool is_used_ = true;  // read from CUDA_LIKE_STAGING
  char* memory_ = nullptr;
  std::vector<void*> free_;
};

// A copy that has reached page-locked memory when the stream's work is done.
struct StagedCopy {
  void* to;
  void* from;  // of Staging
  size_t size;
};

}  // namespace cuda_like

#endif  // CUDA_LIKE_STAGING_H_
