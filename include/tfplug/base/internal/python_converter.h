// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_PYTHON_CONVERTER_H_
#define TFPLUG_BASE_INTERNAL_PYTHON_CONVERTER_H_

#include "absl/status/status.h"
#include "tfplug/base/internal/python.h"

#pragma GCC visibility push(hidden)

// TFLiteConverter loads a SavedModel into a session, in which TensorFlow places
// the variables on the device, and then reads them on the host. In a Python
// process, tfplug wraps the function that starts the conversion: it converts a
// copy of the model whose nodes are placed on the CPU.
namespace tfplug::internal {

inline constexpr char kPythonConverter[] = R"py(
def convert_on_cpu():
  import functools
  import os
  import tempfile
  from tensorflow.lite.python import convert

  # wrap_toco until 2.18
  module = getattr(convert, "wrap_converter", None) or convert.wrap_toco
  names = ("wrapped_convert", "wrapped_toco_convert")
  name = next(n for n in names if hasattr(module, n))
  original = getattr(module, name)
  if hasattr(original, "tfplug"):
    return
  flags_module = getattr(convert, "_model_flags_pb2", None)

  def copy_on_cpu(folder, copy):
    """Writes the SavedModel into the folder `copy`; links its other files."""
    from tensorflow.python.saved_model import loader_impl
    if not os.path.isdir(folder):
      raise ValueError(f"{folder} is not a local folder, but a SavedModel has "
                       "to be rewritten for the CPU before it is converted; "
                       "copy it to a local folder first")
    model = loader_impl.parse_saved_model(folder)
    for part in model.meta_graphs:
      for nodes in (part.graph_def.node, *(
          f.node_def for f in part.graph_def.library.function)):
        for node in nodes:
          node.device = "/device:CPU:0"
    for file in os.listdir(folder):
      if not file.startswith("saved_model."):
        os.symlink(os.path.abspath(os.path.join(folder, file)),
                   os.path.join(copy, file))
    with open(os.path.join(copy, "saved_model.pb"), "wb") as file:
      file.write(model.SerializeToString())

  @functools.wraps(original)
  def converted(model_flags, *args, **kwargs):
    flags = flags_module.ModelFlags.FromString(model_flags)
    if not flags.saved_model_dir:
      return original(model_flags, *args, **kwargs)
    with tempfile.TemporaryDirectory() as copy:
      copy_on_cpu(flags.saved_model_dir, copy)
      flags.saved_model_dir = copy
      return original(flags.SerializeToString(), *args, **kwargs)

  converted.tfplug = True
  setattr(module, name, converted)
)py";

// Makes TFLiteConverter place variables on the CPU. Does nothing in a process
// without Python. TensorFlow must have been imported. Any thread; acquires
// Python's GIL.
inline absl::Status ConvertOnCpu() {
  if (RunInPython(kPythonConverter, "convert_on_cpu()")) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      "cannot wrap the Python function that converts models to TensorFlow Lite;"
      " Python printed the reason above. Convert models in a process without "
      "this plug-in, or with tf.lite.TFLiteConverter.from_concrete_functions");
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_PYTHON_CONVERTER_H_
