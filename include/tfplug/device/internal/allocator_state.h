// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_ALLOCATOR_STATE_H_
#define TFPLUG_DEVICE_INTERNAL_ALLOCATOR_STATE_H_

#include <atomic>
#include <cstdint>

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// State of a tfplug::Allocator.
struct AllocatorState {
  bool uses_bfc_allocator = true;  // PlatformOptions::use_bfc_allocator
  std::atomic<uint32_t> failures_in_a_row{0};  // of Allocator::Allocate
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_ALLOCATOR_STATE_H_
