// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_BUFFER_H_
#define TFPLUG_BASE_BUFFER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/abi/tf_buffer.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/internal/tensorflow.h"

namespace tfplug {

// Bytes that core gives or takes, mostly a serialised protocol buffer
// (TF_Buffer). Plug-ins have them since 2.11. Move-only.
class Buffer {
 public:
  Buffer() = default;
  // Takes `buffer` over.
  explicit Buffer(capi::TF_Buffer* buffer) : buffer_(buffer) {}

  // Empty, for core to write into.
  static absl::StatusOr<Buffer> New() {
    if (auto s = Require(&CApi::TF_NewBuffer); !s.ok()) return s;
    return Made(internal::tensorflow.TF_NewBuffer());
  }
  // With a copy of `bytes`.
  static absl::StatusOr<Buffer> Copy(absl::string_view bytes) {
    if (auto s = Require(&CApi::TF_NewBufferFromString); !s.ok()) return s;
    return Made(internal::tensorflow.TF_NewBufferFromString(bytes.data(),
                                                            bytes.size()));
  }

  // Valid while the buffer lives.
  absl::string_view bytes() const {
    if (buffer_ == nullptr) return {};
    const capi::TF_Buffer view =
        internal::tensorflow.TF_GetBuffer(buffer_.get());
    return absl::string_view(static_cast<const char*>(view.data), view.length);
  }
  std::string ToString() const { return std::string(bytes()); }

  capi::TF_Buffer* get() const { return buffer_.get(); }
  capi::TF_Buffer* release() { return buffer_.release(); }

 private:
  static absl::StatusOr<Buffer> Made(capi::TF_Buffer* buffer) {
    if (buffer == nullptr) {
      return absl::ResourceExhaustedError("core made no TF_Buffer");
    }
    return Buffer(buffer);
  }

  struct Deleter {
    void operator()(capi::TF_Buffer* buffer) const {
      internal::tensorflow.TF_DeleteBuffer(buffer);
    }
  };
  std::unique_ptr<capi::TF_Buffer, Deleter> buffer_;
};

}  // namespace tfplug

#endif  // TFPLUG_BASE_BUFFER_H_
