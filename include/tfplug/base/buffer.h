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

#pragma GCC visibility push(hidden)

namespace tfplug {

// Owns a TF_Buffer: bytes passed to or from TensorFlow, usually a serialized
// protocol buffer. TensorFlow has exported the TF_Buffer functions since 2.11;
// in older releases, New and Copy return UNIMPLEMENTED. Move-only.
class Buffer {
 public:
  Buffer() = default;
  // Takes ownership of `buffer`.
  explicit Buffer(capi::TF_Buffer* buffer) : buffer_(buffer) {}

  // Creates an empty buffer for TensorFlow to write into.
  static absl::StatusOr<Buffer> New() {
    if (auto s = Require(&CApi::TF_NewBuffer); !s.ok()) return s;
    return FromNew(internal::tensorflow.TF_NewBuffer());
  }
  // Creates a buffer that holds a copy of `bytes`.
  static absl::StatusOr<Buffer> Copy(absl::string_view bytes) {
    if (auto s = Require(&CApi::TF_NewBufferFromString); !s.ok()) return s;
    return FromNew(internal::tensorflow.TF_NewBufferFromString(bytes.data(),
                                                               bytes.size()));
  }

  // Returns the bytes, which are valid for the lifetime of this object.
  absl::string_view bytes() const {
    if (buffer_ == nullptr) return {};
    const capi::TF_Buffer view =
        internal::tensorflow.TF_GetBuffer(buffer_.get());
    return absl::string_view(static_cast<const char*>(view.data), view.length);
  }
  std::string ToString() const { return std::string(bytes()); }

  capi::TF_Buffer* get() const { return buffer_.get(); }
  // Gives up ownership: the caller deletes the buffer or passes it on.
  capi::TF_Buffer* release() { return buffer_.release(); }

 private:
  static absl::StatusOr<Buffer> FromNew(capi::TF_Buffer* buffer) {
    if (buffer == nullptr) {
      return absl::ResourceExhaustedError(
          "TensorFlow could not allocate a TF_Buffer");
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

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_BUFFER_H_
