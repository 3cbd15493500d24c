// SPDX-License-Identifier: Apache-2.0
// The graphs of examples/cuda_like on its emulated driver.
#include "graph.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <tfplug/ir/value.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend.h"
#include "plugin.h"

namespace cuda_like_test::graph_test {
namespace {

using cuda_like::Backend;
using cuda_like::Stream;
using tfplug::DataType;
using tfplug::DeviceMemory;
using tfplug::NewLaunchGraph;
using tfplug::Operand;

// Returns a number that the emulated driver has counted.
int64_t Count(const char* function) {
  void* const driver =
      dlopen(std::getenv("CUDA_LIKE_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(driver != nullptr);
  auto* const count = reinterpret_cast<int64_t (*)()>(dlsym(driver, function));
  REQUIRE((count != nullptr));
  return count();
}

// Matrices of 4 x 4 floats on a device, and work on them.
class Work {
 public:
  explicit Work(FakeDevice& device) : device_(device) {
    for (DeviceMemory& memory : memories_) memory = device.Allocate(64);
    Set(std::vector<float>(16, 1));
  }
  ~Work() {
    for (const DeviceMemory memory : memories_) device_.Deallocate(memory);
  }

  Stream& stream() {
    return *static_cast<Stream*>(
        static_cast<void*>(device_.compute().handle()));
  }
  void Set(std::vector<float> values) {
    CHECK(device_.CopyHostToDevice(memories_[0], values.data(), 64).ok());
  }
  std::vector<float> Get() {
    std::vector<float> values(16);
    CHECK(device_.compute().BlockHostUntilDone().ok());
    CHECK(device_.CopyDeviceToHost(values.data(), memories_[0], 64).ok());
    return values;
  }

  // Enqueues x = x + 1, `count` times.
  absl::Status Add(Stream& on, int count) {
    const auto add =
        tfplug::MakeExpression({DataType::kFloat}, {DataType::kFloat},
                               [](tfplug::Value x) { return x + 1; });
    absl::Status status = add.status();
    for (int i = 0; i < count && status.ok(); ++i) {
      status = MakeLauncher(on).Map(*add, {Matrix(0)}, {Matrix(0)});
    }
    return status;
  }
  // Enqueues x = (x x) + 1.
  absl::Status MultiplyAdd(Stream& on) {
    absl::Status status =
        MakeLauncher(on).MatMul(Matrix(0), Matrix(0), Matrix(1));
    const auto add =
        tfplug::MakeExpression({DataType::kFloat}, {DataType::kFloat},
                               [](tfplug::Value x) { return x + 1; });
    if (status.ok()) {
      status = MakeLauncher(on).Map(*add, {Matrix(1)}, {Matrix(0)});
    }
    return status;
  }

  DeviceMemory memory() const { return memories_[0]; }

  Backend backend;

 private:
  struct NoScratch : tfplug::Scratch {
    absl::StatusOr<void*> Allocate(int64_t) override {
      return absl::InternalError("no scratch");
    }
  };

  tfplug::Launcher MakeLauncher(Stream& on) {
    static NoScratch scratch;
    return tfplug::MakeLauncher(backend, on, scratch);
  }
  Operand Matrix(int i) const {
    return Operand::Dense(memories_[i].opaque(), DataType::kFloat, {4, 4});
  }

  FakeDevice& device_;
  DeviceMemory memories_[2];
};

TEST_CASE("a graph repeats its launches with one call") {
  Plugin plugin;
  Work work(plugin.device(0));
  CHECK(work.Add(work.stream(), 1).ok());
  CHECK(work.Get()[15] == 2);
  const int64_t kernels = Count("cudaLikeKernelLaunches");
  const int64_t graphs = Count("cudaLikeGraphLaunches");
  auto graph = work.backend.Capture(
      work.stream(), [&](Stream& on) { return work.Add(on, 24); });
  REQUIRE_MESSAGE(graph.ok(), graph.status().ToString());
  CHECK(work.Get()[15] == 2);  // nothing has run
  for (int i = 0; i < 3; ++i) CHECK((*graph)->Launch().ok());
  CHECK(work.Get() == std::vector<float>(16, 2 + 3 * 24));
  CHECK(Count("cudaLikeKernelLaunches") == kernels);
  CHECK(Count("cudaLikeGraphLaunches") == graphs + 3);
  // It is in the order of the stream.
  work.Set(std::vector<float>(16, 9));
  CHECK(work.Add(work.stream(), 1).ok());
  CHECK((*graph)->Launch().ok());
  CHECK(work.Add(work.stream(), 1).ok());
  CHECK(work.Get()[0] == 35);
}

TEST_CASE("a graph contains products by cuBLAS") {
  setenv("CUDA_LIKE_BLAS", std::getenv("CUDA_LIKE_DRIVER"), 1);
  {
    Plugin plugin;
    Work work(plugin.device(0));
    const auto multiply = [&](Stream& on) { return work.MultiplyAdd(on); };
    // Without a handle for the stream, there is none for its graphs.
    CHECK(work.backend.Capture(work.stream(), multiply).status() ==
          absl::FailedPreconditionError("cuBLAS was not used before"));
    CHECK(multiply(work.stream()).ok());
    CHECK(work.Get()[0] == 5);
    const int64_t products = Count("cudaLikeBlasProducts");
    auto graph = work.backend.Capture(work.stream(), multiply);
    REQUIRE_MESSAGE(graph.ok(), graph.status().ToString());
    CHECK((*graph)->Launch().ok());
    CHECK(work.Get() == std::vector<float>(16, 101));
    CHECK(Count("cudaLikeBlasProducts") == products + 1);
  }
  unsetenv("CUDA_LIKE_BLAS");
}

TEST_CASE("a failure of a capture is returned, and the next one works") {
  Plugin plugin;
  Work work(plugin.device(0));
  CHECK(work.Add(work.stream(), 1).ok());
  const auto add = [&](Stream& on) { return work.Add(on, 3); };
  for (const char* function :
       {"cuStreamBeginCapture_v2", "cuLaunchKernel", "cuStreamEndCapture",
        "cuGraphInstantiateWithFlags"}) {
    CAPTURE(function);
    Inject(function);
    const absl::Status status =
        work.backend.Capture(work.stream(), add).status();
    CHECK(absl::IsInternal(status));
    CHECK(std::string(function).find(std::string(status.message(), 0, 8)) == 0);
    auto graph = work.backend.Capture(work.stream(), add);
    REQUIRE_MESSAGE(graph.ok(), graph.status().ToString());
    CHECK((*graph)->Launch().ok());
  }
  CHECK(work.Get()[0] == 2 + 4 * 3);
}

TEST_CASE("a failed launch of a graph is returned") {
  Plugin plugin;
  Work work(plugin.device(0));
  auto graph = work.backend.Capture(
      work.stream(), [&](Stream& on) { return work.Add(on, 3); });
  REQUIRE(graph.ok());
  Inject("cuGraphLaunch");
  CHECK(absl::IsInternal((*graph)->Launch()));
  CHECK((*graph)->Launch().ok());
  CHECK(work.Get()[0] == 4);
}

TEST_CASE("what needs the host cannot be captured") {
  Plugin plugin;
  FakeDevice& device = plugin.device(0);
  Work work(device);
  const DeviceMemory memory = device.Allocate(64);
  char host[64] = {};
  const auto error_of = [&](const tfplug::CapturedWork<Stream>& calls) {
    return std::string(
        work.backend.Capture(work.stream(), calls).status().message());
  };
  CHECK(error_of([&](Stream& on) {
          return on.CopyHostToDevice(memory, host, 64);
        }) == "a graph cannot contain a copy from the host");
  CHECK(error_of([&](Stream& on) {
          return on.CopyDeviceToHost(host, memory, 64);
        }) == "a graph cannot contain a copy to the host");
  // A work that goes on after a call that no capture permits.
  CHECK(error_of([&](Stream& on) {
          CHECK(!on.BlockHostUntilDone().ok());
          CHECK(!work.Add(on, 1).ok());
          return absl::OkStatus();
        }).find("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED (901)") !=
        std::string::npos);
  auto graph = work.backend.Capture(
      work.stream(), [&](Stream& on) { return work.Add(on, 3); });
  CHECK(graph.ok());
  device.Deallocate(memory);
}

// CUDA forbids to wait for a context while a stream captures.
TEST_CASE("other threads wait for the device while a stream captures") {
  Plugin plugin;
  FakeDevice& device = plugin.device(0);
  Work work(device);
  std::thread other;
  absl::Status waited;
  auto graph = work.backend.Capture(work.stream(), [&](Stream& on) {
    other = std::thread([&] { waited = device.SynchronizeAllActivity(); });
    usleep(50000);
    return work.Add(on, 3);
  });
  other.join();
  CHECK_MESSAGE(graph.ok(), graph.status().ToString());
  CHECK_MESSAGE(waited.ok(), waited.ToString());
}

TEST_CASE("a graph may be destroyed while it runs, or after its stream") {
  Plugin plugin;
  Work work(plugin.device(0));
  {
    auto graph = work.backend.Capture(
        work.stream(), [&](Stream& on) { return work.Add(on, 3); });
    REQUIRE(graph.ok());
    CHECK((*graph)->Launch().ok());
  }
  CHECK(work.Get()[0] == 4);
  std::unique_ptr<tfplug::LaunchGraph> graph;
  {
    const auto other = plugin.device(0).CreateStream();
    REQUIRE(other.ok());
    auto& stream =
        *static_cast<Stream*>(static_cast<void*>((*other)->handle()));
    graph = *work.backend.Capture(stream,
                                  [&](Stream& on) { return work.Add(on, 3); });
    CHECK(graph->Launch().ok());
  }
  CHECK(graph->Launch() ==
        absl::FailedPreconditionError("the stream is destroyed"));
  CHECK(work.Get()[0] == 7);
}

// ---- Copies to the host (staging.h) ------------------------------------------

TEST_CASE("small copies to the host do not wait for the stream's kernels") {
  for (const bool is_staged : {true, false}) {
    CAPTURE(is_staged);
    if (!is_staged) setenv("CUDA_LIKE_STAGING", "0", 1);
    Plugin plugin;
    FakeDevice& device = plugin.device(0);
    Work work(device);
    auto& stream = device.compute();
    const int64_t before = Count("cudaLikeBlockingCopies");
    float found[16] = {}, seen = 0;
    const auto copy = [&] {
      std::fill(std::begin(found), std::end(found), 0.0f);
      CHECK(work.Add(work.stream(), 1).ok());
      CHECK(stream.CopyDeviceToHost(found, work.memory(), 64).ok());
    };
    // In the order of the stream: a task, an event, and both ways to wait.
    copy();
    CHECK(stream
              .RunOnHost([&] {
                seen = found[15];
                return absl::OkStatus();
              })
              .ok());
    CHECK(stream.BlockHostUntilDone().ok());
    CHECK(seen == 2);
    const auto event = device.CreateEvent();
    copy();
    CHECK(stream.RecordEvent(**event).ok());
    CHECK((*event)->BlockHost().ok());
    CHECK(found[15] == 3);
    copy();
    CHECK(stream.BlockHostUntilDone().ok());
    CHECK(found[15] == 4);
    copy();
    CHECK(device.SynchronizeAllActivity().ok());
    CHECK(found[15] == 5);
    CHECK(Count("cudaLikeBlockingCopies") == before + (is_staged ? 0 : 4));
    // More than there is memory for; all others wait.
    std::vector<std::vector<float>> all(200, std::vector<float>(16));
    for (auto& values : all) {
      CHECK(work.Add(work.stream(), 1).ok());
      CHECK(stream.CopyDeviceToHost(values.data(), work.memory(), 64).ok());
    }
    CHECK(stream.BlockHostUntilDone().ok());
    for (size_t i = 0; i < all.size(); ++i) {
      CHECK(all[i] == std::vector<float>(16, 6 + static_cast<float>(i)));
    }
    unsetenv("CUDA_LIKE_STAGING");
  }
}

TEST_CASE(
    "a copy to the host that fails, or whose callback does, is reported") {
  Plugin plugin;
  FakeDevice& device = plugin.device(0);
  Work work(device);
  auto& stream = device.compute();
  float found[16] = {};
  CHECK(work.Add(work.stream(), 1).ok());
  Inject("cuMemcpyDtoHAsync_v2");
  CHECK(!stream.CopyDeviceToHost(found, work.memory(), 64).ok());
  CHECK(stream.BlockHostUntilDone().ok());
  CHECK(stream.CopyDeviceToHost(found, work.memory(), 64).ok());
  Inject("cuStreamAddCallback");
  CHECK(!stream.BlockHostUntilDone().ok());
  CHECK(stream.CopyDeviceToHost(found, work.memory(), 64).ok());
  CHECK(stream.BlockHostUntilDone().ok());
  CHECK(found[0] == 2);
}

}  // namespace
}  // namespace cuda_like_test::graph_test
