// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_DEVICE_MEMORY_H_
#define TFPLUG_BASE_DEVICE_MEMORY_H_

#include <cstdint>

#pragma GCC visibility push(hidden)

namespace tfplug {

// A block of device memory, as TensorFlow passes it in SP_DeviceMemoryBase. It
// owns nothing: copy it freely, and capture it in work that runs later. The
// memory is valid until TensorFlow calls Allocator::Deallocate.
class DeviceMemory {
 public:
  constexpr DeviceMemory() = default;
  // `opaque` identifies the memory to the device and is usually its address;
  // `size` is in bytes. With TensorFlow's BFC allocator, `opaque` may point
  // into the middle of a block that Allocator::Allocate returned.
  constexpr DeviceMemory(void* opaque, uint64_t size, uint64_t payload = 0)
      : opaque_(opaque), size_(size), payload_(payload) {}

  constexpr void* opaque() const { return opaque_; }
  constexpr uint64_t size() const { return size_; }
  // Returns a value for the author's own use. TensorFlow passes it back to
  // Deallocate only if use_bfc_allocator is false, and not in every release: do
  // not rely on it.
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

// The patterns of Stream::Memset and Stream::Memset32. They are distinct types,
// so that a pattern and a size cannot be swapped by mistake.
struct BytePattern {
  uint8_t value;
};
struct WordPattern {
  uint32_t value;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_DEVICE_MEMORY_H_
