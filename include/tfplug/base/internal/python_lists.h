// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_PYTHON_LISTS_H_
#define TFPLUG_BASE_INTERNAL_PYTHON_LISTS_H_

#include <string>

#include "absl/status/status.h"
#include "tfplug/base/internal/python.h"

#pragma GCC visibility push(hidden)

// Lists of tensors in eager mode. TensorFlow 2.19 to 2.21 export no function with
// which a kernel can read a list to add or clear its tensors, earlier ones crash if
// it is a map of tensors, which kernels cannot tell from a list, and no release has
// lists of bool on a plug-in's device. Graph passes replace the ops in functions
// (LowerListGradients, CastBoolLists); an eager call runs on the CPU instead, and
// TensorFlow copies the tensors.
namespace tfplug::internal {

inline constexpr char kPythonLists[] = R"py(
def compute_lists_on_host(device_type):
  import inspect
  from tensorflow.python.eager import context
  from tensorflow.python.framework import dtypes
  from tensorflow.python.framework import ops
  from tensorflow.python.ops import gen_array_ops as arrays
  from tensorflow.python.ops import gen_list_ops as lists
  from tensorflow.python.ops import gen_math_ops as math

  marker = f"/device:{device_type}:"

  def wrap(module, function, op, argument, dtype):
    """Runs module.function, which is also module.op, on the CPU if its argument
    has the type or is it. Without tf.device, TensorFlow would choose the device."""
    def call(original, names, args, kwargs):
      first = dict(zip(names, args), **kwargs).get(argument)
      while isinstance(first, (list, tuple)) and first:
        first = first[0]
      kind = dtypes.bool if isinstance(first, bool) else getattr(
          first, "dtype", first)
      if (dtype == kind and
          context.executing_eagerly() and
          (marker in getattr(first, "device", "") or
           marker in (context.context().device_name or marker))):
        with ops.device("CPU:0"):
          return original(*args, **kwargs)
      return original(*args, **kwargs)

    for name in (function, op):
      replace_function(inspect.unwrap(getattr(module, name)),
                       f"_tfplug_{device_type}_{op}", call)

  wrap(math, "add_n", "AddN", "inputs", dtypes.variant)
  wrap(arrays, "zeros_like", "ZerosLike", "x", dtypes.variant)
  for function, argument in (("from_tensor", "tensor"), ("set_item", "item"),
                             ("get_item", "element_dtype"),
                             ("pop_back", "element_dtype"),
                             ("stack", "element_dtype"),
                             ("gather", "element_dtype")):
    op = "TensorList" + function.title().replace("_", "")
    wrap(lists, "tensor_list_" + function, op, argument, dtypes.bool)
)py";

// Wraps TensorFlow's Python functions of lists for the device type. Does nothing
// in a process without Python. TensorFlow must have been imported. Any thread;
// acquires Python's GIL.
inline absl::Status ComputeListsOnHost(const std::string& device_type) {
  if (RunInPython(std::string(kPythonReplace) + kPythonLists,
                  "compute_lists_on_host(\"" + device_type + "\")")) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      "cannot wrap TensorFlow's Python functions of lists; Python printed the "
      "reason above. Use tf.function for lists of bool, and for the gradients "
      "of lists");
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_PYTHON_LISTS_H_
