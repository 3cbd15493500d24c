// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_BATCHES_H_
#define TFPLUG_DEVICE_INTERNAL_BATCHES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

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
// on, and those that can be recorded anew. The stream's lock guards all of it.
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
    return open_ == nullptr ||
           open_->arguments_used + argument_size <= kArgumentsSize;
  }

  // Records a command for whose arguments there is room: calls record(batch,
  // block). Returns whether the device should begin with the batch, because it is
  // idle or the batch is full.
  template <class Record>
  absl::StatusOr<bool> Add(uint64_t argument_size, const Record& record) {
    if (ABSL_PREDICT_FALSE(argument_size > kArgumentsSize)) {
      return absl::InvalidArgumentError("a command has too many arguments");
    }
    TFPLUG_RETURN_IF_ERROR(Open(argument_size));
    Recording& open = *open_;
    Block block = {};
    if (argument_size != 0) {
      block.host = open.arguments->host + open.arguments_used;
      block.at = {open.arguments.get(), open.arguments_used};
      open.arguments_used += Aligned(argument_size);
    }
    open.batch.Barrier();
    Point** const timed = CommandTimer<Commands>::Next();
    if (ABSL_PREDICT_FALSE(timed != nullptr)) {
      *timed = NewTimed();
      open.batch.WriteTime((*timed)->slot);
    }
    record(open.batch, block);
    if (ABSL_PREDICT_FALSE(timed != nullptr)) {
      open.batch.WriteTime((*timed)->slot + 1);
    }
    return ++open.commands >= kMostCommands || open.times >= kMostTimes ||
           timeline_->WasReached(open.value - 1) ||
           timeline_->IsDone(open.value - 1).value_or(true);
  }

  // Records a time stamp. Returns where to read it.
  absl::StatusOr<std::unique_ptr<Point>> WriteTime() {
    TFPLUG_RETURN_IF_ERROR(Open(0));
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
    return waits_.empty() ? absl::OkStatus() : Open(0);
  }

  // Returns the open batch, which then is no longer open.
  std::shared_ptr<Recording> Take() { return std::exchange(open_, nullptr); }

  absl::Status Submit(std::shared_ptr<Recording> recording) {
    TFPLUG_RETURN_IF_ERROR(timeline_->status());
    absl::InlinedVector<typename Machine::Wait, 4> waits;
    for (const auto& wait : recording->waits) {
      const absl::StatusOr<bool> is_done = wait.timeline->IsDone(wait.value);
      if (!is_done.ok()) {
        timeline_->Fail(is_done.status());
        return is_done.status();
      }
      if (!*is_done) waits.push_back({&wait.timeline->counter(), wait.value});
    }
    absl::Status status = machine_.Submit(
        recording->batch, waits, timeline_->counter(), recording->value);
    if (!status.ok()) {
      timeline_->Fail(status);
      return status;
    }
    timeline_->SetSubmitted(recording->value);
    in_flight_.push_back(std::move(recording));
    return absl::OkStatus();
  }

  // Frees the batches that are done. Those with times stay their timers'.
  void Recycle() {
    while (!in_flight_.empty()) {
      auto& first = in_flight_.front();
      if (!timeline_->WasReached(first->value) &&
          !timeline_->IsDone(first->value).value_or(false))
        return;
      if (first->times == 0 && free_.size() < kMostFree) {
        free_.push_back(std::move(first));
      }
      in_flight_.pop_front();
    }
  }

  // Waits for all batches that were submitted.
  void BlockHost() {
    for (const auto& recording : in_flight_) {
      timeline_->BlockHost(recording->value).IgnoreError();
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

  // Makes open_ a batch with room for the arguments.
  absl::Status Open(uint64_t argument_size) {
    if (open_ == nullptr) TFPLUG_RETURN_IF_ERROR(OpenNew());
    if (argument_size != 0 && open_->arguments == nullptr) {
      TFPLUG_ASSIGN_OR_RETURN(open_->arguments,
                              machine_.MakeBuffer(kArgumentsSize, true));
    }
    return absl::OkStatus();
  }
  absl::Status OpenNew() {
    TFPLUG_RETURN_IF_ERROR(timeline_->status());
    Recycle();
    std::shared_ptr<Recording> recording;
    if (free_.empty()) {
      recording = std::make_shared<Recording>();
    } else {
      recording = std::move(free_.back());
      free_.pop_back();
    }
    TFPLUG_RETURN_IF_ERROR(machine_.Begin(recording->batch));
    recording->value = timeline_->AddStep();
    recording->waits.clear();
    recording->waits.swap(waits_);
    recording->commands = 0;
    recording->arguments_used = 0;
    open_ = std::move(recording);
    return absl::OkStatus();
  }

  Point* NewTimed() {
    open_->times += 2;
    return new Point{timeline_, open_->value, open_, open_->times - 2};
  }

  Machine& machine_;
  const SharedTimeline timeline_;
  std::shared_ptr<Recording> open_;
  std::vector<typename Recording::Wait> waits_;  // of the next batch
  std::deque<std::shared_ptr<Recording>> in_flight_;
  std::vector<std::shared_ptr<Recording>> free_;
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_BATCHES_H_
