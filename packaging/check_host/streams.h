// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_CHECK_STREAMS_H_
#define TFPLUG_CHECK_STREAMS_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gate.h"
#include "memory.h"
#include "plugin.h"
#include "registration.h"

// Checks of work on streams, each by itself.
namespace tfplug::check {

using Contents = std::vector<unsigned char>;

inline Contents Pattern(size_t size, uint32_t seed) {
  Contents bytes(size);
  for (unsigned char& byte : bytes) {
    seed = seed * 1664525u + 1013904223u;
    byte = static_cast<unsigned char>(seed >> 24);
  }
  return bytes;
}

inline DeviceMemory Part(DeviceMemory all, uint64_t at) {
  return DeviceMemory(static_cast<char*>(all.opaque()) + at, all.size() - at,
                      all.payload());
}

// Returns the first difference as text, or "".
inline std::string Difference(const Contents& found, const Contents& expected) {
  const auto at = std::mismatch(found.begin(), found.end(), expected.begin());
  if (at.first == found.end()) return "";
  return "byte " + std::to_string(at.first - found.begin()) + " is " +
         std::to_string(*at.first) + " instead of " +
         std::to_string(*at.second);
}

// Two buffers of device memory with known contents.
class Buffers {
 public:
  static constexpr size_t kSize = 4096;

  Buffers(Report& report, FakeDevice& device)
      : report_(report), device_(device) {
    for (DeviceMemory* each : {&a, &b}) {
      *each = device.Allocate(kSize);
      is_ok_ =
          is_ok_ && report.Expect(!each->is_null(),
                                  "allocate(4096 bytes) returns no memory");
    }
  }
  bool ok() const { return is_ok_; }
  bool Write(DeviceMemory to, const Contents& bytes) {
    report_.Step("sync_memcpy_htod of " + Bytes(bytes.size()));
    return report_.Ok(device_.CopyHostToDevice(to, bytes.data(), bytes.size()),
                      "sync_memcpy_htod");
  }
  Contents Read(DeviceMemory from) {
    Contents bytes(kSize, 0xEE);
    report_.Step("sync_memcpy_dtoh of " + Bytes(kSize));
    report_.Ok(device_.CopyDeviceToHost(bytes.data(), from, kSize),
               "sync_memcpy_dtoh");
    return bytes;
  }
  // Reports a difference between device memory and `expected`.
  bool Compare(DeviceMemory memory, const Contents& expected,
               const std::string& after) {
    const std::string difference = Difference(Read(memory), expected);
    return report_.Expect(difference.empty(),
                          "after " + after + ", " + difference);
  }

  DeviceMemory a, b;

 private:
  Report& report_;
  FakeDevice& device_;
  bool is_ok_ = true;
};

// Copies in every direction, at odd sizes and offsets.
inline void CheckCopies(Plugin& plugin) {
  Report& report = plugin.report();
  FakeDevice* const device = plugin.device();
  if (device == nullptr) return;
  Buffers buffers(report, *device);
  if (!buffers.ok()) return;
  FakeStream& stream = device->compute();
  const Contents initial = Pattern(Buffers::kSize, 1);
  const Contents source = Pattern(Buffers::kSize, 2);
  for (const uint64_t size : {1, 3, 64, 255, 1000}) {
    for (const uint64_t at : {0, 1, 7, 256}) {
      const std::string where =
          " of " + Bytes(size) + " at offset " + std::to_string(at);
      Contents expected = initial;
      std::copy_n(source.begin() + 5, size,
                  expected.begin() + static_cast<std::ptrdiff_t>(at));
      for (const bool is_sync : {true, false}) {
        const std::string name = is_sync ? "sync_memcpy" : "memcpy";
        const auto wait = [&](absl::Status status) {
          if (!is_sync) status.Update(stream.BlockHostUntilDone());
          return status;
        };
        if (!buffers.Write(buffers.a, initial)) return;
        report.Step(name + "_htod" + where);
        const DeviceMemory to = Part(buffers.a, at);
        const auto* const from = source.data() + 5;
        if (!report.Ok(wait(is_sync ? device->CopyHostToDevice(to, from, size)
                                    : stream.CopyHostToDevice(to, from, size)),
                       name + "_htod" + where) ||
            !buffers.Compare(buffers.a, expected, name + "_htod" + where)) {
          return;
        }
        if (!buffers.Write(buffers.a, initial) ||
            !buffers.Write(buffers.b, source)) {
          return;
        }
        report.Step(name + "_dtod" + where);
        const DeviceMemory other = Part(buffers.b, 5);
        if (!report.Ok(
                wait(is_sync ? device->CopyDeviceToDevice(to, other, size)
                             : stream.CopyDeviceToDevice(to, other, size)),
                name + "_dtod" + where) ||
            !buffers.Compare(buffers.a, expected, name + "_dtod" + where)) {
          return;
        }
        Contents out = initial;
        report.Step(name + "_dtoh" + where);
        if (!report.Ok(wait(is_sync ? device->CopyDeviceToHost(out.data() + at,
                                                               other, size)
                                    : stream.CopyDeviceToHost(out.data() + at,
                                                              other, size)),
                       name + "_dtoh" + where) ||
            !report.Expect(out == expected, "after " + name + "_dtoh" + where +
                                                ", " +
                                                Difference(out, expected))) {
          return;
        }
      }
    }
  }
  report.Ok(device->Problems(), "copies");
}

inline void CheckFills(Plugin& plugin) {
  Report& report = plugin.report();
  FakeDevice* const device = plugin.device();
  if (device == nullptr) return;
  if (device->fns().mem_zero == nullptr || device->fns().memset == nullptr ||
      device->fns().memset32 == nullptr) {
    return report.Skip("mem_zero, memset or memset32 is null");
  }
  Buffers buffers(report, *device);
  if (!buffers.ok()) return;
  FakeStream& stream = device->compute();
  const Contents initial = Pattern(Buffers::kSize, 3);
  constexpr uint32_t kWord = 0x12345678;
  for (const uint64_t size : {4, 100, 1000}) {
    for (const uint64_t at : {0, 4, 256}) {
      for (const std::string slot : {"mem_zero", "memset", "memset32"}) {
        const DeviceMemory to = Part(buffers.a, at);
        const std::string call =
            slot + " of " + Bytes(size) + " at offset " + std::to_string(at);
        if (!buffers.Write(buffers.a, initial)) return;
        Contents expected = initial;
        unsigned char* const filled = expected.data() + at;
        report.Step(call);
        absl::Status status;
        if (slot == "mem_zero") {
          std::memset(filled, 0, size);
          status = stream.MemZero(to, size);
        } else if (slot == "memset") {
          std::memset(filled, 0xA7, size);
          status = stream.Memset(to, BytePattern{0xA7}, size);
        } else {
          for (uint64_t i = 0; i < size; i += 4) {
            std::memcpy(filled + i, &kWord, 4);
          }
          status = stream.Memset32(to, WordPattern{kWord}, size);
        }
        status.Update(stream.BlockHostUntilDone());
        if (!report.Ok(status, call) ||
            !buffers.Compare(buffers.a, expected, call)) {
          return;
        }
      }
    }
  }
}

// Host tasks run exactly once, in the stream's order.
inline void CheckHostCallback(Plugin& plugin) {
  Report& report = plugin.report();
  FakeDevice* const device = plugin.device();
  if (device == nullptr) return;
  FakeStream& stream = device->compute();
  constexpr int kTasks = 20;
  const auto order = std::make_shared<std::vector<int>>();
  const auto runs = std::make_shared<std::atomic<int>>(0);
  for (int i = 0; i < kTasks; ++i) {
    report.Step("host_callback");
    const absl::Status status = stream.RunOnHost([order, runs, i] {
      order->push_back(i);
      ++*runs;
      return absl::OkStatus();
    });
    if (!status.ok()) {
      return report.Error(
          "host_callback returns false, which is TF_OK's value: TensorFlow "
          "takes it for a failure" +
          std::string(*runs != 0 ? ", but the task runs"
                                 : ", and the task does not run"));
    }
  }
  report.Step("block_host_until_done after host_callback");
  if (!report.Ok(stream.BlockHostUntilDone(), "block_host_until_done")) return;
  for (int i = 0; i < 500 && *runs < kTasks; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (*runs < kTasks) {
    return report.Error("host_callback returns true for 20 tasks, but only " +
                        std::to_string(*runs) + " run");
  }
  report.Expect(
      std::is_sorted(order->begin(), order->end()),
      "tasks of host_callback run in another order than the stream's");
  report.Ok(device->Problems(), "host_callback");
  // The plug-in chooses what then happens to the stream.
  report.Step("a task of host_callback that fails");
  auto other = device->CreateStream();
  if (!report.Ok(other.status(), "create_stream")) return;
  (*other)
      ->RunOnHost([] { return absl::InternalError("expected"); })
      .IgnoreError();
  (*other)->BlockHostUntilDone().IgnoreError();
}

inline void CheckEvents(Plugin& plugin) {
  Report& report = plugin.report();
  FakeDevice* const device = plugin.device();
  if (device == nullptr) return;
  FakeStream& stream = device->compute();
  report.Step("create_event");
  auto created = device->CreateEvent();
  if (!report.Ok(created.status(), "create_event")) return;
  testing::FakeEvent& event = **created;
  for (int round = 0; round < 2; ++round) {
    const std::string recorded =
        round == 0 ? "an event" : "an event that was recorded again";
    Gate gate(stream);
    const bool holds = gate.Holds();
    report.Step("record_event");
    if (!report.Ok(stream.RecordEvent(event), "record_event")) return;
    report.Step("get_event_status");
    if (holds) {
      const EventStatus status = event.Poll();
      report.Expect(status == EventStatus::kPending,
                    "get_event_status of " + recorded + " returns " +
                        std::to_string(static_cast<int>(status)) +
                        " instead of SE_EVENT_PENDING while the stream's work "
                        "before it has not run");
    }
    report.Step("block_host_for_event");
    std::thread opener = gate.OpenLater();
    const absl::Status status = event.BlockHost();
    const bool was_open = gate.is_open();
    opener.join();
    report.Ok(status, "block_host_for_event");
    if (holds) {
      report.Expect(was_open,
                    "block_host_for_event returns before the work "
                    "that the event follows has run");
    }
    report.Step("get_event_status of a complete event");
    EventStatus last = event.Poll();
    for (int i = 0; i < 500 && last != EventStatus::kComplete; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      last = event.Poll();
    }
    report.Expect(last == EventStatus::kComplete,
                  "get_event_status returns " +
                      std::to_string(static_cast<int>(last)) +
                      " instead of SE_EVENT_COMPLETE once the work has run");
  }
}

// What follows a held stream, by any means, must wait for it.
inline void CheckOrder(Plugin& plugin) {
  Report& report = plugin.report();
  FakeDevice* const device = plugin.device();
  if (device == nullptr) return;
  Buffers buffers(report, *device);
  if (!buffers.ok()) return;
  FakeStream &first = device->host_to_device(), &second = device->compute();
  const Contents old = Pattern(Buffers::kSize, 4);
  const Contents fresh = Pattern(Buffers::kSize, 5);
  auto created = device->CreateEvent();
  if (!report.Ok(created.status(), "create_event")) return;
  testing::FakeEvent& event = **created;
  for (const std::string how :
       {"the stream itself", "create_stream_dependency", "wait_for_event"}) {
    if (!buffers.Write(buffers.a, old)) return;
    Contents out(Buffers::kSize, 0);
    Gate gate(first);
    const bool holds = gate.Holds();
    report.Step("order by " + how);
    FakeStream& reader = how == "the stream itself" ? first : second;
    absl::Status status =
        first.CopyHostToDevice(buffers.a, fresh.data(), fresh.size());
    if (how == "create_stream_dependency") {
      status.Update(second.WaitForStream(first));
    } else if (how == "wait_for_event") {
      status.Update(first.RecordEvent(event));
      status.Update(second.WaitForEvent(event));
    }
    status.Update(
        reader.CopyDeviceToHost(out.data(), buffers.a, Buffers::kSize));
    std::thread opener = gate.OpenLater();
    report.Step("block_host_until_done");
    status.Update(reader.BlockHostUntilDone());
    const bool was_open = gate.is_open();
    const Contents seen = out;
    opener.join();
    status.Update(first.BlockHostUntilDone());
    status.Update(second.BlockHostUntilDone());
    report.Ok(status, "copies ordered by " + how);
    if (holds) {
      report.Expect(was_open, how +
                                  ": the copy did not wait, or "
                                  "block_host_until_done did not");
    }
    report.Expect(seen == fresh,
                  "a copy does not wait for the one before it, "
                  "ordered by " +
                      how);
  }
  Gate gate(first);
  const bool holds = gate.Holds();
  std::thread opener = gate.OpenLater();
  report.Step("synchronize_all_activity");
  report.Ok(device->SynchronizeAllActivity(), "synchronize_all_activity");
  const bool was_open = gate.is_open();
  opener.join();
  if (holds) {
    report.Expect(was_open,
                  "synchronize_all_activity returns before the work "
                  "of a stream has run");
  }
}

// Work that is enqueued must not refer to the call's structs and stack.
inline void CheckLateReads(Plugin& plugin) {
  Report& report = plugin.report();
  FakeDevice* const device = plugin.device();
  if (device == nullptr) return;
  Buffers buffers(report, *device);
  if (!buffers.ok()) return;
  FakeStream& stream = device->compute();
  const Contents old = Pattern(Buffers::kSize, 6);
  const Contents fresh = Pattern(Buffers::kSize, 7);
  if (!buffers.Write(buffers.a, old) || !buffers.Write(buffers.b, old)) return;
  Contents out(Buffers::kSize, 0);
  Gate gate(stream);
  const bool holds = gate.Holds();
  report.Step("a copy that runs after memcpy_htod has returned");
  // The structs for memory are freed, and filled with other bytes, on return.
  absl::Status status =
      stream.CopyHostToDevice(buffers.a, fresh.data(), fresh.size());
  OverwriteStack();
  report.Step("a copy that runs after memcpy_dtod has returned");
  status.Update(
      stream.CopyDeviceToDevice(buffers.b, buffers.a, Buffers::kSize));
  OverwriteStack();
  report.Step("a copy that runs after memcpy_dtoh has returned");
  status.Update(stream.CopyDeviceToHost(out.data(), buffers.b, Buffers::kSize));
  OverwriteStack();
  gate.Open();
  status.Update(stream.BlockHostUntilDone());
  if (!holds) return report.Skip("the device runs all work within the call");
  report.Ok(status, "copies on a held stream");
  report.Expect(out == fresh,
                "copies that run after their calls have returned move other "
                "bytes; they may read the calls' structs or stack: " +
                    Difference(out, fresh));
}

inline void CheckTimers(Plugin& plugin) {
  Report& report = plugin.report();
  FakeDevice* const device = plugin.device();
  if (device == nullptr) return;
  if (device->fns().start_timer == nullptr) {
    return report.Skip("start_timer is null");
  }
  FakeStream& stream = device->compute();
  auto created = device->CreateTimer();
  if (!report.Ok(created.status(), "create_timer")) return;
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  report.Step("start_timer");
  absl::Status status = stream.StartTimer(**created);
  status.Update(stream.RunOnHost([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return absl::OkStatus();
  }));
  report.Step("stop_timer");
  status.Update(stream.StopTimer(**created));
  status.Update(stream.BlockHostUntilDone());
  if (!report.Ok(status, "timer")) return;
  report.Step("nanoseconds");
  const uint64_t found = (*created)->Nanoseconds();
  const auto longest = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin)
          .count());
  // A timer of the device's own work need not count the host's.
  report.Expect(found != 0 && found <= longest,
                "nanoseconds() is " + std::to_string(found) +
                    " after work that took at most " + std::to_string(longest));
}

}  // namespace tfplug::check

#endif  // TFPLUG_CHECK_STREAMS_H_
