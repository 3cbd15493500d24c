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
// kernel; calls of these ops are left unchanged. `by_values` has, for an
// optimizer's op, the op that computes new values (kernel/new_values.h), the
// attribute that becomes its option, and the types that it supports.
inline constexpr char kPythonUpdates[] = R"py(
def wrap_variable_updates(device_type, kept, by_values):
  import inspect
  from tensorflow.python.eager import context
  from tensorflow.python.eager import execute
  from tensorflow.python.framework import dtypes
  from tensorflow.python.framework import errors
  from tensorflow.python.framework import op_def_registry
  from tensorflow.python.framework import ops
  from tensorflow.python.ops import gen_array_ops as arrays
  from tensorflow.python.ops import gen_math_ops as math
  from tensorflow.python.ops import gen_resource_variable_ops as variables
  from tensorflow.python.ops import gen_state_ops as states
  from tensorflow.python.ops import gen_stateful_random_ops as random
  from tensorflow.python.ops import gen_training_ops as training

  marker = f"/device:{device_type}:"

  def on_copy(original, value, **arguments):
    """Runs the op on a copy in host memory; returns (result, new value). The
    copy shares no buffer, because some kernels write into shared ones."""
    with ops.device("CPU:0"):
      copy = variables.var_handle_op(dtype=value.dtype, shape=value.shape,
                                     shared_name=context.anonymous_name())
      variables.assign_variable_op(copy, arrays.deep_copy(value))
      result = original(copy, **arguments)
      return result, variables.read_variable_op(copy, value.dtype)

  def type_of(resource, arguments):
    """Returns the type of the variable."""
    data = resource._handle_data
    if data and data.shape_and_type:
      return dtypes.as_dtype(data.shape_and_type[0].dtype)
    for name in ("value", "updates", "grad", "delta"):
      if name in arguments:
        return ops.convert_to_tensor(arguments[name]).dtype
    if "algorithm" in arguments or "alg" in arguments:
      return dtypes.int64  # the state of a random generator
    return dtypes.as_dtype(arguments["dtype"])

  def wrap(module, op, function, update=None, read=None):
    """Wraps module.function and module.op, which create `op`. `update`
    computes the new value of the variable, `read` a result; without either,
    on_copy computes both."""
    def call(original, names, args, kwargs):
      arguments = dict(zip(names, args), **kwargs)
      resource = arguments.pop(names[0], None)
      if (len(args) > len(names) or not set(kwargs).issubset(names) or
          not isinstance(resource, ops.EagerTensor) or
          marker not in resource.device):
        return original(*args, **kwargs)
      dtype = type_of(resource, arguments)
      # Variants are on the host, where TensorFlow's own kernels update them.
      if (dtype == dtypes.variant or
          (op, dtype.as_datatype_enum) in kept):
        return original(*args, **kwargs)
      arguments.pop("name", None)
      with ops.device(resource.device):
        value = variables.read_variable_op(resource, dtype)
        if read is not None:
          return read(value, **arguments)
        if update is None:
          result, value = on_copy(original, value, **arguments)
          variables.assign_variable_op(resource, value)
          return result
        return variables.assign_variable_op(resource,
                                            update(value, **arguments))

    for name in (function, op):
      if hasattr(module, name):
        replace_function(inspect.unwrap(getattr(module, name)),
                         f"_tfplug_{device_type}_{op}", call)

  def wrap_training(function, op, values_op, option, types):
    """Wraps an op of gen_training_ops, which updates its first inputs. In a
    function, the graph pass replaces it."""
    def call(original, names, args, kwargs):
      arguments = dict(zip(names, args), **kwargs)
      resource = arguments.get(names[0])
      if (len(args) > len(names) or not set(kwargs).issubset(names) or
          not context.executing_eagerly() or
          not isinstance(resource, ops.EagerTensor) or
          marker not in resource.device):
        return original(*args, **kwargs)
      dtype = type_of(resource, arguments)
      if ((op, dtype.as_datatype_enum) in kept or
          dtype.as_datatype_enum not in types):
        return original(*args, **kwargs)
      handles, others = [], []
      with ops.device(resource.device):
        for arg in op_def_registry.get(op).input_arg:
          value = arguments[arg.name]
          if arg.type == dtypes.resource.as_datatype_enum:
            handles.append(value)
          else:
            others.append(ops.convert_to_tensor(
                value, dtype=dtype if arg.type_attr == "T" else
                dtypes.as_dtype(arg.type) if arg.type else None))
        values = execute.execute(
            values_op.encode(), len(handles), ctx=context.context(),
            inputs=[variables.read_variable_op(handle, dtype)
                    for handle in handles] + others,
            attrs=("op", op.encode(), "N", len(handles), "T",
                   dtype.as_datatype_enum, "Targs",
                   [x.dtype.as_datatype_enum for x in others], "option",
                   bool(arguments.get(option, defaults.get(option, False)))))
        for handle, value in zip(handles, values):
          variables.assign_variable_op(handle, value)
    defaults = {name: parameter.default for name, parameter in
                inspect.signature(getattr(training, function)).parameters.items()}
    for name in (function, op):
      replace_function(inspect.unwrap(getattr(training, name)),
                       f"_tfplug_{device_type}_{op}", call)

  def rows(scatter):
    """Returns an update that scatters rows with a TensorScatter... op."""
    def update(value, indices, updates):
      indices = ops.convert_to_tensor(indices)
      updates = ops.convert_to_tensor(updates, dtype=value.dtype)
      row = arrays.shape(value)[1:]
      if updates.shape.rank == 0:
        updates = arrays.broadcast_to(
            updates, arrays.concat_v2([arrays.shape(indices), row], 0))
      # TensorScatter... refuses a scalar.
      count = arrays.reshape(arrays.size(indices), [1])
      updates = arrays.reshape(updates, arrays.concat_v2([count, row], 0))
      return scatter(value, arrays.reshape(indices, [-1, 1]), updates)
    return update

  def elements(scatter):
    return lambda value, indices, updates, **_: scatter(value, indices, updates)

  def assign(compute):
    def update(variable, value):
      value = ops.convert_to_tensor(value, dtype=variable.dtype)
      if not value.shape.is_compatible_with(variable.shape):
        text = (f"Cannot update variable with shape {variable.shape.as_list()} "
                f"using a Tensor with shape {value.shape.as_list()}, shapes "
                "must be equal.")
        if not context.executing_eagerly():
          raise ValueError(text)
        raise errors.InvalidArgumentError(None, None, text)
      return compute(variable, value)
    return update

  wrap(variables, "AssignAddVariableOp", "assign_add_variable_op",
       assign(math.add_v2))
  wrap(variables, "AssignSubVariableOp", "assign_sub_variable_op",
       assign(math.sub))
  for kind in ("Add", "Sub", "Min", "Max", "Update", "Mul", "Div"):
    scatter = getattr(arrays, f"tensor_scatter_{kind.lower()}", None)
    wrap(variables, f"ResourceScatter{kind}",
         f"resource_scatter_{kind.lower()}", scatter and rows(scatter))
    wrap(states, f"ResourceScatterNd{kind}",
         f"resource_scatter_nd_{kind.lower()}", scatter and elements(scatter))
  wrap(arrays, "ResourceStridedSliceAssign", "resource_strided_slice_assign",
       lambda variable, **arguments: arrays.tensor_strided_slice_update(
           variable, **arguments))
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
  functions = {function.replace("_", ""): function for function in dir(training)
               if not function.endswith("_eager_fallback")}
  for op, row in by_values.items():
    function = functions.get(op.lower())
    if function and hasattr(training, op):
      wrap_training(function, op, *row)
)py";

using OpAndType = std::pair<std::string, DataType>;

// An op that updates variables, and the one that computes the new values.
struct UpdateByValues {
  std::string op, values_op, option;
  std::vector<DataType> types;
};

// Wraps the Python functions for the device type, except for the ops and types
// in `kept`. Does nothing in a process without Python, or if the environment
// variable TFPLUG_PYTHON_UPDATES is 0. TensorFlow must have been imported. Any
// thread; acquires Python's GIL.
inline absl::Status WrapPythonUpdates(
    const std::string& device_type, const std::vector<OpAndType>& kept,
    const std::vector<UpdateByValues>& by_values) {
  if (!IsTurnedOn("TFPLUG_PYTHON_UPDATES", true)) return absl::OkStatus();
  std::string call = "wrap_variable_updates(\"" + device_type + "\", {";
  for (const auto& [op, type] : kept) {
    call +=
        "(\"" + op + "\", " + std::to_string(static_cast<int>(type)) + "), ";
  }
  // A set, not a dictionary, even if it is empty.
  call += "(\"\", 0)}, {";
  for (const UpdateByValues& update : by_values) {
    call += "\"" + update.op + "\": (\"" + update.values_op + "\", \"" +
            update.option + "\", [";
    for (DataType type : update.types) {
      call += std::to_string(static_cast<int>(type)) + ", ";
    }
    call += "]), ";
  }
  if (RunInPython(std::string(kPythonReplace) + kPythonUpdates, call + "})")) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      "cannot wrap TensorFlow's Python functions that update variables on " +
      device_type +
      "; Python printed the reason above. Use v.assign(v + delta) instead of "
      "v.assign_add(delta)");
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_PYTHON_UPDATES_H_
