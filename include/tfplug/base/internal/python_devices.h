// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_PYTHON_DEVICES_H_
#define TFPLUG_BASE_INTERNAL_PYTHON_DEVICES_H_

#include <string>

#include "absl/status/status.h"
#include "tfplug/base/internal/python.h"

#pragma GCC visibility push(hidden)

// TensorFlow's Python code treats devices of plug-ins differently from GPUs
// where no plug-in is called. In a Python process, tfplug therefore wraps:
//
// * The function that numbers devices. Until 2.18, it numbers the devices of
//   all plug-ins together, but passes these numbers to each plug-in, which
//   rejects those beyond the number of its devices. In a process with two
//   plug-ins, no device could then be created.
// * The options of devices, if the platform says how often to poll events.
// * The configuration, in which set_visible_devices([], "TYPE") hides nothing.
// * The default devices of MirroredStrategy, which are CPUs without GPUs.
// * The export of tensors with DLPack, which knows CPUs and GPUs only: the
//   consumer receives a copy in host memory.
// * The strategies that look for GPUs only, which then use the CPU: a warning
//   states the remedy.
// * The raw ops of cuDNN, if the type is GPU: Keras calls them in layers such
//   as LSTM, and uses other ops only if the call fails. In a graph, it would
//   not.
// * The iterators of datasets that a function returns, if the type is GPU:
//   TensorFlow says that such a dataset is on the device, although it is not,
//   and has iterators for GPUs, whose elements would be taken for the device's
//   memory.
namespace tfplug::internal {

inline constexpr char kPythonDevices[] = R"py(
def function_of_options(context):
  """Returns the name of the function with the options of plug-ins' devices, and
  whether it is also that of GPUs, as before 2.18."""
  name = "_compute_pluggable_device_options"
  with_gpus = not hasattr(context.Context, name)
  return "_compute_gpu_options" if with_gpus else name, with_gpus

def number_devices_apart(device_type):
  import collections
  import functools
  from tensorflow.python.eager import context

  name, with_gpus = function_of_options(context)
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

def poll_every(microseconds):
  import functools
  from tensorflow.python.eager import context

  name, _ = function_of_options(context)
  function = getattr(context.Context, name)

  @functools.wraps(function)
  def compute(self):
    options = function(self)
    if not options.polling_active_delay_usecs:
      options.polling_active_delay_usecs = microseconds
    return options

  setattr(context.Context, name, compute)

def hide_invisible_devices(device_type):
  from tensorflow.python.eager import context
  original = context.Context.config

  def config(self):
    result = original.fget(self)
    # TensorFlow creates all devices of a type without a count.
    if device_type not in result.device_count:
      result.device_count[device_type] = 0
    return result

  context.Context.config = property(config, doc=original.__doc__)

def mirror_by_default(device_type):
  import functools
  from tensorflow.python.distribute import mirrored_strategy
  from tensorflow.python.framework import config
  original = mirrored_strategy.all_local_devices

  @functools.wraps(original)
  def all_local_devices(num_gpus=None):
    devices = original(num_gpus)
    if all(device.device_type == "CPU" for device in devices):
      devices = config.list_logical_devices(device_type)[:num_gpus] or devices
    return devices

  mirrored_strategy.all_local_devices = all_local_devices

def export_through_host(device_type):
  import functools
  from tensorflow.python import pywrap_tfe
  from tensorflow.python.framework import ops
  from tensorflow.python.ops import gen_array_ops

  def wrap(name):
    original = getattr(pywrap_tfe, name, None)
    if original is None:
      return

    @functools.wraps(original)
    def export(tensor, *args):
      if (isinstance(tensor, ops.EagerTensor) and
          f"/device:{device_type}:" in tensor.device):
        with ops.device("CPU:0"):
          tensor = gen_array_ops.identity(tensor)
      return original(tensor, *args)

    setattr(pywrap_tfe, name, export)

  wrap("TFE_ToDlpackCapsule")
  wrap("TFE_DlpackDevice")

def warn_of_unused_devices(device_type):
  import functools
  import inspect
  from tensorflow.python.distribute import collective_all_reduce_strategy
  from tensorflow.python.distribute import parameter_server_strategy
  from tensorflow.python.distribute import parameter_server_strategy_v2
  from tensorflow.python.framework import config
  from tensorflow.python.platform import tf_logging

  def wrap(extended, name, strategy, remedy):
    """Warns once after extended.name, in which the class selects its devices."""
    original = getattr(extended, name)
    if hasattr(original, "tfplug"):  # another plug-in has wrapped it
      original.tfplug.append(device_type)
      return
    types = [device_type]

    @functools.wraps(original)
    def select(self, *args, **kwargs):
      result = original(self, *args, **kwargs)
      given = inspect.signature(original).bind(self, *args, **kwargs).arguments
      unused = [f"{kind}:{i}" for kind in types
                for i, _ in enumerate(config.get_visible_devices(kind))]
      stock = (type(self) is extended and
               type(self._container_strategy()).__module__.startswith("tensorflow"))
      if (unused and stock and not given.get("compute_devices") and
          all("device:CPU" in device for device in self.worker_devices)):
        tf_logging.warning(
            "%s looks for GPUs only and trains on the CPU; it does not use %s. %s",
            strategy, ", ".join(unused), remedy.format(unused[0]))
        types.clear()
      return result

    select.tfplug = types
    setattr(extended, name, select)

  wrap(collective_all_reduce_strategy.CollectiveAllReduceExtended,
       "_initialize_strategy", "MultiWorkerMirroredStrategy",
       "Use tfplug.distribute.MultiWorkerMirroredStrategy.")
  wrap(parameter_server_strategy_v2.ParameterServerStrategyV2Extended,
       "_set_num_gpus", "ParameterServerStrategy",
       "Use tfplug.distribute.ParameterServerStrategy.")
  wrap(parameter_server_strategy.ParameterServerStrategyExtended,
       "_initialize_local", "CentralStorageStrategy",
       'Pass compute_devices=["{}"].')

def refuse_cudnn(device_type):
  import inspect
  from tensorflow.python.framework import errors
  from tensorflow.python.framework import kernels
  from tensorflow.python.ops import gen_cudnn_rnn_ops

  def wrap(op, function):
    def call(original, names, args, kwargs):
      found = kernels.get_registered_kernels_for_op(op).kernel
      if any(kernel.device_type == "GPU" for kernel in found):
        return original(*args, **kwargs)
      raise errors.InvalidArgumentError(
          None, None, f"No OpKernel was registered to support Op '{op}'")
    replace_function(inspect.unwrap(function), f"_tfplug_{op}", call)

  for op in ("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"):
    if device_type == "GPU" and hasattr(gen_cudnn_rnn_ops, op):
      wrap(op, getattr(gen_cudnn_rnn_ops, op))

def iterate_on_host(device_type):
  import functools
  from tensorflow.python.data.ops import dataset_ops
  from tensorflow.python.data.ops import iterator_ops
  from tensorflow.python.framework import ops
  from tensorflow.python.ops import gen_array_ops
  if device_type != "GPU":
    return
  original = iterator_ops.OwnedIterator._create_iterator

  @functools.wraps(original)
  def create(self, dataset):
    handle = dataset._variant_tensor
    if (isinstance(dataset, dataset_ops._VariantDataset) and
        isinstance(handle, ops.EagerTensor) and ":GPU:" in handle.device):
      with ops.device("CPU:0"):
        handle = gen_array_ops.identity(handle)
      dataset = dataset_ops._VariantDataset(handle, dataset.element_spec)
    return original(self, dataset)

  iterator_ops.OwnedIterator._create_iterator = create
)py";

// Adapts TensorFlow's Python code to devices of the type. Does nothing in a
// process without Python. TensorFlow must have been imported. Any thread;
// acquires Python's GIL.
inline absl::Status AdaptPythonToDevices(const std::string& device_type) {
  struct Step {
    const char* function;
    const char* consequence;
  };
  constexpr Step kSteps[] = {
      {"number_devices_apart",
       "A process can use the devices of one plug-in only"},
      {"hide_invisible_devices",
       "tf.config.set_visible_devices cannot hide all devices of the type; use "
       "tf.device(\"CPU:0\")"},
      {"mirror_by_default",
       "Pass the devices to tf.distribute.MirroredStrategy"},
      {"export_through_host",
       "Copy a tensor to the CPU before you export it with DLPack"},
      {"warn_of_unused_devices",
       "tf.distribute's strategies may use the CPU without a warning"},
      {"refuse_cudnn", "Pass use_cudnn=False to Keras' LSTM and GRU"},
      {"iterate_on_host", "Make datasets outside of tf.function"},
  };
  const std::string program = std::string(kPythonReplace) + kPythonDevices;
  absl::Status status;
  for (const Step& step : kSteps) {
    if (RunInPython(program,
                    std::string(step.function) + "(\"" + device_type + "\")")) {
      continue;
    }
    status.Update(absl::InternalError(
        std::string("cannot wrap the functions of TensorFlow's Python code (") +
        step.function + "); Python printed the reason above. " +
        step.consequence));
  }
  return status;
}

// Makes TensorFlow's event manager sleep so long between two looks at pending
// events (Platform::kPollMicroseconds). Threads, and processes without Python,
// as above.
inline absl::Status PollEvery(int microseconds) {
  if (RunInPython(kPythonDevices,
                  "poll_every(" + std::to_string(microseconds) + ")")) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      "cannot wrap TensorFlow's Python function that configures devices of "
      "plug-ins; Python printed the reason above. TensorFlow's event manager "
      "takes more of the processors' time");
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_PYTHON_DEVICES_H_
