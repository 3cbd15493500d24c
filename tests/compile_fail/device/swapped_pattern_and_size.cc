// SPDX-License-Identifier: Apache-2.0
// expect: BytePattern
#include "minimal_device.h"

absl::Status Clear(minimal::Stream& stream, tfplug::DeviceMemory memory) {
  return stream.Memset(memory, 64, tfplug::BytePattern{0});
}
