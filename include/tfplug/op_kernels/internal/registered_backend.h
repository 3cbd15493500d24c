// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_REGISTERED_BACKEND_H_
#define TFPLUG_OP_KERNELS_INTERNAL_REGISTERED_BACKEND_H_

#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/internal/construct.h"
#include "tfplug/kernel/kernel_context.h"
#include "tfplug/op_kernels/internal/host_access.h"
#include "tfplug/primitives/backend.h"
#include "tfplug/primitives/internal/table_of.h"
#include "tfplug/primitives/launcher.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// The backend that the kernels of this library run on. Kernels are no templates
// of it, so that they are compiled once.
struct RegisteredBackend {
  const primitives::PrimitiveTable* table;
  void* (*get_backend)();
  absl::StatusOr<void*> (*get_stream)(KernelContext&);
  bool (*supports)(DataType);
  bool (*supports_opcode)(Opcode, DataType);  // null: all
  const HostAccess* host_access;  // null for streams that are no device's
};

// Set by TFPLUG_REGISTER_BACKEND.
inline RegisteredBackend registered_backend = {};

// The primitives of kernels in host memory, set by UseHostBackend
// (op_kernels/internal/host_backend.h).
inline RegisteredBackend host_backend = {};

template <class B>
B& BackendOf() {
  static B* const backend = internal::Construct<B>().release();
  return *backend;
}

// Returns RegisteredBackend::supports_opcode.
template <class B>
constexpr auto OpcodesOf() -> bool (*)(Opcode, DataType) {
  if constexpr (std::is_same_v<
                    decltype(&B::SupportsOpcode),
                    decltype(&Backend<typename B::Stream>::SupportsOpcode)>) {
    return nullptr;
  } else {
    return [](Opcode opcode, DataType type) {
      return BackendOf<B>().B::SupportsOpcode(opcode, type);
    };
  }
}

template <class B>
constexpr RegisteredBackend MakeRegisteredBackend() {
  return {&primitives_internal::TableOf<B>::kTable,
          []() -> void* { return &BackendOf<B>(); },
          [](KernelContext& context) -> absl::StatusOr<void*> {
            auto stream = context.GetStream<typename B::Stream>();
            if (!stream.ok()) return stream.status();
            return static_cast<void*>(*stream);
          },
          [](DataType type) { return BackendOf<B>().B::Supports(type); },
          OpcodesOf<B>(),
          HostAccessOf<typename B::Stream>()};
}

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_REGISTERED_BACKEND_H_
