// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_COMPILED_CHECK_GRAPHS_H_
#define TFPLUG_TESTS_COMPILED_CHECK_GRAPHS_H_

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "fixture.h"
#include "tfplug/ir/value.h"
#include "tfplug/primitives/backend.h"

// Tests of graphs (Backend::Capture) of a device with buffers: CaptureGraph.
namespace tfplug {

template <class Platform, class BackendT>
class GraphTests {
 public:
  using Stream = typename BackendT::Stream;
  static constexpr int kSize = 1000;
  static constexpr uint64_t kBytes = kSize * sizeof(float);

  GraphTests() {
    for (DeviceMemory& memory : memories_) {
      memory = device().Allocate(kBytes);
      Set(memory, 0);
    }
  }
  ~GraphTests() {
    for (const DeviceMemory memory : memories_) device().Deallocate(memory);
  }

  // Enqueues x = x + 1, and then y = x + 1, `count` times: one program.
  absl::Status Add(Stream& on, int count) {
    const auto add = MakeExpression({DataType::kFloat}, {DataType::kFloat},
                                    [](Value x) { return x + 1; });
    absl::Status status = add.status();
    for (int i = 0; i < count && status.ok(); ++i) {
      status = Launcher(on).Map(*add, {Vector(0)}, {Vector(0)});
      if (status.ok())
        status = Launcher(on).Map(*add, {Vector(0)}, {Vector(1)});
    }
    return status;
  }
  auto Capture(int count) {
    return backend_.Capture(stream(),
                            [=](Stream& on) { return Add(on, count); });
  }

  // Launches repeat the work, in the order of the stream.
  void CheckResults() {
    CHECK(Add(stream(), 1) == absl::OkStatus());
    const auto graph = Capture(200);  // more than a batch's arguments
    REQUIRE_MESSAGE(graph.ok(), graph.status().ToString());
    CheckX(1);  // nothing has run
    for (int i = 0; i < 3; ++i) CHECK((*graph)->Launch() == absl::OkStatus());
    CheckX(601);
    Set(memories_[0], 7);
    CHECK(Add(stream(), 1) == absl::OkStatus());
    CHECK((*graph)->Launch() == absl::OkStatus());
    CHECK(Add(stream(), 1) == absl::OkStatus());
    CheckX(209);
    // Another stream waits for the graph, and the graph for that stream.
    const auto other = device().CreateStream().value();
    const auto event = device().CreateEvent().value();
    CHECK((*graph)->Launch() == absl::OkStatus());
    CHECK(device().compute().RecordEvent(*event) == absl::OkStatus());
    CHECK(other->WaitForEvent(*event) == absl::OkStatus());
    CHECK(Add(StreamOf(*other), 1) == absl::OkStatus());
    CHECK(other->RecordEvent(*event) == absl::OkStatus());
    CHECK(device().compute().WaitForEvent(*event) == absl::OkStatus());
    CHECK((*graph)->Launch() == absl::OkStatus());
    CheckX(610);
  }

  // A graph may be destroyed while it runs, or after its stream.
  void CheckLifetime() {
    {
      const auto graph = Capture(50);
      REQUIRE(graph.ok());
      CHECK(Add(stream(), 1) == absl::OkStatus());
      CHECK((*graph)->Launch() == absl::OkStatus());
    }
    CheckX(51);
    std::unique_ptr<LaunchGraph> graph;
    {
      const auto other = device().CreateStream().value();
      graph = *backend_.Capture(StreamOf(*other),
                                [&](Stream& on) { return Add(on, 3); });
      CHECK(graph->Launch() == absl::OkStatus());
      CHECK(other->BlockHostUntilDone() == absl::OkStatus());
    }
    CHECK(graph->Launch() ==
          absl::FailedPreconditionError("the stream is destroyed"));
    CheckX(54);
  }

  // A graph fails when an address may stand for another buffer.
  void CheckReplacedMemory() {
    const auto graph = Capture(3);
    REQUIRE(graph.ok());
    const DeviceMemory unrelated = device().Allocate(kBytes);
    CHECK((*graph)->Launch() == absl::OkStatus());
    device().Deallocate(unrelated);
    CHECK((*graph)->Launch() ==
          absl::FailedPreconditionError(
              "memory was released since the graph was captured"));
    CheckX(3);
    const auto again = Capture(3);
    REQUIRE(again.ok());
    CHECK((*again)->Launch() == absl::OkStatus());
    CheckX(6);
    // Memory that is released in the meantime may be that of an operand.
    const auto during = backend_.Capture(stream(), [&](Stream& on) {
      absl::Status status = Add(on, 3);
      device().Deallocate(device().Allocate(kBytes));
      return status;
    });
    REQUIRE(during.ok());
    CHECK_FALSE((*during)->Launch().ok());
    CheckX(6);
  }

  // Failures of the work are returned, and leave the stream as it was.
  // `error` is a part of those of calls that cannot be recorded.
  void CheckFailures(const std::string& error) {
    CHECK(backend_
              .Capture(stream(),
                       [&](Stream& on) {
                         CHECK(Add(on, 3) == absl::OkStatus());
                         return absl::AbortedError("in the work");
                       })
              .status() == absl::AbortedError("in the work"));
    const DeviceMemory memory = memories_[0];
    char host[kBytes] = {};
    typename Stream::Event event;
    const auto check = [&](auto call) {
      const auto status =
          backend_.Capture(stream(), [&](Stream& on) { return call(on); })
              .status();
      CHECK_MESSAGE(
          std::string(status.message()).find(error) != std::string::npos,
          status.ToString());
    };
    check([&](Stream& on) { return on.CopyHostToDevice(memory, host, 4); });
    check(
        [&](Stream& on) { return on.CopyHostToDevice(memory, host, kBytes); });
    check([&](Stream& on) { return on.CopyDeviceToHost(host, memory, 4); });
    check([&](Stream& on) { return on.BlockHostUntilDone(); });
    check([&](Stream& on) { return on.RecordEvent(event); });
    check([&](Stream& on) {
      const auto command = stream().Mark();
      CHECK(command.ok());
      event.Set(*command);
      return on.WaitForEvent(event);
    });
    int runs = 0;
    check([&](Stream& on) {
      return on.RunOnHost(
          HostTask([](void* argument,
                      capi::TF_Status*) { ++*static_cast<int*>(argument); },
                   &runs));
    });
    CHECK(runs == 0);
    CHECK(device().compute().BlockHostUntilDone() == absl::OkStatus());
    CHECK(Add(stream(), 1) == absl::OkStatus());
    CheckX(1);
  }

  // Timers have the time of a graph's launches: 1000 kernels.
  void CheckTimer() {
    const auto graph = Capture(500);
    REQUIRE(graph.ok());
    CHECK((*graph)->Launch() == absl::OkStatus());
    CHECK(device().compute().BlockHostUntilDone() == absl::OkStatus());
    typename Stream::Timer timer;
    const auto begin = std::chrono::steady_clock::now();
    CHECK(stream().StartTimer(timer) == absl::OkStatus());
    CHECK((*graph)->Launch() == absl::OkStatus());
    CHECK(stream().StopTimer(timer) == absl::OkStatus());
    const auto time = std::chrono::nanoseconds(timer.Nanoseconds().value());
    CHECK(time > std::chrono::microseconds(50));
    CHECK(time < 2 * (std::chrono::steady_clock::now() - begin));
  }

 private:
  struct NoScratch final : Scratch {
    absl::StatusOr<void*> Allocate(int64_t) override {
      return absl::InternalError("no scratch");
    }
  };

  testing::FakeDevice& device() { return fixture_.device(); }
  static Stream& StreamOf(testing::FakeStream& stream) {
    return *static_cast<Stream*>(static_cast<void*>(stream.handle()));
  }
  Stream& stream() { return StreamOf(device().compute()); }
  tfplug::Launcher Launcher(Stream& on) {
    return MakeLauncher(backend_, on, scratch_);
  }
  Operand Vector(int i) const {
    return Operand::Dense(memories_[i].opaque(), DataType::kFloat, {kSize});
  }
  void Set(DeviceMemory memory, float value) {
    const std::vector<float> values(kSize, value);
    CHECK(device().CopyHostToDevice(memory, values.data(), kBytes) ==
          absl::OkStatus());
  }
  void CheckX(float x) {
    CHECK(device().compute().BlockHostUntilDone() == absl::OkStatus());
    std::vector<float> found(kSize);
    for (const int i : {0, 1}) {
      CHECK(device().CopyDeviceToHost(found.data(), memories_[i], kBytes) ==
            absl::OkStatus());
      CHECK(found == std::vector<float>(kSize, i == 0 ? x : x + 1));
    }
  }

  Fixture<Platform> fixture_;
  BackendT backend_;
  NoScratch scratch_;
  DeviceMemory memories_[2];
};

// Runs all tests. `error` is a part of those of calls that cannot be recorded.
template <class Platform, class BackendT>
void CheckGraphs(const std::string& error) {
  GraphTests<Platform, BackendT> tests;
  SUBCASE("a graph repeats its launches, in the order of the stream") {
    tests.CheckResults();
  }
  SUBCASE("a graph may be destroyed while it runs, or after its stream") {
    tests.CheckLifetime();
  }
  SUBCASE("a graph fails when addresses may stand for other buffers") {
    tests.CheckReplacedMemory();
  }
  SUBCASE("calls that cannot be captured fail, and the stream works") {
    tests.CheckFailures(error);
  }
  SUBCASE("timers have the time of a graph") { tests.CheckTimer(); }
}

}  // namespace tfplug

#endif  // TFPLUG_TESTS_COMPILED_CHECK_GRAPHS_H_
