// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_LAUNCH_GRAPH_H_
#define TFPLUG_PRIMITIVES_LAUNCH_GRAPH_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Work that a stream repeats with one call of its driver, such as a CUDA graph
// or a command buffer of OpenCL: launches with their operands' addresses.
// Threads: one at a time.
class LaunchGraph {
 public:
  virtual ~LaunchGraph() = default;

  // Enqueues the work once more, on the stream for which it was captured. After
  // a failure, the graph is destroyed and its launches are enqueued one by one.
  virtual absl::Status Launch() = 0;
};

// A graph; null if the device has none.
using NewLaunchGraph = absl::StatusOr<std::unique_ptr<LaunchGraph>>;

// Enqueues the work of a graph on a stream of the backend.
template <class StreamT>
using CapturedWork = std::function<absl::Status(StreamT& stream)>;

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_LAUNCH_GRAPH_H_
