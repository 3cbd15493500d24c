// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_BUFFER_FUNCTIONS_H_
#define TFPLUG_TESTING_INTERNAL_BUFFER_FUNCTIONS_H_

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "absl/strings/string_view.h"
#include "tfplug/abi/tf_buffer.h"
#include "tfplug/testing/fault.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

using capi::TF_Buffer;

// Stores a copy of `bytes` in the buffer, which owns it.
inline void FillBuffer(TF_Buffer* buffer, absl::string_view bytes) {
  void* const copy = std::malloc(bytes.size() + 1);
  if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  *buffer = {copy, bytes.size(), [](void* data, size_t) { std::free(data); }};
}
inline TF_Buffer* MakeBuffer(absl::string_view bytes) {
  ++Counted<TF_Buffer>::live;
  auto* const buffer = new TF_Buffer;
  FillBuffer(buffer, bytes);
  return buffer;
}

TFPLUG_FAKE_FUNCTION TF_Buffer* TF_NewBuffer() {
  if (Fault::Hits("TF_NewBuffer")) return nullptr;
  ++Counted<TF_Buffer>::live;
  return new TF_Buffer{nullptr, 0, nullptr};
}
TFPLUG_FAKE_FUNCTION TF_Buffer* TF_NewBufferFromString(const void* bytes,
                                                       size_t size) {
  if (Fault::Hits("TF_NewBufferFromString")) return nullptr;
  return MakeBuffer({static_cast<const char*>(bytes), size});
}
TFPLUG_FAKE_FUNCTION void TF_DeleteBuffer(TF_Buffer* buffer) {
  if (buffer == nullptr) return;
  if (buffer->data_deallocator != nullptr) {
    buffer->data_deallocator(const_cast<void*>(buffer->data), buffer->length);
  }
  --Counted<TF_Buffer>::live;
  delete buffer;
}
TFPLUG_FAKE_FUNCTION TF_Buffer TF_GetBuffer(TF_Buffer* buffer) {
  return *buffer;
}

inline void InstallBufferFunctions(capi::Functions& functions) {
  TFPLUG_FAKE_INSTALL(TF_NewBuffer);
  TFPLUG_FAKE_INSTALL(TF_NewBufferFromString);
  TFPLUG_FAKE_INSTALL(TF_DeleteBuffer);
  TFPLUG_FAKE_INSTALL(TF_GetBuffer);
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_BUFFER_FUNCTIONS_H_
