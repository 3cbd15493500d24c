// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_LIKE_GRAPH_H_
#define CUDA_LIKE_GRAPH_H_

#include <tfplug/primitives/launch_graph.h>

#include <memory>
#include <mutex>
#include <set>

#include "absl/status/status.h"
#include "driver/types.h"

namespace cuda_like {

class Stream;

// The CUDA graphs of one stream. They are captured on another stream: threads
// may enqueue other work on this one in the meantime. Threads: any.
class Graphs : public std::enable_shared_from_this<Graphs> {
 public:
  explicit Graphs(Stream& stream);
  ~Graphs();

  // Implements Backend::Capture.
  tfplug::NewLaunchGraph Capture(const tfplug::CapturedWork<Stream>& work);

  // Destroys all graphs, before the stream is destroyed. LaunchGraphs may live
  // longer; they fail.
  void Destroy();

 private:
  class Graph;

  // Creates the stream on which graphs are captured.
  absl::Status Init();
  absl::Status InitBlas();
  absl::StatusOr<CUgraphExec> CaptureExec(
      const tfplug::CapturedWork<Stream>& work);
  absl::Status Launch(CUgraphExec graph);
  // Destroys a graph once the stream has run it.
  void Destroy(CUgraphExec graph);

  Stream& stream_;
  std::mutex mutex_;
  bool is_destroyed_ = false;
  std::unique_ptr<Stream> capturing_;
  CUdeviceptr workspace_ = 0;  // of cuBLAS
  std::set<CUgraphExec> graphs_;
};

}  // namespace cuda_like

#endif  // CUDA_LIKE_GRAPH_H_
