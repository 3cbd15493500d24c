// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_BATCHES_H_
#define TFPLUG_DEVICE_INTERNAL_BATCHES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/device/buffer_stream.h"
#include "tfplug/device/internal/timeline.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// The batches of a stream: the one that is recorded, those that the device works
// on, and those that can be recorded anew. The machine's lock guards all of it.
template <class Machine>
class Batches {
  using Buffer = typename Machine::Buffer;
  using Batch = typename Machine::Batch;
  using Counter = typename Machine::Counter;

 public:
  using Recording = device_internal::Recording<Buffer, Batch, Counter>;
  using Commands = TimelineCommands<Recording, Counter>;
  using Point = typename Commands::Point;
  using SharedTimeline = std::shared_ptr<Timeline<Counter>>;

  // Memory of a batch that host and device access.
  struct Block {
    char* host;
    typename Machine::Location at;
  };

  static constexpr uint32_t kMostTimes = 64;            // of a batch
  static constexpr uint64_t kArgumentsSize = 64 << 10;  // of a batch

  Batches(Machine& machine, SharedTimeline timeline)
      : machine_(machine), timeline_(std::move(timeline)) {}

  bool IsOpen() const { return open_ != nullptr; }
  // Returns whether the open batch, or a new one, has room for a command's arguments.
  bool HasRoomFor(uint64_t argument_size) const {
    const uint64_t used = open_ == nullptr ? 0 : open_->arguments_used;
    return used + argument_size <= kArgumentsSize;
  }

  // Records a command for whose arguments there is room: calls record(batch,
  // block).
  template <class Record>
  ABSL_ATTRIBUTE_ALWAYS_INLINE absl::Status Add(uint64_t argument_size,
                                                const Record& record) {
    TFPLUG_RETURN_IF_ERROR(Open());
    Recording& open = *open_;
    Block block = {};
    if (argument_size != 0) {
      TFPLUG_RETURN_IF_ERROR(AddBlock(machine_, open, argument_size, block));
    }
    ++open.commands;
    open.batch.Barrier();
    Point** const timed = CommandTimer<Commands>::Next();
    if (ABSL_PREDICT_TRUE(timed == nullptr)) {
      record(open.batch, block);
      return absl::OkStatus();
    }
    *timed = NewTimed();
    open.batch.WriteTime((*timed)->slot);
    record(open.batch, block);
    open.batch.WriteTime((*timed)->slot + 1);
    return absl::OkStatus();
  }
  // Adds a block of arguments, for which there is room, to a recording.
  ABSL_ATTRIBUTE_ALWAYS_INLINE static absl::Status AddBlock(
      Machine& machine, Recording& recording, uint64_t argument_size,
      Block& block) {
    if (ABSL_PREDICT_FALSE(recording.arguments == nullptr)) {
      TFPLUG_ASSIGN_OR_RETURN(recording.arguments,
                              machine.MakeBuffer(kArgumentsSize, true));
    }
    block.host = recording.arguments->host + recording.arguments_used;
    block.at = {recording.arguments.get(), recording.arguments_used};
    recording.arguments_used += Aligned(argument_size);
    return absl::OkStatus();
  }
  static absl::Status TooManyArguments() {
    return absl::InvalidArgumentError("a command has too many arguments");
  }
  // Keeps commands that the open batch executes until it is done.
  void Keep(const std::shared_ptr<Recording>& executed) {
    open_->executed.push_back(executed);
  }
  // Returns whether the device should begin with the open batch, because it is
  // idle or the batch is full.
  bool IsDue() const {
    return timeline_->WasReached(open_->value - 1) ||
           open_->commands >= kMostCommands || open_->times >= kMostTimes ||
           timeline_->IsDone(open_->value - 1).value_or(true);
  }

  // Records a time stamp. Returns where to read it.
  absl::StatusOr<std::unique_ptr<Point>> WriteTime() {
    TFPLUG_RETURN_IF_ERROR(Open());
    std::unique_ptr<Point> point(NewTimed());
    open_->batch.WriteTime(point->slot);
    return point;
  }

  // Lets the next batch that is opened wait for a step of another stream.
  void AddWait(const SharedTimeline& timeline, uint64_t value) {
    for (auto& wait : waits_) {
      if (wait.timeline != timeline) continue;
      wait.value = std::max(wait.value, value);
      return;
    }
    waits_.push_back({timeline, value});
  }
  // Opens a batch if there are waits that no batch has yet.
  absl::Status OpenForWaits() {
    return waits_.empty() ? absl::OkStatus() : Open();
  }

  // Returns the open batch, which then is no longer open.
  Recording& Take() { return *std::exchange(open_, nullptr); }

  // Lets the device begin with a batch that is not open any more.
  absl::Status Submit(Recording& recording) {
    TFPLUG_RETURN_IF_ERROR(timeline_->status());
    if (ABSL_PREDICT_TRUE(recording.waits.empty())) {
      return Submit(recording, {});
    }
    return SubmitWithWaits(recording);
  }

  // Frees batches that are done, if there are many.
  void Recycle() {
    while (recordings_.size() > kMostFree &&
           timeline_->WasReached((*std::next(recordings_.begin()))->value)) {
      recordings_.pop_front();
    }
  }

 private:
  // Commands of a batch. The device may begin with a batch when it is idle.
  static constexpr int kMostCommands = 32;
  static constexpr size_t kMostFree = 8;

  static constexpr uint64_t Aligned(uint64_t argument_size) {
    constexpr uint64_t kAlignment = 256;
    return (argument_size + kAlignment - 1) / kAlignment * kAlignment;
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE absl::Status Submit(
      Recording& recording, absl::Span<const typename Machine::Wait> waits) {
    absl::Status status = machine_.Submit(
        recording.batch, waits, timeline_->counter(), recording.value);
    if (ABSL_PREDICT_FALSE(!status.ok())) {
      timeline_->Fail(status);
    } else {
      timeline_->SetSubmitted(recording.value);
    }
    return status;
  }
  [[gnu::noinline]] absl::Status SubmitWithWaits(Recording& recording) {
    absl::InlinedVector<typename Machine::Wait, 4> waits;
    for (const auto& wait : recording.waits) {
      const absl::StatusOr<bool> is_done = wait.timeline->IsDone(wait.value);
      if (!is_done.ok()) {
        timeline_->Fail(is_done.status());
        return is_done.status();
      }
      if (!*is_done) waits.push_back({&wait.timeline->counter(), wait.value});
    }
    TFPLUG_RETURN_IF_ERROR(Submit(recording, waits));
    recording.waits.clear();
    return absl::OkStatus();
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE absl::Status Open() {
    return ABSL_PREDICT_TRUE(open_ != nullptr) ? absl::OkStatus() : OpenNew();
  }
  absl::Status OpenNew() {
    TFPLUG_RETURN_IF_ERROR(timeline_->status());
    const Recording& oldest = *recordings_.front();
    if (ABSL_PREDICT_TRUE(oldest.times == 0 &&
                          timeline_->WasReached(oldest.value))) {
      MoveOldestToBack();
    } else {
      MakeUnused();
    }
    Recording& recording = *recordings_.back();
    TFPLUG_RETURN_IF_ERROR(machine_.Begin(recording.batch));
    recording.value = timeline_->AddStep();
    if (ABSL_PREDICT_FALSE(!waits_.empty())) recording.waits.swap(waits_);
    recording.commands = 0;
    recording.arguments_used = 0;
    if (ABSL_PREDICT_FALSE(!recording.executed.empty())) {
      recording.executed.clear();
    }
    open_ = &recording;
    return absl::OkStatus();
  }
  void MoveOldestToBack() {
    recordings_.splice(recordings_.end(), recordings_, recordings_.begin());
  }
  // Makes the newest recording one that can be recorded.
  [[gnu::noinline]] void MakeUnused() {
    auto& oldest = recordings_.front();
    if (!timeline_->IsDone(oldest->value).value_or(false)) {
      recordings_.push_back(std::make_shared<Recording>());
      return;
    }
    // Its timers own the one with times.
    if (oldest->times != 0) oldest = std::make_shared<Recording>();
    MoveOldestToBack();
  }

  Point* NewTimed() {
    open_->times += 2;
    return new Point{timeline_, open_->value, recordings_.back(),
                     open_->times - 2};
  }

  Machine& machine_;
  const SharedTimeline timeline_;
  // In the order of their values: those that the device works on, or that were
  // taken and not submitted, follow those that are done. Never empty.
  std::list<std::shared_ptr<Recording>> recordings_{
      std::make_shared<Recording>()};
  Recording* open_ = nullptr;                    // the newest one, or null
  std::vector<typename Recording::Wait> waits_;  // of the next batch
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_BATCHES_H_
