// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_PYTHON_DEVICES_H_
#define TFPLUG_BASE_INTERNAL_PYTHON_DEVICES_H_

#include "absl/status/status.h"
#include "tfplug/base/internal/python.h"

#pragma GCC visibility push(hidden)

// Until 2.18, TensorFlow's Python code numbers the devices of all plug-ins
// together, but passes these numbers to each plug-in, which rejects those
// beyond the number of its devices. In a process with two plug-ins, no device
// could then be created. No plug-in receives the numbers before they are
// checked, so in a Python process tfplug wraps the function that computes them.
namespace tfplug::internal {

inline constexpr char kPythonDevices[] = R"py(
def number_devices_apart():
  import collections
  import functools
  from tensorflow.python.eager import context

  # 2.18 has a function for plug-ins; in earlier releases they are like GPUs.
  name = "_compute_pluggable_device_options"
  with_gpus = not hasattr(context.Context, name)
  if with_gpus:
    name = "_compute_gpu_options"
  function = getattr(context.Context, name, None)
  if function is None or hasattr(function, "tfplug"):
    return

  @functools.wraps(function)
  def compute(self):
    options = function(self)
    if ":" in options.visible_device_list:  # SIM:0 and so on, since 2.19
      return options
    counts, visible = collections.Counter(), collections.defaultdict(list)
    for device in self._physical_devices:
      kind = device.device_type
      is_gpu = with_gpus and kind == "GPU"
      if not is_gpu and device not in self._pluggable_devices:
        continue
      if device in self._visible_device_list:
        visible[kind].append(str(counts[kind]))
      counts[kind] += 1
    lists = {tuple(numbers) for numbers in visible.values()}
    if len(counts) > 1 and all(len(visible[kind]) == counts[kind]
                               for kind in counts):
      options.visible_device_list = ""  # all devices
    elif len(counts) > 1 and len(lists) == 1:  # it applies to each type
      options.visible_device_list = ",".join(lists.pop())
    return options

  compute.tfplug = True
  setattr(context.Context, name, compute)
)py";

// Makes TensorFlow's Python code number the devices of each plug-in separately.
// Does nothing in a process without Python. TensorFlow must have been imported.
// Any thread; acquires Python's GIL.
inline absl::Status NumberDevicesApart() {
  if (RunInPython(kPythonDevices, "number_devices_apart()")) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      "cannot wrap TensorFlow's Python function that numbers devices; Python "
      "printed the reason above. A process can use the devices of one plug-in "
      "only");
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_PYTHON_DEVICES_H_
