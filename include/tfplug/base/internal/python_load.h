// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_PYTHON_LOAD_H_
#define TFPLUG_BASE_INTERNAL_PYTHON_LOAD_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "tfplug/base/internal/os.h"
#include "tfplug/base/internal/python.h"

#pragma GCC visibility push(hidden)

// TensorFlow aborts if a platform is registered twice: if a library is loaded
// again, as when a cell of a notebook is run again, or if it is both in
// site-packages/tensorflow-plugins and loaded from where it was built. No
// plug-in could prevent that in its entry points, so in a Python process tfplug
// wraps the function that loads plug-ins.
namespace tfplug::internal {

inline constexpr char kPythonLoad[] = R"py(
def load_once(path, platform):
  import functools
  import os
  import re
  from tensorflow.python.framework import load_library
  from tensorflow.python.platform import tf_logging

  module = load_library.py_tf
  load = module.TF_LoadPluggableDeviceLibrary
  path = os.path.realpath(path)

  def registers_platform(library):
    with open(library, "rb") as file:
      data = file.read()
    return b"\0SE_InitPlugin\0" in data and re.search(
        rb"(?<![A-Z_])" + platform + rb"\0", data)

  @functools.wraps(load)
  def load_other(library):
    other = os.path.realpath(library)
    if other == path:
      tf_logging.warning("%s is already loaded; to load another build of it, "
                         "restart Python", path)
      return None
    if os.path.isfile(other) and registers_platform(other):
      raise RuntimeError(
          f"{library} cannot be loaded: {path} has registered the platform "
          f"{platform.decode()}, and TensorFlow aborts if it is registered "
          "again; uninstall or remove one of the two, and restart Python")
    return load(library)

  module.TF_LoadPluggableDeviceLibrary = load_other
)py";

// Makes Python refuse to load this library again, or one of the same platform. Does
// nothing in a process without Python. TensorFlow must have been imported. Any
// thread; acquires Python's GIL.
inline absl::Status RefuseSecondLoad(const std::string& platform) {
  static constexpr char kHere = 0;
  const char* const library = LibraryPath(&kHere);
  if (library == nullptr) return absl::OkStatus();
  const std::string path = absl::BytesToHexString(library);
  if (RunInPython(kPythonLoad,
                  "import os; load_once(os.fsdecode(bytes.fromhex("
                  "\"" +
                      path + "\")), b\"" + platform + "\")")) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      "cannot wrap TensorFlow's Python function that loads plug-ins; Python "
      "printed the reason above. Load this library only once");
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_PYTHON_LOAD_H_
