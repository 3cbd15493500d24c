// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_CACHING_ALLOCATOR_OPTIONS_H_
#define TFPLUG_DEVICE_CACHING_ALLOCATOR_OPTIONS_H_

#include <cstdint>
#include <optional>

#pragma GCC visibility push(hidden)

namespace tfplug {

// The settings of a CachingAllocator; all sizes are in bytes. To change a
// default, add this function to the allocator that CachingAllocator wraps. It
// is called once, after that allocator's Init:
//
//   tfplug::CachingAllocatorOptions CachingOptions();
struct CachingAllocatorOptions {
  // Sizes are rounded up to a multiple of this, which must be a power of two
  // and at least 64. It is also the alignment of the memory, provided that the
  // regions have that alignment.
  uint64_t rounding = 256;
  // The size of the first region. Each further region is twice as large as the
  // one before, up to `largest_region`. An allocation larger than the next
  // region gets a region of its own size.
  uint64_t first_region = uint64_t{2} << 20;
  uint64_t largest_region = uint64_t{256} << 20;
  // The maximum total size of all regions; unlimited by default.
  std::optional<uint64_t> limit;
};

// Statistics of the chunks of [min_size, 2 * min_size) bytes in a
// CachingAllocator.
struct CachingSizeClass {
  uint64_t min_size = 0;
  int64_t num_allocs = 0;       // allocations so far
  int64_t chunks_in_use = 0;    // live allocations
  int64_t bytes_in_use = 0;     // total size of the live allocations
  int64_t bytes_requested = 0;  // the same before rounding
  int64_t free_chunks = 0;      // cached chunks
  int64_t free_bytes = 0;       // total size of the cached chunks
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_CACHING_ALLOCATOR_OPTIONS_H_
