// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_PYTHON_UPDATES_H_
#define TFPLUG_BASE_INTERNAL_PYTHON_UPDATES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/internal/environment.h"
#include "tfplug/base/internal/python.h"

#pragma GCC visibility push(hidden)

// Updates of variables in Python. TensorFlow 2.19 to 2.21 export no function
// with which a kernel can update a variable, and no release exports one for
// slices or for the states of random generators. LowerVariableUpdates rewrites
// graphs, but graph passes receive neither an eager call such as
// step.assign_add(1) nor a function of fewer than four nodes, and TensorFlow
// places ops, which fails without a kernel, before a pass runs. In a Python
// process, tfplug therefore wraps each Python function that creates such an op.
// For a variable on this device, the wrapper reads the value, computes the new
// one and assigns it; the device has kernels for all three. Calls for other
// devices are unchanged.
//
// Unlike the op, the sequence is not atomic: if two threads update one variable
// at the same time, an update can be lost.
namespace tfplug::internal {

// Defines the Python function that wraps TensorFlow's functions. `kept` is a
// set of pairs of an op and a variable's type for which the device has a
// kernel; calls of these ops are left unchanged.
inline constexpr char kPythonUpdates[] = R"py(
def wrap_variable_updates(device_type, kept):
  import functools
  from tensorflow.python.eager import context
  from tensorflow.python.framework import dtypes
  from tensorflow.python.framework import ops
  from tensorflow.python.ops import gen_array_ops as arrays
  from tensorflow.python.ops import gen_math_ops as math
  from tensorflow.python.ops import gen_resource_variable_ops as variables
  from tensorflow.python.ops import gen_state_ops as states
  from tensorflow.python.ops import gen_stateful_random_ops as random

  marker = f"/device:{device_type}:"

  def on_copy(original, value, args, kwargs):
    """Runs the op on a copy in host memory; returns (result, new value)."""
    with ops.device("CPU:0"):
      copy = variables.var_handle_op(dtype=value.dtype, shape=value.shape,
                                     shared_name=context.anonymous_name())
      variables.assign_variable_op(copy, arrays.identity(value))
      result = original(copy, *args, **kwargs)
      return result, variables.read_variable_op(copy, value.dtype)

  def wrap(module, op, function, update=None, read=None):
    """Wraps module.function, which creates `op`. `update` computes the new
    value of the variable, `read` a result; without either, on_copy computes
    both."""
    original = getattr(module, function, None)
    if original is None:
      return

    @functools.wraps(original)
    def call(*args, **kwargs):
      names = [n for n in ("resource", "ref") if n in kwargs]
      resource = kwargs[names[0]] if names else args[0]
      types = isinstance(resource, ops.EagerTensor) and (
          marker in resource.device) and (
          resource._handle_data and resource._handle_data.shape_and_type)
      if not types or (op, types[0].dtype) in kept:
        return original(*args, **kwargs)
      dtype = dtypes.as_dtype(types[0].dtype)
      rest = args if names else args[1:]
      options = {k: v for k, v in kwargs.items() if k not in names + ["name"]}
      with ops.device(resource.device):
        value = variables.read_variable_op(resource, dtype)
        if read is not None:
          return read(value, *rest, **options)
        if update is None:
          result, value = on_copy(original, value, rest, options)
          variables.assign_variable_op(resource, value)
          return result
        value = update(value, *rest, **options)
        return variables.assign_variable_op(resource, value)

    setattr(module, function, call)

  def rows(scatter):
    """Returns an update that scatters rows with a TensorScatter... op."""
    def update(value, indices, updates):
      indices = ops.convert_to_tensor(indices)
      updates = ops.convert_to_tensor(updates, dtype=value.dtype)
      if updates.shape.rank == 0:
        shape = arrays.concat_v2(
            [arrays.shape(indices), arrays.shape(value)[1:]], 0)
        updates = arrays.broadcast_to(updates, shape)
      return scatter(value, arrays.expand_dims(indices, -1), updates)
    return update

  def elements(scatter):
    return lambda value, indices, updates, use_locking=True, **_: (
        scatter(value, indices, updates))

  wrap(variables, "AssignAddVariableOp", "assign_add_variable_op", math.add_v2)
  wrap(variables, "AssignSubVariableOp", "assign_sub_variable_op", math.sub)
  for kind in ("Add", "Sub", "Min", "Max", "Update", "Mul", "Div"):
    scatter = getattr(arrays, f"tensor_scatter_{kind.lower()}", None)
    wrap(variables, f"ResourceScatter{kind}",
         f"resource_scatter_{kind.lower()}", scatter and rows(scatter))
    wrap(states, f"ResourceScatterNd{kind}",
         f"resource_scatter_nd_{kind.lower()}", scatter and elements(scatter))
  wrap(arrays, "ResourceStridedSliceAssign", "resource_strided_slice_assign",
       arrays.tensor_strided_slice_update)
  wrap(variables, "ResourceGather", "resource_gather",
       read=lambda value, indices, dtype=None, batch_dims=0, **_: (
           arrays.gather_v2(value, indices, batch_dims, batch_dims=batch_dims)))
  wrap(variables, "ResourceGatherNd", "resource_gather_nd",
       read=lambda value, indices, dtype=None: (
           arrays.gather_nd(value, indices)))
  for function in dir(random):
    if (function.startswith(("rng_", "stateful_")) and
        not function.endswith("_eager_fallback")):
      op = "".join(word.capitalize() for word in function.split("_"))
      wrap(random, op, function)
)py";

using OpAndType = std::pair<std::string, DataType>;

// Wraps the Python functions for the device type, except for the ops and types
// in `kept`. Does nothing in a process without Python, or if the environment
// variable TFPLUG_PYTHON_UPDATES is 0. TensorFlow must have been imported. Any
// thread; acquires Python's GIL.
inline absl::Status WrapPythonUpdates(const std::string& device_type,
                                      const std::vector<OpAndType>& kept) {
  if (!IsTurnedOn("TFPLUG_PYTHON_UPDATES", true)) return absl::OkStatus();
  std::string call = "wrap_variable_updates(\"" + device_type + "\", {";
  for (const auto& [op, type] : kept) {
    call +=
        "(\"" + op + "\", " + std::to_string(static_cast<int>(type)) + "), ";
  }
  if (RunInPython(kPythonUpdates, call + "})")) return absl::OkStatus();
  return absl::InternalError(
      "cannot wrap TensorFlow's Python functions that update variables on " +
      device_type +
      "; Python printed the reason above. Use v.assign(v + delta) instead of "
      "v.assign_add(delta)");
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_PYTHON_UPDATES_H_
