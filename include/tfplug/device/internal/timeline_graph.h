// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_TIMELINE_GRAPH_H_
#define TFPLUG_DEVICE_INTERNAL_TIMELINE_GRAPH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/device/internal/batches.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// The recording (CaptureGraph) of a TimelineStream: commands with their
// arguments, in as many batches as the arguments need. Threads: one at a time.
template <class StreamT, class Machine>
class TimelineGraph {
  using Batches = device_internal::Batches<Machine>;
  using Recording = typename Batches::Recording;

 public:
  absl::Status Begin(StreamT& stream) {
    machine_ = &stream.machine();
    return AddRecording();
  }
  absl::Status End() { return machine_->EndGraph(recordings_.back()->batch); }
  absl::Status Launch(StreamT& stream) { return stream.Execute(recordings_); }

  // Does the same as TimelineStream::Enqueue.
  template <class Record>
  absl::Status Add(uint64_t argument_size, const Record& record) {
    if (argument_size > Batches::kArgumentsSize) {
      return Batches::TooManyArguments();
    }
    if (recordings_.back()->arguments_used + argument_size >
        Batches::kArgumentsSize) {
      TFPLUG_RETURN_IF_ERROR(End());
      TFPLUG_RETURN_IF_ERROR(AddRecording());
    }
    Recording& recording = *recordings_.back();
    typename Batches::Block block;
    TFPLUG_RETURN_IF_ERROR(
        Batches::AddBlock(*machine_, recording, argument_size, block));
    recording.batch.Barrier();
    record(recording.batch, block);
    return absl::OkStatus();
  }

 private:
  absl::Status AddRecording() {
    recordings_.push_back(std::make_shared<Recording>());
    return machine_->BeginGraph(recordings_.back()->batch);
  }

  Machine* machine_ = nullptr;
  std::vector<std::shared_ptr<Recording>> recordings_;
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_TIMELINE_GRAPH_H_
