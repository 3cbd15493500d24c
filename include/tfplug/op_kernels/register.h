// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_REGISTER_H_
#define TFPLUG_OP_KERNELS_REGISTER_H_

#include <type_traits>

#include "tfplug/base/internal/is_defined.h"
#include "tfplug/kernel/internal/init_kernel.h"
#include "tfplug/op_kernels/internal/host_backend.h"
#include "tfplug/op_kernels/internal/registered_backend.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/primitives/backend.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// True if B is publicly derived from tfplug::Backend.
template <class B, class = void>
inline constexpr bool kIsBackend = false;
template <class B>
inline constexpr bool kIsBackend<B, std::void_t<typename B::Stream>> =
    std::is_convertible_v<B*, Backend<typename B::Stream>*>;

// True if S has the constant of tfplug::Device that no stream has.
template <class S, class = void>
inline constexpr bool kIsDevice = false;
template <class S>
inline constexpr bool
    kIsDevice<S, std::void_t<decltype(S::kUploadsWaitForKernels)>> = true;

// The first mistake in a backend's class. TFPLUG_REGISTER_BACKEND asserts each
// of them itself, so that the compiler begins with the sentence.
enum class BackendMistake {
  kNone,
  kUndefined,
  kBase,
  kStream,
  kDevice,
  kAbstract,
  kConstructor
};

template <class B>
constexpr BackendMistake BackendMistakeOf() {
  if constexpr (!internal::kIsDefined<B>) {
    return BackendMistake::kUndefined;
  } else if constexpr (!kIsBackend<B>) {
    return BackendMistake::kBase;
  } else if constexpr (!internal::kIsDefined<typename B::Stream>) {
    return BackendMistake::kStream;
  } else if constexpr (kIsDevice<typename B::Stream>) {
    return BackendMistake::kDevice;
  } else if constexpr (std::is_abstract_v<B>) {
    return BackendMistake::kAbstract;
  } else if constexpr (!std::is_default_constructible_v<B>) {
    return BackendMistake::kConstructor;
  } else {
    return BackendMistake::kNone;
  }
}

// Registers families of ops for the backend B.
template <class B, class... Families>
bool RegisterBackend(Families... families) {
  static_assert(sizeof...(Families) > 0,
                "tfplug: name the families of ops after the backend, such as "
                "tfplug::AllOps of tfplug/op_kernels/all.h");
  constexpr BackendMistake kMistake = BackendMistakeOf<B>();
  // The compiler lists the functions that an abstract class lacks.
  if constexpr (kMistake == BackendMistake::kNone ||
                kMistake == BackendMistake::kAbstract) {
    kernel_internal::DefineInitKernel();
    registered_backend = MakeRegisteredBackend<B>();
    (families(Registrar()), ...);
  }
  return true;
}

// Registers families of ops for int32 tensors in host memory.
template <class... Families>
bool RegisterHostKernels(Families... families) {
  static_assert(sizeof...(Families) > 0,
                "tfplug: name the families of ops, such as tfplug::ArrayOps of "
                "tfplug/op_kernels/array.h");
  kernel_internal::DefineInitKernel();
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
// parts. The backend's stream must be defined before, because ops that compute
// on the host call it.
#define TFPLUG_REGISTER_BACKEND(backend, ...) \
  TFPLUG_INTERNAL_REGISTER_BACKEND(__COUNTER__, backend, __VA_ARGS__)
#define TFPLUG_INTERNAL_REGISTER_BACKEND(id, backend, ...) \
  TFPLUG_INTERNAL_REGISTER_BACKEND_(id, backend, __VA_ARGS__)
#define TFPLUG_INTERNAL_REGISTER_BACKEND_(id, backend, ...)                  \
  TFPLUG_INTERNAL_REFUSE_BACKEND(                                            \
      backend, kUndefined,                                                   \
      "tfplug: this backend is only declared here; define the class "        \
      "before TFPLUG_REGISTER_BACKEND")                                      \
  TFPLUG_INTERNAL_REFUSE_BACKEND(                                            \
      backend, kBase,                                                        \
      "tfplug: a backend must be publicly derived from "                     \
      "tfplug::Backend")                                                     \
  TFPLUG_INTERNAL_REFUSE_BACKEND(                                            \
      backend, kStream,                                                      \
      "tfplug: the stream's class is only declared here; define it, or "     \
      "include its header, before TFPLUG_REGISTER_BACKEND")                  \
  TFPLUG_INTERNAL_REFUSE_BACKEND(                                            \
      backend, kDevice,                                                      \
      "tfplug: Backend's argument must be the class of streams, such as "    \
      "tfplug::Backend<Stream>; this is the class of the device")            \
  TFPLUG_INTERNAL_REFUSE_BACKEND(                                            \
      backend, kAbstract,                                                    \
      "tfplug: this backend does not override every required function; the " \
      "compiler lists the missing ones (\"pure virtual\") below")            \
  TFPLUG_INTERNAL_REFUSE_BACKEND(                                            \
      backend, kConstructor,                                                 \
      "tfplug: a backend needs a public constructor without arguments")      \
  [[maybe_unused]] static const bool tfplug_backend_##id =                   \
      ::tfplug::op_kernels_internal::RegisterBackend<backend>(__VA_ARGS__)
#define TFPLUG_INTERNAL_REFUSE_BACKEND(backend, mistake, text)                \
  static_assert(::tfplug::op_kernels_internal::BackendMistakeOf<backend>() != \
                    ::tfplug::op_kernels_internal::BackendMistake::mistake,   \
                text);

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
