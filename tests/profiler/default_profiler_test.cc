// SPDX-License-Identifier: Apache-2.0
#include <tfplug/plugin.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "fixture.h"
#include "profiler/xspace_reader.h"
#include "queue_device.h"

namespace {

// Takes 5 ms on the stream and nearly no time on the host.
class Slow : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    auto stream = context.GetStream<queue::Stream>();
    if (!stream.ok()) return stream.status();
    queue::Event event;
    event.flag = std::make_shared<::Flag>();
    auto status = (*stream)->WaitForEvent(event);
    if (!status.ok()) return status;
    std::thread([flag = event.flag] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      flag->Set();
    }).detach();
    return absl::OkStatus();
  }
};
class OnHost : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext&) override {
    return absl::OkStatus();
  }
};
// One class for two ops.
class Shared : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext&) override {
    return absl::OkStatus();
  }
};
class Failing : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext&) override {
    return absl::InternalError("failed on purpose");
  }
};

class Platform : public tfplug::Platform<queue::Device> {
 public:
  static constexpr char kName[] = "QUEUE", kType[] = "QUEUE";
  absl::StatusOr<int> DeviceCount() override { return 1; }
  tfplug::PlatformOptions Options() override {
    tfplug::PlatformOptions options;
    options.use_bfc_allocator = false;
    return options;
  }
};

}  // namespace

TFPLUG_REGISTER_DEVICE(Platform);
TFPLUG_REGISTER_KERNEL(Slow, tfplug::KernelDef("Slow"));
TFPLUG_REGISTER_KERNEL(OnHost, tfplug::KernelDef("OnHost"));
TFPLUG_REGISTER_KERNEL(Shared, tfplug::KernelDef("First"));
TFPLUG_REGISTER_KERNEL(Shared, tfplug::KernelDef("Second"));
TFPLUG_REGISTER_KERNEL(Failing, tfplug::KernelDef("Failing"));

namespace tfplug {
namespace {

using testing::FakeKernel;
using testing::KernelRun;
using testing::ProfilerHost;

class Profiled : public Fixture<::Platform> {
 public:
  Profiled() {
    TF_InitKernel();
    auto registered = ProfilerHost::Register(&TF_InitProfiler);
    REQUIRE_MESSAGE(registered.ok(), registered.status().ToString());
    profiler = *std::move(registered);
  }

  absl::Status Launch(const std::string& op, const std::string& node) {
    auto kernel = FakeKernel::Create({op, node, {}, {}}, "QUEUE");
    REQUIRE(kernel.ok());
    KernelRun run(**kernel, &device());
    run.context()->step_id = 42;
    return run.Run();
  }
  std::vector<xspace::Plane> Collect() {
    auto collected = profiler->Collect();
    REQUIRE_MESSAGE(collected.ok(), collected.status().ToString());
    return xspace::Read(*collected);
  }

  std::unique_ptr<ProfilerHost> profiler;
};

const xspace::Plane* Find(const std::vector<xspace::Plane>& planes,
                          const std::string& name) {
  for (const xspace::Plane& plane : planes) {
    if (plane.name == name) return &plane;
  }
  return nullptr;
}
// Returns the line "Stream #n" + `kind`: the numbers go on with each fixture.
const xspace::Line* FindStream(const xspace::Plane& plane,
                               const std::string& kind) {
  for (const xspace::Line& line : plane.lines) {
    const size_t number = line.name.find('#') + 1;
    const size_t end = line.name.find_first_not_of("0123456789", number);
    if (line.name.substr(end) == kind) return &line;
  }
  return nullptr;
}

constexpr char kDevice[] = "/device:GPU:0 (QUEUE:0)";
constexpr char kHost[] = "/host:CUPTI";

TEST_CASE(
    "Launches appear on the host and, with their duration, on the stream") {
  Profiled fixture;
  REQUIRE(fixture.profiler->Start().ok());
  CHECK(fixture.Launch("Slow", "layer/a").ok());
  CHECK(fixture.Launch("Slow", "layer/b").ok());
  CHECK(fixture.Launch("OnHost", "layer/c").ok());
  CHECK(fixture.Launch("Failing", "layer/d").code() ==
        absl::StatusCode::kInternal);
  REQUIRE(fixture.profiler->Stop().ok());

  const auto planes = fixture.Collect();
  const xspace::Plane* const device = Find(planes, kDevice);
  const xspace::Plane* const host = Find(planes, kHost);
  REQUIRE((device != nullptr && host != nullptr));
  const xspace::Line* const line = FindStream(*device, "(Compute)");
  REQUIRE(line != nullptr);
  REQUIRE_MESSAGE(line->events.size() == 2, "only Slow uses the stream");
  const auto on_host = host->Events("Slow");
  REQUIRE(on_host.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    const xspace::Event& event = line->events[i];
    CHECK(event.name == "Slow");
    CHECK(event.stats.at("tf_op") ==
          (i == 0 ? "layer/a:Slow" : "layer/b:Slow"));
    CHECK(event.duration_ps >= 5000000000);
    CHECK(event.stats.at("correlation_id") ==
          on_host[i].stats.at("correlation_id"));
    CHECK(on_host[i].stats.at("step") == "42");
    CHECK(event.begin_ps >= on_host[i].begin_ps);
  }
  CHECK(line->events[1].begin_ps >=
        line->events[0].begin_ps + line->events[0].duration_ps);
  CHECK(host->Events("OnHost").size() == 1);
  CHECK(host->Events("OnHost")[0].stats.count("correlation_id") == 0);
  CHECK(host->Events("Failing").size() == 1);
}

TEST_CASE("A kernel class for several ops is shown with the node's op") {
  Profiled fixture;
  REQUIRE(fixture.profiler->Start().ok());
  CHECK(fixture.Launch("First", "a").ok());
  CHECK(fixture.Launch("Second", "b").ok());
  REQUIRE(fixture.profiler->Stop().ok());
  const auto planes = fixture.Collect();
  CHECK(Find(planes, kHost)->Events("First")[0].stats.at("node") == "a");
  CHECK(Find(planes, kHost)->Events("Second")[0].stats.at("node") == "b");
}

TEST_CASE("Copies, fills, waits, host tasks and memory appear") {
  Profiled fixture;
  testing::FakeDevice& device = fixture.device();
  REQUIRE(fixture.profiler->Start().ok());
  char bytes[256] = {};
  const DeviceMemory memory = device.Allocate(256);
  CHECK(device.host_to_device().WaitForStream(device.compute()).ok());
  CHECK(device.host_to_device().CopyHostToDevice(memory, bytes, 256).ok());
  CHECK(device.host_to_device().BlockHostUntilDone().ok());
  CHECK(device.compute().Memset32(memory, {0x01020304}, 256).ok());
  CHECK(device.compute().Memset(memory, {7}, 64).ok());
  CHECK(device.compute().BlockHostUntilDone().ok());
  CHECK(device.CopyDeviceToHost(bytes, memory, 128).ok());
  device.Deallocate(memory);
  REQUIRE(fixture.profiler->Stop().ok());

  const auto planes = fixture.Collect();
  const xspace::Plane* const on_device = Find(planes, kDevice);
  const xspace::Plane* const host = Find(planes, kHost);
  REQUIRE((on_device != nullptr && host != nullptr));
  const xspace::Line* const copies = FindStream(*on_device, "(MemcpyH2D)");
  REQUIRE(copies != nullptr);
  REQUIRE(copies->events.size() == 1);
  CHECK(copies->events[0].name == "MemcpyH2D");
  CHECK(copies->events[0].stats.at("memcpy_details") ==
        "kind_src:pageable kind_dst:device size:256 dest:0 async:1");
  CHECK(FindStream(*on_device, " waits") != nullptr);
  REQUIRE(FindStream(*on_device, "(Memset)") != nullptr);
  CHECK(FindStream(*on_device, "(Memset)")->events.size() == 2);
  CHECK(host->Events("memset")[0].stats.at("bytes") == "64");
  const xspace::Line* const blocking = FindStream(*on_device, "(MemcpyD2H)");
  REQUIRE(blocking != nullptr);
  CHECK(blocking->events[0].begin_ps ==
        host->Events("sync_memcpy_dtoh")[0].begin_ps);
  CHECK(host->Events("memcpy_htod")[0].stats.at("bytes") == "256");
  CHECK(host->Events("create_stream_dependency").size() == 1);
  const auto allocated = host->Events("MemoryAllocation");
  REQUIRE(allocated.size() == 1);
  CHECK(allocated[0].stats.at("allocation_bytes") == "256");
  CHECK(host->Events("MemoryDeallocation")[0].stats.at("addr") ==
        allocated[0].stats.at("addr"));
}

TEST_CASE("A profile has the events between its start and its stop") {
  Profiled fixture;
  CHECK(internal::IsNullOrProfiled(nullptr));
  CHECK(fixture.profiler->Stop().ok());
  CHECK(fixture.Launch("OnHost", "before").ok());
  CHECK(fixture.profiler->Start().ok());
  CHECK(fixture.profiler->Start().ok());
  CHECK(fixture.Launch("OnHost", "first").ok());
  CHECK_MESSAGE(Find(fixture.Collect(), kHost)->Events("OnHost").size() == 1,
                "collected without a stop");
  CHECK(fixture.profiler->Stop().ok());
  CHECK(fixture.profiler->Stop().ok());
  CHECK(fixture.Launch("OnHost", "between").ok());
  fixture.device().Deallocate(fixture.device().Allocate(16));
  CHECK(Find(fixture.Collect(), kHost)->Events("MemoryAllocation").empty());
  CHECK(Find(fixture.Collect(), kHost)->Events("OnHost").size() == 1);
  CHECK(fixture.profiler->Start().ok());
  CHECK(fixture.Launch("OnHost", "second").ok());
  CHECK(fixture.profiler->Stop().ok());
  const auto planes = fixture.Collect();
  const auto events = Find(planes, kHost)->Events("OnHost");
  REQUIRE(events.size() == 1);
  CHECK(events[0].stats.at("node") == "second");
}

TEST_CASE("Threads have the ids that they have in TensorFlow's profiles") {
  CHECK(
      profiler_internal::ThreadIdsHave32Bits(internal::ParseRelease("2.12.1")));
  CHECK(
      profiler_internal::ThreadIdsHave32Bits(internal::ParseRelease("2.18.0")));
  CHECK_FALSE(
      profiler_internal::ThreadIdsHave32Bits(internal::ParseRelease("2.19.0")));
  CHECK_FALSE(profiler_internal::ThreadIdsHave32Bits(
      internal::ParseRelease("2.22.0-rc0")));
  Profiled fixture;  // 2.18
  CHECK(fixture.profiler->Start().ok());
  CHECK(fixture.Launch("OnHost", "node").ok());
  CHECK(fixture.profiler->Stop().ok());
  const auto planes = fixture.Collect();
  const std::hash<std::thread::id> hash;
  CHECK(Find(planes, kHost)->lines[0].id ==
        (hash(std::this_thread::get_id()) & 0xffffffff));
}

TEST_CASE("Threads without memory drop their events") {
  using profiler_internal::kMaxTraceBytes;
  using profiler_internal::Recorder;
  using profiler_internal::trace_bytes;
  Profiled fixture;
  CHECK(fixture.profiler->Start().ok());
  internal::Record record = {};
  record.name = "event";
  const uint64_t before = trace_bytes.load();
  trace_bytes = kMaxTraceBytes - 16;
  CHECK(profiler_internal::AllocateForTrace(17) == nullptr);
  void* const rest = profiler_internal::AllocateForTrace(16);
  CHECK(rest != nullptr);
  std::free(rest);
  std::atomic<int> added{0};
  std::vector<std::thread> threads;  // more than have left their buffers
  for (int i = 0; i < 64; ++i) {
    threads.emplace_back([&] {
      Recorder::Add(record, "");
      ++added;
      while (added < 64) std::this_thread::yield();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(fixture.profiler->Stop().ok());
  uint64_t kept = 0;
  const uint64_t dropped =
      Recorder::ForEach([&](int64_t, const internal::Record&) { ++kept; });
  CHECK(kept + dropped == 64);
  CHECK(dropped > 0);
  trace_bytes = before;

  // A thread with room for records has none for names.
  static auto& buffer = *new profiler_internal::ThreadBuffer;
  buffer.Add(1, record, "");
  trace_bytes = kMaxTraceBytes;
  buffer.Add(1, record, "node");
  trace_bytes = before;
  std::vector<const char*> nodes;
  buffer.ForEach(
      1, [&](const internal::Record& each) { nodes.push_back(each.node); });
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0] == nullptr);
  CHECK(nodes[1] == nullptr);
}

TEST_CASE("The buffers of threads that have exited are used again") {
  Profiled fixture;
  uint64_t bytes[8] = {};
  for (uint64_t& each : bytes) {
    CHECK(fixture.profiler->Start().ok());
    std::thread([] { profiler_internal::Recorder::Add({}, ""); }).join();
    CHECK(fixture.profiler->Stop().ok());
    each = profiler_internal::trace_bytes.load();
  }
  CHECK(bytes[7] == bytes[0]);
}

TEST_CASE("Memory is bounded, and dropped events are reported") {
  Profiled fixture;
  constexpr uint64_t kEvents = 10000000;
  CHECK(fixture.profiler->Start().ok());
  internal::Record record = {};
  record.kind = internal::Activity::kHostCall;
  record.name = "event";
  record.begin_ns = record.end_ns = profiler_internal::Recorder::NowNs();
  for (uint64_t i = 0; i < kEvents; ++i)
    profiler_internal::Recorder::Add(record, "");
  CHECK(profiler_internal::trace_bytes.load() <=
        profiler_internal::kMaxTraceBytes);
  CHECK(fixture.profiler->Stop().ok());
  uint64_t kept = 0;
  const uint64_t dropped = profiler_internal::Recorder::ForEach(
      [&](int64_t, const internal::Record&) { ++kept; });
  CHECK(kept > 1000000);
  CHECK(kept + dropped == kEvents);
  CHECK(fixture.profiler->Start().ok());
  CHECK(fixture.Launch("OnHost", "after").ok());
  CHECK(fixture.profiler->Stop().ok());
  const auto planes = fixture.Collect();
  CHECK(Find(planes, kHost)->Events("OnHost").size() == 1);
  CHECK_MESSAGE(Find(planes, kHost)->Events("dropped events").empty(),
                "the buffers are reused");
}

TEST_CASE("The end of a profile waits for its own work") {
  using profiler_internal::Recorder;
  constexpr uint64_t kForever = uint64_t{1} << 60;
  Profiled fixture;
  const DeviceMemory memory = fixture.device().Allocate(64);
  const auto block = [&] {
    const auto flag = std::make_shared<::Flag>();
    const auto wait = [flag] { return flag->Wait(), absl::OkStatus(); };
    CHECK(fixture.stream().RunOnHost(wait).ok());
    return flag;
  };
  const auto start_work = [&] {
    CHECK(fixture.profiler->Start().ok());
    CHECK(fixture.stream().Memset(memory, {1}, 64).ok());
  };
  const auto count_work = [&]() -> size_t {
    const auto planes = fixture.Collect();
    const xspace::Plane* const device = Find(planes, kDevice);
    return device == nullptr ? 0 : device->Events("memset").size();
  };

  auto flag = block();
  start_work();
  std::thread late([&] {
    while (internal::ActiveProfiling() != nullptr) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    flag->Set();
  });
  Recorder::Stop(kForever);
  late.join();
  CHECK(count_work() == 1);

  flag = block();
  start_work();
  Recorder::Stop(0);
  CHECK_MESSAGE(count_work() == 0, "the work has not ended");
  start_work();
  flag->Set();  // The end of the earlier work does not count.
  Recorder::Stop(kForever);
  CHECK(count_work() == 1);

  CHECK(fixture.profiler->Start().ok());
  queue::mistake = queue::Mistake::kRefusesTasks;
  CHECK(fixture.stream().Memset(memory, {1}, 64).ok());
  queue::mistake = queue::Mistake::kNone;
  Recorder::Stop(kForever);
  CHECK_MESSAGE(count_work() == 0, "its end is not known");
  CHECK(fixture.stream().BlockHostUntilDone().ok());
  fixture.device().Deallocate(memory);
}

TEST_CASE("Profiles start and stop while kernels run") {
  Profiled fixture;
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      auto kernel = FakeKernel::Create({"OnHost", "node", {}, {}}, "QUEUE");
      while (!is_done) {
        KernelRun run(**kernel, nullptr);
        if (!run.Run().ok()) std::abort();
      }
    });
  }
  threads.emplace_back([&] {
    char bytes[16] = {};
    const DeviceMemory memory = fixture.device().Allocate(16);
    while (!is_done) {
      if (!fixture.stream().CopyHostToDevice(memory, bytes, 16).ok()) {
        std::abort();
      }
      fixture.stream().BlockHostUntilDone().IgnoreError();
    }
    fixture.device().Deallocate(memory);
  });
  std::vector<std::thread> profilers;
  for (int i = 0; i < 2; ++i) {
    profilers.emplace_back([&] {
      for (int round = 0; round < 1000; ++round) {
        if (!fixture.profiler->Start().ok()) std::abort();
        if (!fixture.profiler->Stop().ok()) std::abort();
        if (round % 100 != 0) continue;
        const auto collected = fixture.profiler->Collect();
        if (!collected.ok()) continue;  // The other thread's took its place.
        xspace::Read(*collected);       // throws if it is malformed
      }
    });
  }
  for (std::thread& thread : profilers) thread.join();
  is_done = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tfplug
