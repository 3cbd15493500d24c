// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_PYTHON_ITERATORS_H_
#define TFPLUG_BASE_INTERNAL_PYTHON_ITERATORS_H_

#include "absl/status/status.h"
#include "tfplug/base/internal/python.h"

#pragma GCC visibility push(hidden)

// Python code that frees iterators of tf.data on a thread of its own. An iterator
// waits there for a thread that tunes it, which now and then misses that it shall
// end (docs/measured/tensorflow_behavior.md, "Data"): fit() and loops over a
// dataset took 0.3 seconds longer, about every second time on examples/cpu_sim.
namespace tfplug::internal {

inline constexpr char kPythonIterators[] = R"py(
def free_iterators_elsewhere():
  import atexit
  import queue
  import threading
  from tensorflow.python.data.ops import iterator_ops

  if hasattr(iterator_ops.OwnedIterator, "__del__"):  # another plug-in's
    return
  unused = queue.SimpleQueue()  # which __del__ may use at any time

  def free():
    while unused.get() is not None:
      pass

  worker = threading.Thread(target=free, name="tfplug-iterators", daemon=True)
  worker.start()

  @atexit.register
  def finish():
    unused.put(None)
    worker.join()

  def __del__(self):
    resource = self.__dict__.pop("_iterator_resource", None)
    if resource is not None and worker.is_alive():  # not in a forked child
      unused.put(resource)

  iterator_ops.OwnedIterator.__del__ = __del__
)py";

// Makes Python do so. Does nothing in a process without Python. TensorFlow must
// have been imported. Any thread; acquires Python's GIL.
inline absl::Status FreeIteratorsElsewhere() {
  if (RunInPython(kPythonIterators, "free_iterators_elsewhere()")) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      "cannot extend TensorFlow's Python class of iterators; Python printed "
      "the reason above. fit() and loops over datasets may end late");
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_PYTHON_ITERATORS_H_
