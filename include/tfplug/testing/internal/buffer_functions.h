// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_BUFFER_FUNCTIONS_H_
#define TFPLUG_TESTING_INTERNAL_BUFFER_FUNCTIONS_H_

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/string_view.h"
#include "tfplug/abi/tf_buffer.h"
#include "tfplug/testing/fault.h"
#include "tfplug/testing/guards.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

using capi::TF_Buffer;

// The contents of buffers, which TensorFlow's own code reads until
// data_deallocator is called.
class BufferContents {
 public:
  static void* Add(absl::string_view bytes) {
    auto block = std::make_unique<GuardedBlock>(bytes.size(), /*alignment=*/1);
    void* const data = block->data();
    if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
    std::lock_guard<std::mutex> lock(mutex());
    blocks().emplace(data, std::move(block));
    return data;
  }
  static void Remove(void* data) {
    std::lock_guard<std::mutex> lock(mutex());
    const auto found = blocks().find(data);
    if (found == blocks().end()) {
      return ScopedGuards::Report(
          "the plug-in replaced TF_Buffer::data without data_deallocator");
    }
    if (!found->second->intact()) {
      ScopedGuards::Report("the plug-in wrote beside a TF_Buffer");
    }
    blocks().erase(found);
  }

 private:
  static std::mutex& mutex() {
    static auto* const mutex = new std::mutex;
    return *mutex;
  }
  static std::map<void*, std::unique_ptr<GuardedBlock>>& blocks() {
    static auto* const blocks =
        new std::map<void*, std::unique_ptr<GuardedBlock>>;
    return *blocks;
  }
};

// Stores a copy of `bytes` in the buffer, which owns it.
inline void FillBuffer(TF_Buffer* buffer, absl::string_view bytes) {
  *buffer = {BufferContents::Add(bytes), bytes.size(),
             [](void* data, size_t) { BufferContents::Remove(data); }};
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
