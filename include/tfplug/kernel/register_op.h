// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_REGISTER_OP_H_
#define TFPLUG_KERNEL_REGISTER_OP_H_

#include <utility>

#include "tfplug/kernel/internal/init_kernel.h"
#include "tfplug/kernel/internal/init_op.h"
#include "tfplug/kernel/op_def.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Adds an op to the ops that this library registers, before its kernels, when
// TensorFlow loads it. Always returns true.
inline bool RegisterOp(OpDef def) {
  kernel_internal::DefineInitKernel();
  kernel_internal::init_ops = &kernel_internal::InitOps;
  kernel_internal::RegisteredOpDefs().push_back(std::move(def));
  return true;
}

}  // namespace tfplug

// TFPLUG_REGISTER_OP(tfplug::OpDef("MyOp").Input("x: float")...);
//
// Use it at namespace scope, in any number of files of the library. It defines
// TF_InitKernel.
#define TFPLUG_REGISTER_OP(...) \
  TFPLUG_INTERNAL_REGISTER_OP(__COUNTER__, __VA_ARGS__)
#define TFPLUG_INTERNAL_REGISTER_OP(id, ...) \
  TFPLUG_INTERNAL_REGISTER_OP_(id, __VA_ARGS__)
#define TFPLUG_INTERNAL_REGISTER_OP_(id, ...)         \
  [[maybe_unused]] static const bool tfplug_op_##id = \
      ::tfplug::RegisterOp(__VA_ARGS__)

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_REGISTER_OP_H_
