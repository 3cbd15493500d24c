// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sys/wait.h>
#include <tfplug/base/internal/guard.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "fixture.h"
#include "minimal_device.h"
#include "recording_device.h"

// Tests that however a hook fails, TensorFlow receives a status or the failure
// value of the slot, nothing leaks, and the next call works.
namespace tfplug::guard_test {
namespace {

using recording::Fault;
using recording::Record;

std::vector<Fault> AllFaults() {
#if defined(__cpp_exceptions)
  return {Fault::kStatus, Fault::kException, Fault::kBadAlloc, Fault::kUnknown};
#else
  return {Fault::kStatus};
#endif
}

absl::Status Expected(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      break;
    case Fault::kStatus:
      return absl::DataLossError("driver error 7");
    case Fault::kException:
      return absl::InternalError("C++ exception: driver refused");
    case Fault::kBadAlloc:
      return absl::ResourceExhaustedError(
          "out of host memory (std::bad_alloc)");
    case Fault::kUnknown:
      return absl::InternalError("C++ exception of type int");
  }
  return absl::OkStatus();
}

// Has enough devices for a new one in each case.
class Platform : public recording::Platform {
 public:
  absl::StatusOr<int> DeviceCount() override {
    absl::StatusOr<int> count = recording::Platform::DeviceCount();
    return count.ok() ? 1000 : count;
  }
};

using Recording = Fixture<Platform>;

class FaultFixture : public Recording {
 protected:
  testing::FakeDevice& d() { return device(); }
  absl::Status MakeDevice() { return host().Device(++last_ordinal_).status(); }

  std::unique_ptr<testing::FakeEvent> event_ = d().CreateEvent().value();
  std::unique_ptr<testing::FakeTimer> timer_ = d().CreateTimer().value();
  DeviceMemory memory_{recording::Memory::Address(0x100), 64};
  char host_[64] = {};
  int last_ordinal_ = 0;
};

struct StatusSlot {
  const char* slot;
  const char* hook;
  std::function<absl::Status()> call;
};

TEST_CASE_FIXTURE(FaultFixture,
                  "slots with a TF_Status return the error after their name") {
  const auto create = [](auto made) { return made.status(); };
  const std::vector<StatusSlot> slots = {
      {"create_stream", "Stream", [&] { return create(d().CreateStream()); }},
      {"create_stream", "Stream::Init",
       [&] { return create(d().CreateStream()); }},
      {"create_stream_with_options", "Stream",
       [&] { return create(d().CreateStream(StreamOptions())); }},
      {"create_stream_with_options", "Stream::Init",
       [&] { return create(d().CreateStream(StreamOptions())); }},
      {"create_event", "Event", [&] { return create(d().CreateEvent()); }},
      {"create_event", "Event::Init",
       [&] { return create(d().CreateEvent()); }},
      {"create_timer", "Timer", [&] { return create(d().CreateTimer()); }},
      {"create_timer", "Timer::Init",
       [&] { return create(d().CreateTimer()); }},
      {"get_stream_status", "GetStatus", [&] { return stream().GetStatus(); }},
      {"create_stream_dependency", "WaitForStream",
       [&] { return stream().WaitForStream(d().host_to_device()); }},
      {"record_event", "RecordEvent",
       [&] { return stream().RecordEvent(*event_); }},
      {"wait_for_event", "WaitForEvent",
       [&] { return stream().WaitForEvent(*event_); }},
      {"block_host_for_event", "Event::BlockHost",
       [&] { return event_->BlockHost(); }},
      {"start_timer", "StartTimer",
       [&] { return stream().StartTimer(*timer_); }},
      {"stop_timer", "StopTimer", [&] { return stream().StopTimer(*timer_); }},
      {"memcpy_htod", "CopyHostToDevice",
       [&] { return stream().CopyHostToDevice(memory_, host_, 64); }},
      {"memcpy_dtoh", "CopyDeviceToHost",
       [&] { return stream().CopyDeviceToHost(host_, memory_, 64); }},
      {"memcpy_dtod", "CopyDeviceToDevice",
       [&] { return stream().CopyDeviceToDevice(memory_, memory_, 64); }},
      {"mem_zero", "MemZero", [&] { return stream().MemZero(memory_, 64); }},
      {"memset", "Memset",
       [&] { return stream().Memset(memory_, BytePattern{1}, 64); }},
      {"memset32", "Memset32",
       [&] { return stream().Memset32(memory_, WordPattern{1}, 64); }},
      {"block_host_until_done", "BlockHostUntilDone",
       [&] { return stream().BlockHostUntilDone(); }},
      {"synchronize_all_activity", "SynchronizeAllActivity",
       [&] { return d().SynchronizeAllActivity(); }},
      {"sync_memcpy_htod", "CopyHostToDeviceSync",
       [&] { return d().CopyHostToDevice(memory_, host_, 64); }},
      {"sync_memcpy_dtoh", "CopyDeviceToHostSync",
       [&] { return d().CopyDeviceToHost(host_, memory_, 64); }},
      {"sync_memcpy_dtod", "CopyDeviceToDeviceSync",
       [&] { return d().CopyDeviceToDevice(memory_, memory_, 64); }},
      {"create_device", "Device::Init", [&] { return MakeDevice(); }},
      {"create_device", "Memory::Init", [&] { return MakeDevice(); }},
      {"create_device", "Device", [&] { return MakeDevice(); }},
      {"create_device", "Memory", [&] { return MakeDevice(); }},
      {"create_device", "HardwareName", [&] { return MakeDevice(); }},
      {"create_device", "Vendor", [&] { return MakeDevice(); }},
      {"create_device", "PciBusId", [&] { return MakeDevice(); }},
  };
  const std::vector<std::string> can_only_throw = {
      "Stream", "Event",        "Timer",  "Device",
      "Memory", "HardwareName", "Vendor", "PciBusId"};
  for (const StatusSlot& slot : slots) {
    for (const Fault fault : AllFaults()) {
      CAPTURE(std::string(slot.hook));
      CAPTURE(static_cast<int>(fault));
      if (fault == Fault::kStatus &&
          std::count(can_only_throw.begin(), can_only_throw.end(), slot.hook)) {
        continue;
      }
      const int64_t statuses = testing::LiveStatusCount();
      Record::Get().Take();
      Record::Get().Fail(slot.hook, fault);
      const absl::Status expected = Expected(fault);
      CHECK(slot.call() ==
            absl::Status(expected.code(), std::string(slot.slot) + ": " +
                                              std::string(expected.message())));
      CHECK(Record::Get().fault_was_reached());
      CHECK(testing::LiveStatusCount() == statuses);
      // Every object that was constructed has been destroyed.
      int alive = 0;
      for (const std::string& call : Record::Get().Take()) {
        alive += call[0] == '+' ? 1 : call[0] == '-' ? -1 : 0;
      }
      CHECK(alive == 0);
      CHECK(log().lines().empty());
    }
    CAPTURE(std::string(slot.hook));
    CHECK(slot.call().ok());
  }
}

struct LoggedSlot {
  const char* slot;
  const char* hook;
  std::function<bool()> call;  // returns whether TensorFlow receives a success
  bool can_return_status;
};

TEST_CASE_FIXTURE(
    FaultFixture,
    "slots without a TF_Status return a failure value and log a line") {
  void* const address = recording::Memory::Address(0x100);
  const std::vector<LoggedSlot> slots = {
      {"allocate", "Allocate",
       [&] {
         const DeviceMemory memory = d().Allocate(8);
         return !memory.is_null() || memory.size() != 0;
       },
       true},
      {"deallocate", "Deallocate",
       [&] {
         d().Deallocate(memory_);
         return false;
       },
       true},
      {"host_memory_allocate", "AllocateHost",
       [&] { return d().AllocateHost(8) != nullptr; }, true},
      {"host_memory_deallocate", "DeallocateHost",
       [&] {
         d().DeallocateHost(address);
         return false;
       },
       true},
      {"unified_memory_allocate", "AllocateUnified",
       [&] { return d().AllocateUnified(8) != nullptr; }, true},
      {"unified_memory_deallocate", "DeallocateUnified",
       [&] {
         d().DeallocateUnified(address);
         return false;
       },
       true},
      {"get_allocator_stats", "Stats", [&] { return d().Stats().has_value(); },
       true},
      {"device_memory_usage", "Usage", [&] { return d().Usage().has_value(); },
       true},
      {"get_event_status", "Event::Poll",
       [&] { return event_->Poll() == EventStatus::kPending; }, true},
      {"nanoseconds", "Timer::Nanoseconds",
       [&] { return timer_->Nanoseconds() != 0; }, true},
      {"get_numa_node", "NumaNode", [&] { return d().NumaNode() != 0; }, false},
      {"get_memory_bandwidth", "MemoryBandwidth",
       [&] { return d().MemoryBandwidth() != -1; }, false},
      {"get_gflops", "Gflops", [&] { return d().Gflops() != -1; }, false},
      {"get_device_count", "DeviceCount",
       [&] { return host().DeviceCount().value() != 0; }, true},
      {"host_callback", "RunOnHost",
       [&] { return stream().RunOnHost([] { return absl::OkStatus(); }).ok(); },
       true},
  };
  size_t lines = 0;
  for (const LoggedSlot& slot : slots) {
    for (const Fault fault : AllFaults()) {
      CAPTURE(std::string(slot.hook));
      CAPTURE(static_cast<int>(fault));
      if (fault == Fault::kStatus && !slot.can_return_status) continue;
      // An exception in RunOnHost also destroys the task, which logs another
      // line.
      const bool drops_task =
          std::string(slot.hook) == "RunOnHost" && fault != Fault::kStatus;
      Record::Get().Fail(slot.hook, fault);
      CHECK_FALSE(slot.call());
      CHECK(Record::Get().fault_was_reached());
      lines += drops_task ? 2 : 1;
      REQUIRE(log().lines().size() == lines);
      CHECK(log().lines().back() == "tfplug: " + std::string(slot.slot) + ": " +
                                        Expected(fault).ToString());
      d().Allocate(8);  // so that the next failure is the first in a row
    }
    slot.call();
    CAPTURE(std::string(slot.hook));
    CHECK(log().lines().size() == lines);
  }
}

TEST_CASE("GuardOrLog returns whether the hook succeeded") {
  testing::FakeOptions options;
  options.release = {2, 18};  // has TF_Log
  testing::ScopedFakeTensorFlow fake(options);
  testing::LogCapture log;
  using Result = absl::StatusOr<int>;
  int used = 0;
  const auto use = [&](int value) { used = value; };
  CHECK(internal::GuardOrLog(
      "slot", []() -> Result { return 7; }, use));
  CHECK(used == 7);
  CHECK_FALSE(internal::GuardOrLog(
      "slot", []() -> Result { return absl::InternalError("failed"); }, use));
}

TEST_CASE("payloads survive when the slot is prepended") {
  testing::ScopedFakeTensorFlow fake;
  const absl::Status result =
      testing::CallWithStatus([](capi::TF_Status* status) {
        internal::Guard(status, "slot", [] {
          absl::Status failure = absl::UnavailableError("link down");
          failure.SetPayload("key", absl::Cord("value"));
          return failure;
        });
      });
  CHECK(result.message() == "slot: link down");
  CHECK(result.GetPayload("key") == absl::Cord("value"));
}

#if defined(__cpp_exceptions)
TEST_CASE("value() of a StatusOr that holds an error returns that error") {
  testing::ScopedFakeTensorFlow fake;
  const absl::Status result =
      testing::CallWithStatus([](capi::TF_Status* status) {
        internal::Guard(status, "slot", [] {
          const absl::StatusOr<int> value = absl::NotFoundError("no device");
          return value.value() == 0 ? absl::OkStatus() : absl::OkStatus();
        });
      });
  CHECK(result == absl::NotFoundError("slot: no device"));
}
#endif

#if defined(__cpp_exceptions)
TEST_CASE("an exception whose what() is null has a placeholder message") {
  struct NoMessage : std::exception {
    const char* what() const noexcept override { return nullptr; }
  };
  testing::ScopedFakeTensorFlow fake;
  const absl::Status result =
      testing::CallWithStatus([](capi::TF_Status* status) {
        internal::Guard(status, "slot",
                        []() -> absl::Status { throw NoMessage(); });
      });
  CHECK(result == absl::InternalError("slot: C++ exception: (no message)"));
}
#endif

#if defined(__cpp_exceptions) && defined(__GLIBCXX__)
// Returns what a child process writes to standard error, and its exit status.
std::pair<std::string, int> RunChild(void (*run)()) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGABRT, SIGSEGV}) std::signal(signal, SIG_DFL);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    run();
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[256];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, n);
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return {text, status};
}

TEST_CASE("pthread_exit in a hook aborts, and the log says why") {
  std::string text;
  int status = 0;  // clang++ captures no structured bindings.
  std::tie(text, status) = RunChild([] {
    testing::ScopedFakeTensorFlow fake;
    internal::tensorflow.TF_Log = nullptr;  // as from 2.21 on
    (void)testing::CallWithStatus([](capi::TF_Status* status) {
      internal::Guard(status, "slot",
                      []() -> absl::Status { pthread_exit(nullptr); });
    });
  });
  CAPTURE(text);
  CAPTURE(status);
  CHECK(text.find("pthread_exit or pthread_cancel: ended a thread inside a "
                  "hook") != std::string::npos);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
}
#endif

TEST_CASE("OK overwrites an earlier error") {
  testing::ScopedFakeTensorFlow fake;
  const absl::Status result =
      testing::CallWithStatus([](capi::TF_Status* status) {
        SetStatus(status, absl::InternalError("old"));
        internal::Guard(status, "slot", [] { return absl::OkStatus(); });
      });
  CHECK(result.ok());
}

}  // namespace
}  // namespace tfplug::guard_test
