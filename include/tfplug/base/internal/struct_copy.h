// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_STRUCT_COPY_H_
#define TFPLUG_BASE_INTERNAL_STRUCT_COPY_H_

#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "tfplug/abi/layouts.h"
#include "tfplug/abi/sp_stream_executor.h"

#pragma GCC visibility push(hidden)

// TensorFlow may be older or newer than these headers. It sets struct_size,
// which identifies the layout of its struct and the size of the memory that it
// allocated.
namespace tfplug::internal {

[[gnu::cold, gnu::noinline]] inline absl::Status RefuseLayout(
    const char* struct_name, size_t size, const capi::Layout& oldest) {
  return absl::FailedPreconditionError(
      std::string("this TensorFlow's ") + struct_name + " has " +
      std::to_string(size) + " bytes, fewer than in any release (" +
      std::to_string(oldest.size) + " in " + oldest.first +
      "): install TensorFlow " + oldest.first + " or newer");
}

// Returns the newest layout in these headers that fits into TensorFlow's
// struct, so that no field is written in part; null if the struct is smaller
// than every layout.
template <class Struct>
const capi::Layout* FindLayout(const Struct& theirs) {
  const capi::Layout* found = nullptr;
  for (const capi::Layout& layout : capi::StructInfo<Struct>::kLayouts) {
    if (layout.size <= theirs.struct_size) found = &layout;
  }
  return found;
}

// Returns an error unless TensorFlow's struct has the fields of the oldest
// layout.
template <class Struct>
absl::Status CheckStruct(const Struct& theirs) {
  using Info = capi::StructInfo<Struct>;
  if (FindLayout(theirs) != nullptr) return absl::OkStatus();
  return RefuseLayout(Info::kName, theirs.struct_size, Info::kLayouts[0]);
}

// Copies to TensorFlow's `*to` those fields of `from` that both layouts have,
// and sets struct_size to the size of the fields copied.
template <class Struct>
absl::Status FillStruct(Struct* to, const Struct& from) {
  if (absl::Status status = CheckStruct(*to); !status.ok()) return status;
  const capi::Layout& layout = *FindLayout(*to);
  if constexpr (std::is_same_v<Struct, capi::SP_StreamExecutor>) {
    if (!layout.is_prefix) {
      capi::CopyTo(*reinterpret_cast<capi::SP_StreamExecutor_2_5*>(to), from);
      return absl::OkStatus();
    }
  }
  std::memcpy(to, &from, layout.size);
  to->struct_size = layout.size;
  return absl::OkStatus();
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_STRUCT_COPY_H_
