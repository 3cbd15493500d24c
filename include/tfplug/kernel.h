// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_H_
#define TFPLUG_KERNEL_H_

// Kernels and their registration. Asynchronous kernels, variables, custom ops
// and the rendezvous have separate headers in tfplug/kernel/; typed ops are in
// tfplug/ops/.
#include "tfplug/base/capability.h"
#include "tfplug/base/status.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/kernel.h"
#include "tfplug/kernel/register_kernel.h"
#include "tfplug/kernel/tensor.h"

#endif  // TFPLUG_KERNEL_H_
