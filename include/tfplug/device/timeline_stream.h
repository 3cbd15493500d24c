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
#include <vector>

#include "absl/base/optimization.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/device/buffer_stream.h"
#include "tfplug/device/host_task.h"
#include "tfplug/device/internal/timeline.h"
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
// and a base of the device, with these functions, which any thread may call:
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
// The rest is here: events, timers, waits, host tasks, copies from and to any
// host memory in the order of the stream, and memory for kernels' arguments. The
// device never waits for the host, or for work that has not been submitted: what
// has to wait for these is kept, and submitted later by the stream's thread. So
// all streams may share one queue of the driver.
template <class Machine>
class TimelineStream
    : public BufferStream<
          TimelineStream<Machine>, typename Machine::Buffer*,
          device_internal::TimelineCommands<
              device_internal::Recording<typename Machine::Buffer,
                                         typename Machine::Batch,
                                         typename Machine::Counter>,
              typename Machine::Counter>> {
  using Buffer = typename Machine::Buffer;
  using Batch = typename Machine::Batch;
  using Counter = typename Machine::Counter;
  using Recording = device_internal::Recording<Buffer, Batch, Counter>;
  using Commands = device_internal::TimelineCommands<Recording, Counter>;
  using Base = BufferStream<TimelineStream, Buffer*, Commands>;
  using Point = typename Commands::Point;

 public:
  using typename Base::Location;
  using typename Base::Timer;

  // Memory of a batch that host and device access.
  struct Block {
    char* host;
    Location at;
  };

  // The time stamps of a batch.
  static constexpr uint32_t kMostTimes = 64;
  // Bytes of arguments in a batch, and of a piece of a copy from or to the host.
  static constexpr uint64_t kArgumentsSize = 64 << 10, kPieceSize = 2 << 20;

  explicit TimelineStream(Machine& machine)
      : Base(machine.addresses), machine_(machine) {
    machine.AddStream(timeline_);
  }
  ~TimelineStream() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!steps_.empty()) {
        timeline_->Fail(absl::CancelledError("the stream was destroyed"));
      }
      stops_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
    for (const auto& recording : in_flight_) {
      timeline_->BlockHost(recording->value).IgnoreError();
    }
    machine_.RemoveStream(timeline_.get());
  }

  absl::Status Init() override { return machine_.InitCounter(counter()); }

  // Returns the object that the author's device derives from.
  Machine& machine() { return machine_; }

  // Records a command: calls record(batch, block) with a block of
  // `argument_size` bytes, which are the command's until it is done.
  template <class Record>
  absl::Status Enqueue(uint64_t argument_size, const Record& record) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return Add(argument_size, record);
  }

  // ---- The hooks of BufferStream and Stream --------------------------------

  absl::Status CopyToBuffer(Location to, const void* from,
                            uint64_t size) override {
    std::unique_lock<std::mutex> lock(mutex_);
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
    std::unique_lock<std::mutex> lock(mutex_);
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
    const std::lock_guard<std::mutex> lock(mutex_);
    TFPLUG_RETURN_IF_ERROR(Close());
    return new Point{timeline_, last_, nullptr, 0};
  }
  absl::Status Submit() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return Flush();
  }
  absl::Status WaitForCommand(Point* point) override {
    if (point->timeline == timeline_) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(const bool is_done,
                            point->timeline->IsDone(point->value));
    if (is_done) return absl::OkStatus();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!point->timeline->IsSubmitted(point->value)) {
      TFPLUG_RETURN_IF_ERROR(
          AddHostStep([timeline = point->timeline,
                       value = point->value](const absl::Status& before) {
            return before.ok() ? timeline->BlockUntilSubmitted(value) : before;
          }));
    }
    TFPLUG_RETURN_IF_ERROR(Flush());  // what is recorded does not wait
    for (auto& wait : waits_) {
      if (wait.timeline != point->timeline) continue;
      wait.value = std::max(wait.value, point->value);
      return absl::OkStatus();
    }
    waits_.push_back({point->timeline, point->value});
    return absl::OkStatus();
  }

  absl::Status RunOnHost(HostTask task) override {
    const auto shared = std::make_shared<HostTask>(std::move(task));
    const std::lock_guard<std::mutex> lock(mutex_);
    StampTimer();
    const absl::Status status =
        AddHostStep([shared](const absl::Status& before) {
          const absl::Status ran = shared->Run();
          return before.ok() ? ran : before;
        });
    if (!status.ok()) {
      shared->Release();
      return status;
    }
    StampTimer();
    return absl::OkStatus();
  }

  // A timer's times are those of work that has been submitted.
  absl::Status StopTimer(Timer& timer) override {
    timer.Stop();
    return Submit();
  }

  absl::Status GetStatus() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    Recycle();  // asks the driver
    return timeline_->status();
  }
  absl::Status BlockHostUntilDone() override {
    absl::Status status;
    uint64_t last;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      status = Close();
      last = last_;
    }
    status.Update(timeline_->BlockHost(last));
    status.Update(timeline_->status());
    return status;
  }

  // Returns the device's clock, for Device::GetTime.
  absl::StatusOr<uint64_t> GetTime() {
    std::unique_ptr<Point> point;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      TFPLUG_RETURN_IF_ERROR(Flush());
      TFPLUG_RETURN_IF_ERROR(Open(0));
      point.reset(NewTimed());
      open_->batch.WriteTime(point->slot);
      TFPLUG_RETURN_IF_ERROR(Flush());
    }
    TFPLUG_RETURN_IF_ERROR(timeline_->BlockHost(point->value));
    return point->recording->batch.ReadTime(point->slot);
  }

 private:
  using HostStep = std::function<absl::Status(const absl::Status& before)>;
  struct Step {  // a batch, or something on the host
    uint64_t value;
    std::shared_ptr<Recording> recording;
    HostStep run;
  };
  // Commands of a batch. The device may begin with a batch when it is idle.
  static constexpr int kMostCommands = 32;
  static constexpr size_t kMostFree = 8;
  static constexpr uint64_t kAlignment = 256;  // of arguments

  Counter& counter() { return timeline_->counter(); }

  // All functions below need the lock.

  // Whether work is kept for the thread, behind which new work has to stay.
  bool IsHeld() const { return working_on_ != 0 || !steps_.empty(); }

  template <class Record>
  absl::Status Add(uint64_t argument_size, const Record& record) {
    TFPLUG_RETURN_IF_ERROR(Open(argument_size));
    Recording& open = *open_;
    Block block = {};
    if (argument_size != 0) {
      block.host = open.arguments->host + open.arguments_used;
      block.at = {open.arguments.get(), open.arguments_used};
      open.arguments_used +=
          (argument_size + kAlignment - 1) / kAlignment * kAlignment;
    }
    open.batch.Barrier();
    Point** const timed = Timer::Next();
    if (ABSL_PREDICT_FALSE(timed != nullptr)) *timed = NewTimed();
    if (timed != nullptr) open.batch.WriteTime((*timed)->slot);
    record(open.batch, block);
    if (timed != nullptr) open.batch.WriteTime((*timed)->slot + 1);
    if (++open.commands < kMostCommands && open.times < kMostTimes) {
      const absl::StatusOr<bool> is_idle = timeline_->IsDone(open.value - 1);
      if (is_idle.ok() && !*is_idle) return absl::OkStatus();
    }
    return Flush();
  }
  Point* NewTimed() {
    open_->times += 2;
    return new Point{timeline_, open_->value, open_, open_->times - 2};
  }

  // Makes open_ a batch with room for the arguments.
  absl::Status Open(uint64_t argument_size) {
    if (argument_size > kArgumentsSize) {
      return absl::InvalidArgumentError("a command has too many arguments");
    }
    if (open_ != nullptr &&
        open_->arguments_used + argument_size > kArgumentsSize) {
      TFPLUG_RETURN_IF_ERROR(Flush());
    }
    if (open_ == nullptr) {
      TFPLUG_RETURN_IF_ERROR(timeline_->status());
      Recycle();
      auto recording = std::make_shared<Recording>();
      if (!free_.empty()) {
        recording = std::move(free_.back());
        free_.pop_back();
      }
      TFPLUG_RETURN_IF_ERROR(machine_.Begin(recording->batch));
      recording->value = ++last_;
      recording->waits = std::exchange(waits_, {});
      recording->commands = 0;
      recording->arguments_used = 0;
      timeline_->SetAdded(last_);
      open_ = std::move(recording);
    }
    if (argument_size != 0 && open_->arguments == nullptr) {
      TFPLUG_ASSIGN_OR_RETURN(open_->arguments,
                              machine_.MakeBuffer(kArgumentsSize, true));
    }
    return absl::OkStatus();
  }
  // Frees the batches that are done. Those with times stay their timers'.
  void Recycle() {
    while (!in_flight_.empty()) {
      auto& first = in_flight_.front();
      if (!timeline_->IsDone(first->value).value_or(false)) return;
      if (first->times == 0 && free_.size() < kMostFree) {
        free_.push_back(std::move(first));
      }
      in_flight_.pop_front();
    }
  }

  // Lets the device begin with the open batch.
  absl::Status Flush() {
    if (open_ == nullptr) return absl::OkStatus();
    auto recording = std::exchange(open_, nullptr);
    if (!IsHeld()) return SubmitNow(std::move(recording));
    const uint64_t value = recording->value;
    steps_.push_back({value, std::move(recording), nullptr});
    return absl::OkStatus();
  }
  // Does the same, and makes last_ a step that follows all waits.
  absl::Status Close() {
    if (!waits_.empty()) TFPLUG_RETURN_IF_ERROR(Open(0));
    return Flush();
  }
  absl::Status SubmitNow(std::shared_ptr<Recording> recording) {
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
    const absl::Status status =
        machine_.Submit(recording->batch, waits, counter(), recording->value);
    if (!status.ok()) {
      timeline_->Fail(status);
      return status;
    }
    timeline_->SetSubmitted(recording->value);
    in_flight_.push_back(std::move(recording));
    return absl::OkStatus();
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
    const uint64_t before = last_;
    for (uint64_t offset = 0; offset < size; offset += kPieceSize) {
      const absl::Status status =
          add(offset, std::min(size - offset, kPieceSize));
      if (status.ok()) continue;
      if (last_ > before) Abandon(lock, before, status);
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
    changed_.wait(lock, [&, last = last_] {
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
    const absl::Status closed = Close();
    if (!closed.ok() && timeline_->status().ok()) return closed;
    if (!thread_.joinable()) {
      TFPLUG_RETURN_IF_ERROR(internal::Guarded([&] {
        thread_ = std::thread([this] { RunSteps(); });
        return absl::OkStatus();
      }));
    }
    steps_.push_back({++last_, nullptr, std::move(run)});
    timeline_->SetAdded(last_);
    changed_.notify_all();
    return absl::OkStatus();
  }
  void RunSteps() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !steps_.empty() || stops_; });
      if (steps_.empty()) return;
      Step step = std::move(steps_.front());
      steps_.pop_front();
      working_on_ = step.value;
      if (step.recording != nullptr) {
        SubmitNow(std::move(step.recording)).IgnoreError();
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
  const std::shared_ptr<device_internal::Timeline<Counter>> timeline_ =
      std::make_shared<device_internal::Timeline<Counter>>();
  std::mutex mutex_;
  uint64_t last_ = 0;  // step that was added, or is open
  std::shared_ptr<Recording> open_;
  std::vector<typename Recording::Wait> waits_;  // of the next batch
  std::unique_ptr<Buffer> staging_;
  std::deque<std::shared_ptr<Recording>> in_flight_;
  std::vector<std::shared_ptr<Recording>> free_;

  std::thread thread_;  // runs the steps; started at the first
  std::condition_variable changed_;
  std::deque<Step> steps_;
  uint64_t working_on_ = 0;  // a step, or 0
  bool stops_ = false;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_TIMELINE_STREAM_H_
