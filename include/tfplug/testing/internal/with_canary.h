// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_WITH_CANARY_H_
#define TFPLUG_TESTING_INTERNAL_WITH_CANARY_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "tfplug/abi/abi.h"
#include "tfplug/testing/guards.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// One of TensorFlow's structs between canary bytes, which reveal a write
// outside of it, or in front of a guard page (ScopedGuards). Its size may differ
// from sizeof(Struct): it may be the size in another release, or one that no
// release has.
template <class Struct>
class WithCanary {
 public:
  // Constructs a struct of `size` bytes, whose fields are 0 except struct_size.
  explicit WithCanary(size_t size) : block_(size, alignof(Struct), kMargin) {
    std::memcpy(block_.data(), &size,
                std::min(size, sizeof(size)));  // struct_size comes first
  }

  // A copy has its own address, like the copies that TensorFlow keeps.
  WithCanary(const WithCanary& other) : WithCanary(other.size()) {
    *this = other;
  }
  // Both must have the same size.
  WithCanary& operator=(const WithCanary& other) {
    std::memmove(block_.data(), other.block_.data(), size());
    return *this;
  }

  size_t size() const { return block_.size(); }

  // Returns the struct for C functions. Fields beyond size() must not be used.
  Struct* get() const { return reinterpret_cast<Struct*>(block_.data()); }
  Struct* operator->() const { return get(); }

  // Returns the fields in the newest layout, converted from the layout of the
  // release. Fields that the release lacks are null.
  Struct Read() const {
    Struct fields;
    std::memset(static_cast<void*>(&fields), 0, sizeof(fields));
    if constexpr (std::is_same_v<Struct, capi::SP_StreamExecutor>) {
      if (size() < offsetof(Struct, create_stream_with_options)) {
        // In 2.5 and 2.6, host_callback is at the offset of today's mem_zero.
        capi::SP_StreamExecutor_2_5 old = {};
        std::memcpy(&old, get(), std::min(size(), sizeof(old)));
        std::memcpy(static_cast<void*>(&fields), &old,
                    offsetof(capi::SP_StreamExecutor_2_5, host_callback));
        fields.host_callback = old.host_callback;
        return fields;
      }
    }
    std::memcpy(static_cast<void*>(&fields), get(),
                std::min(size(), sizeof(fields)));
    return fields;
  }

  // Returns whether all canary bytes are intact.
  bool intact() const { return block_.intact(); }

 private:
  // A multiple of 64 bytes, so large that, without a guard page, a whole Struct
  // fits in the block even if its size is 0.
  static constexpr size_t kMargin = (sizeof(Struct) + 127) / 64 * 64;

  const GuardedBlock block_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_WITH_CANARY_H_
