// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_STREAM_COPY_OPS_H_
#define TFPLUG_KERNEL_STREAM_COPY_OPS_H_

#include "tfplug/kernel/op_def.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The ops that the pass CopyOnStream (passes/copy_on_stream.h) creates, whose
// kernels are in op_kernels/stream_copy.h: copies of a tensor from host memory
// to the device, and back. The names carry the version of the ops.
inline constexpr char kToDeviceOp[] = "TfplugToDeviceV1";
inline constexpr char kToHostOp[] = "TfplugToHostV1";

inline OpDef StreamCopyOp(const char* op) {
  return OpDef(op).Attr("T: type").Input("x: T").Output("y: T").AllowExisting();
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_STREAM_COPY_OPS_H_
