// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_PYTHON_H_
#define TFPLUG_BASE_INTERNAL_PYTHON_H_

#include <string>

#include "tfplug/base/internal/os.h"

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Defines the functions of `program` in the process's Python, in a namespace of
// their own, and executes `call`. Returns false if that raises an exception,
// which Python prints; true in a process without Python. TensorFlow must have
// been imported. Any thread; acquires Python's GIL.
inline bool RunInPython(const std::string& program, const std::string& call) {
  const auto is_initialized =
      reinterpret_cast<int (*)()>(FindGlobal("Py_IsInitialized"));
  const auto ensure =
      reinterpret_cast<int (*)()>(FindGlobal("PyGILState_Ensure"));
  const auto release =
      reinterpret_cast<void (*)(int)>(FindGlobal("PyGILState_Release"));
  const auto run =
      reinterpret_cast<int (*)(const char*)>(FindGlobal("PyRun_SimpleString"));
  if (is_initialized == nullptr || ensure == nullptr || release == nullptr ||
      run == nullptr || is_initialized() == 0) {
    return true;
  }
  // PyRun_SimpleString runs code in the user's __main__, so the program runs in
  // exec with a namespace of its own.
  const std::string text = "exec(r'''" + program + call + "\n''', {})";
  const int state = ensure();
  const int result = run(text.c_str());
  release(state);
  return result == 0;
}

// Defines the Python function after_import.
inline constexpr char kPythonAfterImport[] = R"py(
def after_import(name, function):
  """Calls function(module) once the module is imported. Prints an exception, which
  would make the import fail."""
  import importlib.util
  import sys
  import traceback

  def adapt(module):
    try:
      function(module)
    except Exception:
      print(f"tfplug: cannot adapt {name}, which runs as it is:", file=sys.stderr)
      traceback.print_exc()

  if name in sys.modules:
    return adapt(sys.modules[name])

  class Finder:
    def find_spec(self, found, path=None, target=None):
      if found != name:
        return None
      sys.meta_path.remove(self)
      spec = importlib.util.find_spec(name)
      if spec is not None:
        execute = spec.loader.exec_module
        def exec_module(module):
          execute(module)
          adapt(module)
        spec.loader.exec_module = exec_module
      return spec

  sys.meta_path.insert(0, Finder())
)py";

// Defines the Python function replace_function, which replaces the code of one
// of TensorFlow's functions. Other modules have imported such a function under
// names of their own, so that replacing a module's attribute misses calls.
inline constexpr char kPythonReplace[] = R"py(
def replace_function(function, name, call):
  """Makes all references to `function` call call(original, names of its
  parameters, args, kwargs), which is stored under `name`."""
  import inspect
  import types
  original = types.FunctionType(
      function.__code__, function.__globals__, function.__name__,
      function.__defaults__, function.__closure__)
  original.__kwdefaults__ = function.__kwdefaults__
  # Another plug-in may have replaced the code: the signature stays.
  function.__signature__ = inspect.signature(function)
  names = tuple(function.__signature__.parameters)
  function.__globals__[name] = lambda args, kwargs: call(
      original, names, args, kwargs)
  defined = {}
  exec(f"def {function.__name__}(*args, **kwargs):\n"
       f"  return {name}(args, kwargs)", defined)
  function.__defaults__ = function.__kwdefaults__ = None
  function.__code__ = defined[function.__name__].__code__
)py";

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_PYTHON_H_
