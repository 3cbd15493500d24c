// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_REGISTER_H_
#define TFPLUG_OP_KERNELS_REGISTER_H_

#include <type_traits>

#include "tfplug/op_kernels/internal/host_backend.h"
#include "tfplug/op_kernels/internal/registered_backend.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/primitives/backend.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// Registers families of ops for the backend B.
template <class B, class... Families>
bool RegisterBackend(Families... families) {
  static_assert(std::is_base_of_v<Backend<typename B::Stream>, B>,
                "tfplug: a backend must be derived from tfplug::Backend");
  static_assert(sizeof...(Families) > 0,
                "tfplug: name the families of ops after the backend, such as "
                "tfplug::AllOps of tfplug/op_kernels/all.h");
  registered_backend = MakeRegisteredBackend<B>();
  (families(Registrar()), ...);
  return true;
}

// Registers families of ops for int32 tensors in host memory.
template <class... Families>
bool RegisterHostKernels(Families... families) {
  UseHostBackend();
  (families(Registrar::OnHost()), ...);
  return true;
}

}  // namespace tfplug::op_kernels_internal

// TFPLUG_REGISTER_BACKEND(MyBackend, tfplug::MathOps, tfplug::ArrayOps);
// At namespace scope: registers kernels, made from the backend's primitives,
// for the families of ops that are listed (tfplug/op_kernels/*.h). It may be
// used in several files with different families, so that they are compiled at
// the same time. tfplug/op_kernels/all.h has tfplug::AllOps and its three
// parts.
#define TFPLUG_REGISTER_BACKEND(backend, ...) \
  TFPLUG_INTERNAL_REGISTER_BACKEND(__COUNTER__, backend, __VA_ARGS__)
#define TFPLUG_INTERNAL_REGISTER_BACKEND(id, backend, ...) \
  TFPLUG_INTERNAL_REGISTER_BACKEND_(id, backend, __VA_ARGS__)
#define TFPLUG_INTERNAL_REGISTER_BACKEND_(id, backend, ...) \
  [[maybe_unused]] static const bool tfplug_backend_##id =  \
      ::tfplug::op_kernels_internal::RegisterBackend<backend>(__VA_ARGS__)

// TFPLUG_REGISTER_HOST_KERNELS(tfplug::ArrayOps, tfplug::ReductionOps);
// At namespace scope: registers kernels for the families of ops that are listed
// for int32, with all tensors in host memory: the arithmetic of shapes and
// indices, which TensorFlow keeps there. They need no backend; other kernels of
// the library for the same ops and types win.
#define TFPLUG_REGISTER_HOST_KERNELS(...) \
  TFPLUG_INTERNAL_REGISTER_HOST_KERNELS(__COUNTER__, __VA_ARGS__)
#define TFPLUG_INTERNAL_REGISTER_HOST_KERNELS(id, ...) \
  TFPLUG_INTERNAL_REGISTER_HOST_KERNELS_(id, __VA_ARGS__)
#define TFPLUG_INTERNAL_REGISTER_HOST_KERNELS_(id, ...)         \
  [[maybe_unused]] static const bool tfplug_host_kernels_##id = \
      ::tfplug::op_kernels_internal::RegisterHostKernels(__VA_ARGS__)

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_REGISTER_H_
