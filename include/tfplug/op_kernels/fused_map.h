// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_FUSED_MAP_H_
#define TFPLUG_OP_KERNELS_FUSED_MAP_H_

#include "tfplug/kernel/fused_map_ops.h"
#include "tfplug/kernel/register_op.h"
#include "tfplug/op_kernels/fused_map_kernel.h"
#include "tfplug/op_kernels/fused_reduce.h"
#include "tfplug/op_kernels/matmul_map_kernel.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Registers the ops of FuseElementwise (passes/fuse_elementwise.h) and their
// kernels: with this family in the list, the device's graphs are fused.
inline void FusedMapOps(const Registrar& registrar) {
  RegisterOp(FusedMapOp());
  registrar.Add<op_kernels_internal::FusedMapKernel>(KernelDef(kFusedMapOp));
  RegisterOp(FusedReduceOp());
  registrar.Add<op_kernels_internal::FusedReduceKernel>(
      KernelDef(kFusedReduceOp).HostMemory("axes"));
  RegisterOp(FusedMatMulOp());
  registrar.Add<op_kernels_internal::MatMulMapKernel>(
      KernelDef(kFusedMatMulOp));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_FUSED_MAP_H_
