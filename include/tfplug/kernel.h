// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_H_
#define TFPLUG_KERNEL_H_

// Everything a kernel is written with, and its registration. Asynchronous
// kernels, variables, ops of the plug-in's own and rendezvous have headers of
// their own in tfplug/kernel/; typed ops are in tfplug/ops/.
#include "tfplug/base/capability.h"
#include "tfplug/base/status.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/kernel.h"
#include "tfplug/kernel/register_kernel.h"
#include "tfplug/kernel/tensor.h"

#endif  // TFPLUG_KERNEL_H_
