// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_MEMORY_LABELS_H_
#define TFPLUG_KERNEL_MEMORY_LABELS_H_

#pragma GCC visibility push(hidden)

namespace tfplug {

// The label (KernelDef::Label) of kernels that have all tensors in host memory
// although the op's other kernels do not: see passes/keep_conditions_on_host.h.
inline constexpr char kOnHostLabel[] = "tfplug_on_host";

// The label of kernels that have int32 tensors in device memory although
// TensorFlow's kernels do not: see passes/copy_on_stream.h.
inline constexpr char kOnDeviceLabel[] = "tfplug_on_device";

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_MEMORY_LABELS_H_
