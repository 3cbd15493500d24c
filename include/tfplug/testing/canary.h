// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_CANARY_H_
#define TFPLUG_TESTING_CANARY_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>

#include "tfplug/abi/abi.h"

namespace tfplug::testing {

// A struct of core's, as large as core says and not a byte more: what lies
// before and behind is watched. `size` may be another than sizeof(Struct): that
// of another release, or of none.
template <class Struct>
class WithCanary {
 public:
  // All zero but for struct_size.
  explicit WithCanary(size_t size)
      : size_(size), block_(new unsigned char[kGuard + size + kGuard]) {
    std::memset(block_.get(), kWatched, kGuard + size + kGuard);
    std::memset(block_.get() + kGuard, 0, size);
    std::memcpy(block_.get() + kGuard, &size,
                std::min(size, sizeof(size)));  // struct_size comes first
  }

  // A copy has an address of its own, as when core takes a struct over.
  WithCanary(const WithCanary& other) : WithCanary(other.size_) {
    *this = other;
  }
  // From one of the same size.
  WithCanary& operator=(const WithCanary& other) {
    std::memmove(block_.get() + kGuard, other.block_.get() + kGuard, size_);
    return *this;
  }

  size_t size() const { return size_; }

  // For C functions. Through it, use no field that lies beyond size().
  Struct* get() const {
    return reinterpret_cast<Struct*>(block_.get() + kGuard);
  }
  Struct* operator->() const { return get(); }

  // The fields by name, whatever layout core has; what it has not is null.
  Struct Read() const {
    Struct fields;
    std::memset(static_cast<void*>(&fields), 0, sizeof(fields));
    if constexpr (std::is_same_v<Struct, capi::SP_StreamExecutor>) {
      if (size_ < offsetof(Struct, create_stream_with_options)) {
        // 2.5, 2.6: host_callback stands where mem_zero has stood since.
        capi::SP_StreamExecutor_2_5 old = {};
        std::memcpy(&old, get(), std::min(size_, sizeof(old)));
        std::memcpy(static_cast<void*>(&fields), &old,
                    offsetof(capi::SP_StreamExecutor_2_5, host_callback));
        fields.host_callback = old.host_callback;
        return fields;
      }
    }
    std::memcpy(static_cast<void*>(&fields), get(),
                std::min(size_, sizeof(fields)));
    return fields;
  }

  // Nobody has written outside of it.
  bool intact() const {
    const unsigned char* front = block_.get();
    const unsigned char* back = front + kGuard + size_;
    const auto is_watched = [](unsigned char c) { return c == kWatched; };
    return std::all_of(front, front + kGuard, is_watched) &&
           std::all_of(back, back + kGuard, is_watched);
  }

 private:
  // Room for a whole Struct behind even the smallest size; a multiple of 64.
  static constexpr size_t kGuard = (sizeof(Struct) + 127) / 64 * 64;
  static constexpr unsigned char kWatched = 0xA5;

  const size_t size_;
  const std::unique_ptr<unsigned char[]> block_;
};

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTING_CANARY_H_
