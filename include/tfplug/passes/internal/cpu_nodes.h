// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_CPU_NODES_H_
#define TFPLUG_PASSES_INTERNAL_CPU_NODES_H_

#include "tfplug/base/internal/device_name.h"
#include "tfplug/graph/node.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

inline bool IsOnCpu(Node node) {
  return internal::DeviceTypeOf(node.device()) == "CPU";
}

// Moves a node to the CPU in the same task.
inline void MoveToCpu(Node node) {
  node.SetDevice(internal::CpuInSameTask(node.device()));
  node.RemoveAttr("_class");  // The colocation with nodes on the device.
}

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_CPU_NODES_H_
