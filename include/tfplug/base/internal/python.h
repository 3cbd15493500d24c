// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_PYTHON_H_
#define TFPLUG_BASE_INTERNAL_PYTHON_H_

#include <dlfcn.h>

#include <string>

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Defines the functions of `program` in the process's Python, in a namespace of
// their own, and executes `call`. Returns false if that raises an exception,
// which Python prints; true in a process without Python. TensorFlow must have
// been imported. Any thread; acquires Python's GIL.
inline bool RunInPython(const std::string& program, const std::string& call) {
  const auto find = [](const char* name) { return dlsym(RTLD_DEFAULT, name); };
  const auto is_initialized =
      reinterpret_cast<int (*)()>(find("Py_IsInitialized"));
  const auto ensure = reinterpret_cast<int (*)()>(find("PyGILState_Ensure"));
  const auto release =
      reinterpret_cast<void (*)(int)>(find("PyGILState_Release"));
  const auto run =
      reinterpret_cast<int (*)(const char*)>(find("PyRun_SimpleString"));
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

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_PYTHON_H_
