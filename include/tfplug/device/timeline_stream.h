// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_TIMELINE_STREAM_H_
#define TFPLUG_DEVICE_TIMELINE_STREAM_H_

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tfplug/base/internal/fork_check.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/device/buffer_stream.h"
#include "tfplug/device/host_task.h"
#include "tfplug/device/internal/batches.h"
#include "tfplug/device/internal/timeline.h"
#include "tfplug/device/internal/timeline_graph.h"
#include "tfplug/device/timeline_memory.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// A stream for drivers that take batches of recorded commands and count the
// batches that are done, such as Vulkan, Metal and Direct3D 12. The author
// writes three classes, which are constructed without arguments:
//
//   struct Buffer {  // memory of the device
//     char* host;    // its pointer for the host, if it has one
//   };
//   struct Counter {  // such as a timeline semaphore; 0 at first
//     absl::StatusOr<uint64_t> Get();     // an error if the device is lost
//     absl::Status Wait(uint64_t value);  // until Get() >= value; any threads
//   };
//   struct Batch {  // such as a command buffer; recorded anew when it is done
//     void Barrier();  // later commands see all effects of earlier ones
//     void Copy(Location to, Location from, uint64_t size);
//     // Fills with a word; the offset and the size are multiples of 4.
//     void Fill(Location to, uint32_t word, uint64_t size);
//     // Stores the device's time once all earlier commands are done; the slots
//     // are numbers below kMostTimes. ReadTime is called after that.
//     void WriteTime(uint32_t slot);
//     absl::StatusOr<uint64_t> ReadTime(uint32_t slot);  // in nanoseconds
//   };
//
// and a base of the device, with these functions, which any thread may call. Begin
// and Submit are never called at the same time, for one queue of all streams:
//
//   struct Machine : tfplug::TimelineMachine<Buffer, Batch, Counter> {
//     // Makes memory of the device, or memory that host and device access
//     // without further calls; RESOURCE_EXHAUSTED if the device is full.
//     absl::StatusOr<std::unique_ptr<Buffer>> MakeBuffer(uint64_t size,
//                                                        bool is_for_host);
//     absl::StatusOr<uint64_t> TotalMemory();  // in bytes
//     absl::Status InitCounter(Counter& counter);
//     // Prepares a batch to be recorded, a new one or one that is done.
//     absl::Status Begin(Batch& batch);
//     // Lets the device begin with the batch when the waits are over, and set
//     // the counter to the value when it is done. Must not block. All waits are
//     // for batches that were submitted before: an only queue that runs batches
//     // in order needs none of them.
//     absl::Status Submit(Batch& batch, absl::Span<const Wait> waits,
//                         Counter& counter, uint64_t value);
//   };
//   class Device : public tfplug::Device<tfplug::TimelineStream<Machine>,
//                                        tfplug::TimelineAllocator<Machine>>,
//                  public Machine
//
// For graphs (CaptureGraph), there are three more functions, for commands that
// batches execute any number of times, also several batches at once, such as a
// secondary command buffer:
//
//   absl::Status Machine::BeginGraph(Batch& graph);  // any threads
//   absl::Status Machine::EndGraph(Batch& graph);
//   void Batch::Execute(Batch& graph);
//
// The rest is here: events, timers, waits, host tasks, copies from and to any
// host memory in the order of the stream, and memory for kernels' arguments. The
// device never waits for the host, or for work that has not been submitted: what
// has to wait for these is kept, and submitted later by the stream's thread. So
// all streams may share one queue of the driver. In a child that was forked after
// the machine was made, all calls fail: the stream's thread exists in the parent.
template <class Machine>
class TimelineStream
    : public BufferStream<
          TimelineStream<Machine>, typename Machine::Buffer*,
          typename device_internal::Batches<Machine>::Commands> {
  using Buffer = typename Machine::Buffer;
  using Batch = typename Machine::Batch;
  using Counter = typename Machine::Counter;
  using Batches = device_internal::Batches<Machine>;
  using Recording = typename Batches::Recording;
  using Commands = typename Batches::Commands;
  using Base = BufferStream<TimelineStream, Buffer*, Commands>;
  using Point = typename Commands::Point;

 public:
  using typename Base::Location;
  using typename Base::Timer;

  // Memory of a batch that host and device access: `host` and the Location `at`.
  using Block = typename Batches::Block;

  // The time stamps of a batch.
  static constexpr uint32_t kMostTimes = Batches::kMostTimes;
  // Bytes of arguments in a batch, and of a piece of a copy from or to the host.
  static constexpr uint64_t kArgumentsSize = Batches::kArgumentsSize,
                            kPieceSize = 2 << 20;

  // Commands that are recorded once and enqueued many times.
  using Graph = device_internal::TimelineGraph<TimelineStream, Machine>;

  // Enqueue adds the commands to `graph`, if that is not null, and all that is
  // not a command on the device fails.
  explicit TimelineStream(Machine& machine, Graph* graph = nullptr)
      : Base(machine.addresses),
        machine_(machine),
        graph_(graph),
        batches_(machine, timeline_) {
    machine.AddStream(timeline_);
  }
  ~TimelineStream() override {
    {
      const std::lock_guard<std::mutex> lock(machine_.stream_mutex());
      if (batches_.IsOpen() || !steps_.empty()) {
        timeline_->Fail(absl::CancelledError("the stream was destroyed"));
      }
      stops_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
    timeline_->BlockHostForDevice(timeline_->added());
    machine_.RemoveStream(timeline_.get());
  }

  absl::Status Init() override {
    return machine_.InitCounter(timeline_->counter());
  }

  // Returns the object that the author's device derives from.
  Machine& machine() { return machine_; }

  // Records a command: calls record(batch, block) with a block of
  // `argument_size` bytes, which are the command's until it is done.
  template <class Record>
  absl::Status Enqueue(uint64_t argument_size, const Record& record) {
    if (ABSL_PREDICT_FALSE(graph_ != nullptr)) {
      return graph_->Add(argument_size, record);
    }
    TFPLUG_RETURN_IF_ERROR(internal::ForkCheck::Check("the stream"));
    const std::lock_guard<std::mutex> lock(machine_.stream_mutex());
    return Add(argument_size, record);
  }

  // Enqueues the commands of a graph, which live until they are done.
  absl::Status Execute(
      absl::Span<const std::shared_ptr<Recording>> recordings) {
    return Enqueue(0, [&](Batch& batch, const Block&) {
      for (const auto& recording : recordings) {
        batch.Execute(recording->batch);
        batches_.Keep(recording);
      }
    });
  }

  // ---- The hooks of BufferStream and Stream --------------------------------

  absl::Status CopyToBuffer(Location to, const void* from,
                            uint64_t size) override {
    TFPLUG_RETURN_IF_ERROR(CheckUse());
    std::unique_lock<std::mutex> lock(machine_.stream_mutex());
    const char* data = static_cast<const char*>(from);
    // The source may be read now only if no host task has to write it first.
    if (size <= kArgumentsSize / 4 && !IsHeld()) {
      return size == 0 ? absl::OkStatus()
                       : Add(size, [&](Batch& batch, const Block& block) {
                           std::memcpy(block.host, data, size);
                           batch.Copy(to, block.at, size);
                         });
    }
    return InPieces(lock, size, [&](uint64_t offset, uint64_t n) {
      char* const staging = staging_->host;
      TFPLUG_RETURN_IF_ERROR(AddHostStep([=](const absl::Status& before) {
        if (before.ok()) std::memcpy(staging, data + offset, n);
        return before;
      }));
      TFPLUG_RETURN_IF_ERROR(Add(0, [&](Batch& batch, const Block&) {
        batch.Copy({to.handle, to.offset + offset}, {staging_.get(), 0}, n);
      }));
      return Flush();
    });
  }
  absl::Status CopyFromBuffer(void* to, Location from, uint64_t size) override {
    TFPLUG_RETURN_IF_ERROR(CheckUse());
    std::unique_lock<std::mutex> lock(machine_.stream_mutex());
    char* const data = static_cast<char*>(to);
    return InPieces(lock, size, [&](uint64_t offset, uint64_t n) {
      TFPLUG_RETURN_IF_ERROR(Add(0, [&](Batch& batch, const Block&) {
        batch.Copy({staging_.get(), 0}, {from.handle, from.offset + offset}, n);
      }));
      const char* const staging = staging_->host;
      return AddHostStep([=](const absl::Status& before) {
        if (before.ok()) std::memcpy(data + offset, staging, n);
        return before;
      });
    });
  }
  absl::Status CopyBuffer(Location to, Location from, uint64_t size) override {
    if (size == 0) return absl::OkStatus();
    return Enqueue(
        0, [&](Batch& batch, const Block&) { batch.Copy(to, from, size); });
  }
  absl::Status FillBuffer(Location to, const void* pattern, size_t pattern_size,
                          uint64_t size) override {
    if (size == 0) return absl::OkStatus();
    char bytes[8];  // the pattern twice
    for (size_t i = 0; i < sizeof(bytes); ++i) {
      bytes[i] = static_cast<const char*>(pattern)[i % pattern_size];
    }
    const uint64_t head = std::min(size, (4 - to.offset % 4) % 4),
                   tail = (size - head) % 4, middle = size - head - tail;
    const auto at = [&](uint64_t offset) {
      return Location{to.handle, to.offset + offset};
    };
    uint32_t word;
    std::memcpy(&word, bytes + head, sizeof(word));
    return Enqueue(8, [&](Batch& batch, const Block& block) {
      std::memcpy(block.host, bytes, sizeof(bytes));
      if (head != 0) batch.Copy(to, block.at, head);
      if (middle != 0) batch.Fill(at(head), word, middle);
      if (tail == 0) return;
      batch.Copy(at(head + middle), {block.at.handle, block.at.offset + head},
                 tail);
    });
  }

  absl::StatusOr<Point*> Mark() override {
    TFPLUG_RETURN_IF_ERROR(CheckUse());
    const std::lock_guard<std::mutex> lock(machine_.stream_mutex());
    TFPLUG_RETURN_IF_ERROR(Close());
    batches_.Recycle();
    return new Point{timeline_, timeline_->added(), nullptr, 0};
  }
  absl::Status Submit() override {
    TFPLUG_RETURN_IF_ERROR(CheckUse());
    const std::lock_guard<std::mutex> lock(machine_.stream_mutex());
    return Flush();
  }
  absl::Status WaitForCommand(Point* point) override {
    TFPLUG_RETURN_IF_ERROR(CheckUse());
    if (point->timeline == timeline_) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(const bool is_done,
                            point->timeline->IsDone(point->value));
    if (is_done) return absl::OkStatus();
    const std::lock_guard<std::mutex> lock(machine_.stream_mutex());
    if (!point->timeline->IsSubmitted(point->value)) {
      TFPLUG_RETURN_IF_ERROR(
          AddHostStep([timeline = point->timeline,
                       value = point->value](const absl::Status& before) {
            return before.ok() ? timeline->BlockUntilSubmitted(value) : before;
          }));
    }
    TFPLUG_RETURN_IF_ERROR(Flush());  // what is recorded does not wait
    batches_.AddWait(point->timeline, point->value);
    return absl::OkStatus();
  }

  absl::Status RunOnHost(HostTask task) override {
    absl::Status status = CheckUse();
    if (!status.ok()) {
      task.Release();
      return status;
    }
    const auto shared = std::make_shared<HostTask>(std::move(task));
    std::unique_lock<std::mutex> lock(machine_.stream_mutex());
    StampTimer();
    status = AddHostStep([shared](const absl::Status& before) {
      const absl::Status ran = shared->Run();
      return before.ok() ? ran : before;
    });
    if (status.ok()) {
      StampTimer();
    } else {
      lock.unlock();  // for TensorFlow's code
      shared->Release();
    }
    return status;
  }

  // A timer's times are those of work that has been submitted.
  absl::Status StopTimer(Timer& timer) override {
    timer.Stop();
    return Submit();
  }

  absl::Status GetStatus() override {
    TFPLUG_RETURN_IF_ERROR(CheckUse());
    const std::lock_guard<std::mutex> lock(machine_.stream_mutex());
    timeline_->AskDevice();
    batches_.Recycle();
    return timeline_->status();
  }
  absl::Status BlockHostUntilDone() override {
    TFPLUG_RETURN_IF_ERROR(CheckUse());
    absl::Status status;
    uint64_t last;
    {
      const std::lock_guard<std::mutex> lock(machine_.stream_mutex());
      status = Close();
      last = timeline_->added();
    }
    status.Update(timeline_->BlockHost(last));
    status.Update(timeline_->status());
    return status;
  }

  // Returns the device's clock, for Device::GetTime.
  absl::StatusOr<uint64_t> GetTime() {
    TFPLUG_RETURN_IF_ERROR(CheckUse());
    std::unique_ptr<Point> point;
    {
      const std::lock_guard<std::mutex> lock(machine_.stream_mutex());
      TFPLUG_RETURN_IF_ERROR(Flush());
      TFPLUG_ASSIGN_OR_RETURN(point, batches_.WriteTime());
      TFPLUG_RETURN_IF_ERROR(Flush());
    }
    TFPLUG_RETURN_IF_ERROR(timeline_->BlockHost(point->value));
    return point->recording->batch.ReadTime(point->slot);
  }

 private:
  using HostStep = std::function<absl::Status(const absl::Status& before)>;
  struct Step {  // a batch, or something on the host
    uint64_t value;
    Recording* recording;  // or null
    HostStep run;
  };

  absl::Status CheckUse() const {
    if (ABSL_PREDICT_FALSE(graph_ != nullptr)) {
      return absl::FailedPreconditionError(
          "a graph contains kernels and copies on the device only");
    }
    return internal::ForkCheck::Check("the stream");
  }

  // All functions below need the machine's lock.

  // Returns whether work is kept for the thread, behind which new work has to
  // stay.
  bool IsHeld() const { return working_on_ != 0 || !steps_.empty(); }

  template <class Record>
  absl::Status Add(uint64_t argument_size, const Record& record) {
    if (ABSL_PREDICT_FALSE(!batches_.HasRoomFor(argument_size))) {
      TFPLUG_RETURN_IF_ERROR(MakeRoom(argument_size));
    }
    TFPLUG_RETURN_IF_ERROR(batches_.Add(argument_size, record));
    return batches_.IsDue() ? Flush() : absl::OkStatus();
  }
  [[gnu::cold, gnu::noinline]] absl::Status MakeRoom(uint64_t argument_size) {
    return argument_size > kArgumentsSize ? Batches::TooManyArguments()
                                          : Flush();
  }

  // Lets the device begin with the open batch.
  absl::Status Flush() {
    if (!batches_.IsOpen()) return absl::OkStatus();
    if (ABSL_PREDICT_TRUE(!IsHeld())) return batches_.Submit(batches_.Take());
    Recording& recording = batches_.Take();
    steps_.push_back({recording.value, &recording, nullptr});
    return absl::OkStatus();
  }
  // Does the same, and makes the last step one that follows all waits.
  absl::Status Close() {
    TFPLUG_RETURN_IF_ERROR(batches_.OpenForWaits());
    return Flush();
  }

  // Calls add(offset, n) for the pieces of a copy through the staging memory.
  // Its steps are in order with those of the host, so one piece is enough.
  template <class AddPiece>
  absl::Status InPieces(std::unique_lock<std::mutex>& lock, uint64_t size,
                        const AddPiece& add) {
    TFPLUG_RETURN_IF_ERROR(timeline_->status());
    if (staging_ == nullptr && size != 0) {
      TFPLUG_ASSIGN_OR_RETURN(staging_, machine_.MakeBuffer(kPieceSize, true));
    }
    const uint64_t before = timeline_->added();
    for (uint64_t offset = 0; offset < size; offset += kPieceSize) {
      absl::Status status = add(offset, std::min(size - offset, kPieceSize));
      if (status.ok()) continue;
      if (timeline_->added() > before) Abandon(lock, before, status);
      return status;
    }
    return absl::OkStatus();
  }
  // Fails the stream, and removes the steps after `before`: they refer to host
  // memory of a copy that is not made.
  void Abandon(std::unique_lock<std::mutex>& lock, uint64_t before,
               const absl::Status& status) {
    timeline_->Fail(status);
    while (!steps_.empty() && steps_.back().value > before) steps_.pop_back();
    changed_.wait(lock, [&, last = timeline_->added()] {
      return working_on_ <= before || working_on_ > last;
    });
  }

  // Enqueues a command that does nothing for a timer that runs, which then has
  // the time of the host's work as well.
  void StampTimer() {
    if (ABSL_PREDICT_TRUE(!Timer::IsRunning())) return;
    Add(0, [](Batch&, const Block&) {}).IgnoreError();
  }

  // Lets the thread call run(status) once all work so far is done or has failed,
  // with its error. Work that is added from now on waits for it.
  absl::Status AddHostStep(HostStep run) {
    absl::Status closed = Close();
    if (!closed.ok() && timeline_->status().ok()) return closed;
    if (!thread_.joinable()) {
      TFPLUG_RETURN_IF_ERROR(internal::Guarded([&] {
        thread_ = std::thread([this] { RunSteps(); });
        return absl::OkStatus();
      }));
    }
    steps_.push_back({timeline_->AddStep(), nullptr, std::move(run)});
    changed_.notify_all();
    return absl::OkStatus();
  }
  void RunSteps() {
    std::unique_lock<std::mutex> lock(machine_.stream_mutex());
    for (;;) {
      changed_.wait(lock, [&] { return !steps_.empty() || stops_; });
      if (steps_.empty()) return;
      Step step = std::move(steps_.front());
      steps_.pop_front();
      working_on_ = step.value;
      if (step.recording != nullptr) {
        batches_.Submit(*step.recording).IgnoreError();
      } else {
        lock.unlock();
        const absl::Status status = internal::Guarded(
            [&] { return step.run(timeline_->BlockHost(step.value - 1)); });
        step.run = nullptr;
        if (status.ok()) {
          timeline_->SetDoneOnHost(step.value);
        } else {
          timeline_->Fail(status);
        }
        lock.lock();
      }
      working_on_ = 0;
      changed_.notify_all();
    }
  }

  Machine& machine_;
  Graph* const graph_;
  const std::shared_ptr<device_internal::Timeline<Counter>> timeline_ =
      std::make_shared<device_internal::Timeline<Counter>>();
  Batches batches_;
  std::unique_ptr<Buffer> staging_;

  std::thread thread_;  // runs the steps; started at the first
  std::condition_variable changed_;
  std::deque<Step> steps_;
  uint64_t working_on_ = 0;  // a step, or 0
  bool stops_ = false;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_TIMELINE_STREAM_H_
