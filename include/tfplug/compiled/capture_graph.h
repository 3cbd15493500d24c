// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_CAPTURE_GRAPH_H_
#define TFPLUG_COMPILED_CAPTURE_GRAPH_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "tfplug/base/internal/fork_check.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/primitives/launch_graph.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace compiled_internal {

template <class Recording, class StreamT>
class RecordedGraph final : public LaunchGraph {
 public:
  explicit RecordedGraph(StreamT& stream)
      : stream_(stream),
        lifetime_(stream.lifetime()),
        removals_(stream.removals()) {
    internal::ForkCheck::FailInForkedChildren();
  }

  absl::Status Capture(const CapturedWork<StreamT>& work) {
    TFPLUG_RETURN_IF_ERROR(recording_.Begin(stream_));
    StreamT recorder(stream_.machine(), &recording_);
    TFPLUG_RETURN_IF_ERROR(work(recorder));
    return recording_.End();
  }

  // The operands exist, so that their addresses stand for the memory that was
  // recorded if none was removed until now.
  absl::Status Launch() override {
    if (lifetime_.expired()) {
      return absl::FailedPreconditionError("the stream is destroyed");
    }
    if (stream_.removals() != removals_) {
      return absl::FailedPreconditionError(
          "memory was released since the graph was captured");
    }
    TFPLUG_RETURN_IF_ERROR(internal::ForkCheck::Check("the graph"));
    return recording_.Launch(stream_);
  }

 private:
  StreamT& stream_;
  const std::weak_ptr<void> lifetime_;
  const uint64_t removals_;  // before the first address is looked up
  Recording recording_;
};

}  // namespace compiled_internal

// Implements Backend::Capture for a BufferStream, with the author's class
//
//   class Recording {  // such as a command buffer
//     absl::Status Begin(Stream& stream);   // for launches on this stream
//     absl::Status End();
//     absl::Status Launch(Stream& stream);  // enqueues the commands once more
//   };
//
// which TimelineStream has as well: TimelineStream::Graph. The work is enqueued on
// a Stream(stream.machine(), &recording), which is not initialized: it adds
// kernels to the recording, and all that cannot be recorded fails. The graph
// fails once the stream is destroyed or memory of the device is released, because
// an address may then stand for another buffer.
template <class Recording, class StreamT>
NewLaunchGraph CaptureGraph(StreamT& stream,
                            const CapturedWork<StreamT>& work) {
  auto graph =
      std::make_unique<compiled_internal::RecordedGraph<Recording, StreamT>>(
          stream);
  TFPLUG_RETURN_IF_ERROR(graph->Capture(work));
  return graph;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_CAPTURE_GRAPH_H_
