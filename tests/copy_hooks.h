// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_COPY_HOOKS_H_
#define TFPLUG_TESTS_COPY_HOOKS_H_

#include <cstdint>

#include "tfplug/plugin.h"

// The copies of a stream whose device uses host memory: each calls
// Self::Copy(dst, src, size).
template <class Self, class Event>
class CopyHooks : public tfplug::Stream<Self, Event> {
 public:
  absl::Status CopyHostToDevice(tfplug::DeviceMemory dst, const void* src,
                                uint64_t size) override {
    return self().Copy(dst.opaque(), src, size);
  }
  absl::Status CopyDeviceToHost(void* dst, tfplug::DeviceMemory src,
                                uint64_t size) override {
    return self().Copy(dst, src.opaque(), size);
  }
  absl::Status CopyDeviceToDevice(tfplug::DeviceMemory dst,
                                  tfplug::DeviceMemory src,
                                  uint64_t size) override {
    return self().Copy(dst.opaque(), src.opaque(), size);
  }

 private:
  Self& self() { return *static_cast<Self*>(this); }
};

#endif  // TFPLUG_TESTS_COPY_HOOKS_H_
