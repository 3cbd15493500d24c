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

// Core and plug-in may come from different releases. The struct_size that core
// sets tells which layout it has, and how much it has allocated.
namespace tfplug::internal {

[[gnu::cold, gnu::noinline]] inline absl::Status RefuseLayout(
    const char* struct_name, size_t core_size, const capi::Layout& oldest) {
  return absl::FailedPreconditionError(
      std::string("this TensorFlow passes a ") + struct_name + " of " +
      std::to_string(core_size) + " bytes, but the first one that had any (" +
      oldest.first + ") had " + std::to_string(oldest.size) +
      "; install TensorFlow " + oldest.first + " or newer");
}

// The newest known layout that fits into core's struct, so that no field is
// ever half written; null if core's is smaller than all.
template <class Struct>
const capi::Layout* FindLayout(const Struct& core_struct) {
  const capi::Layout* found = nullptr;
  for (const capi::Layout& layout : capi::StructInfo<Struct>::kLayouts) {
    if (layout.size <= core_struct.struct_size) found = &layout;
  }
  return found;
}

// Whether core's struct has at least the fields of the oldest layout.
template <class Struct>
absl::Status CheckStruct(const Struct& core_struct) {
  using Info = capi::StructInfo<Struct>;
  if (FindLayout(core_struct) != nullptr) return absl::OkStatus();
  return RefuseLayout(Info::kName, core_struct.struct_size, Info::kLayouts[0]);
}

// Fills core's `*to` with ours, as much of it as both know, and says in
// struct_size how much that is.
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

#endif  // TFPLUG_BASE_INTERNAL_STRUCT_COPY_H_
