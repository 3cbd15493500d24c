// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_DEVICE_MEMORY_H_
#define TFPLUG_BASE_DEVICE_MEMORY_H_

#include <cstdint>

namespace tfplug {

// A piece of device memory, as core passes it in SP_DeviceMemoryBase. A value:
// copy it freely, also into work that runs later. It owns nothing; the memory
// lives until core calls Allocator::Deallocate.
class DeviceMemory {
 public:
  constexpr DeviceMemory() = default;
  // `opaque` is what the device uses to find the memory, usually its address;
  // `size` is in bytes. With core's BFC allocator, `opaque` may point into the
  // middle of what Allocator::Allocate returned.
  constexpr DeviceMemory(void* opaque, uint64_t size, uint64_t payload = 0)
      : opaque_(opaque), size_(size), payload_(payload) {}

  constexpr void* opaque() const { return opaque_; }
  constexpr uint64_t size() const { return size_; }
  // A value of the author's own. Core carries it back to Deallocate only where
  // use_bfc_allocator is off, and not in every release: do not rely on it.
  constexpr uint64_t payload() const { return payload_; }
  constexpr bool is_null() const { return opaque_ == nullptr; }

  template <class T>
  T* as() const {
    return static_cast<T*>(opaque_);
  }

 private:
  void* opaque_ = nullptr;
  uint64_t size_ = 0;
  uint64_t payload_ = 0;
};

// The pattern of Stream::Memset and Stream::Memset32: types of their own, so
// that a pattern and a size cannot be swapped.
struct BytePattern {
  uint8_t value;
};
struct WordPattern {
  uint32_t value;
};

}  // namespace tfplug

#endif  // TFPLUG_BASE_DEVICE_MEMORY_H_
