// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fixture.h"
#include "queue_device.h"
#include "tfplug/op_kernels/device_then_read_kernel.h"
#include "tfplug/op_kernels/host_task_kernel.h"
#include "tfplug/op_kernels/internal/shards.h"
#include "tfplug/op_kernels/read_then_host_kernel.h"
#include "tfplug/op_kernels/register.h"
#include "tfplug/primitives/reference_backend.h"

// Kernels whose functions run on threads that TensorFlow did not start: an
// exception there fails the op, and the process goes on.
namespace {

using Platform = minimal::PlatformOf<queue::Device>;

[[maybe_unused]] bool throws = false;

// Throws if the test has set `throws`.
absl::Status MayThrow() {
#if defined(__cpp_exceptions)
  if (throws) throw std::runtime_error("it threw");
#endif
  return absl::OkStatus();
}

class Host final : public tfplug::HostTaskKernel {
 public:
  absl::StatusOr<std::vector<tfplug::Shape>> ShapesOf(
      absl::Span<const tfplug::Shape> inputs) const override {
    return std::vector<tfplug::Shape>{inputs[0]};
  }
  absl::Status Compute(
      absl::Span<const tfplug::HostArray> inputs,
      absl::Span<const tfplug::HostArray> outputs) const override {
    outputs[0].as<float>()[0] = inputs[0].as<float>()[0] + 1;
    return MayThrow();
  }
};

int64_t late_size = 1;

class LateHost final : public tfplug::ReadThenHostKernel {
 public:
  absl::Status Compute(absl::Span<const tfplug::HostArray> inputs,
                       tfplug::HostOutputs& outputs) const override {
    outputs.Add(inputs[0].type, {late_size}).as<float>()[0] =
        inputs[0].as<float>()[0] + 2;
    return MayThrow();
  }
};

class ReadBack final : public tfplug::DeviceThenReadKernel {
 public:
  absl::StatusOr<tfplug::Operand> Begin(tfplug::OpRun& run) const override {
    TFPLUG_ASSIGN_OR_RETURN(
        const tfplug::Operand one,
        run.launcher().Allocate(tfplug::DataType::kInt64, {1}));
    TFPLUG_RETURN_IF_ERROR(tfplug::primitives::Fill(run.launcher(), one, 1));
    return one;
  }
  absl::Status End(tfplug::OpRun& run, const tfplug::Operand& /*vector*/,
                   absl::Span<const int64_t> numbers) const override {
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Operand y,
                            run.AllocateOutput(0, {numbers[0]}));
    TFPLUG_RETURN_IF_ERROR(tfplug::primitives::Fill(run.launcher(), y, 3));
    return MayThrow();
  }
};

void ThrowingOps(const tfplug::Registrar& registrar) {
  const auto def = [](const char* op) {
    return tfplug::KernelDef(op).TypeConstraint<float>("T");
  };
  registrar.Add<Host>(def("Relu"));
  registrar.Add<LateHost>(def("Elu"));
  registrar.Add<ReadBack>(def("Selu"));
}
TFPLUG_REGISTER_DEVICE(Platform);
TFPLUG_REGISTER_BACKEND(tfplug::ReferenceBackend<queue::Stream>, ThrowingOps);

#if defined(__cpp_exceptions)

// Runs the kernel of `op` on [4]; writes the first element of the output.
absl::Status RunOp(tfplug::Fixture<Platform>& fixture, const char* op,
                   float* result) {
  tfplug::testing::Node node;
  node.op = op;
  node.name = "thrower";
  node.attrs["T"] = tfplug::DataType::kFloat;
  auto kernel =
      tfplug::testing::FakeKernel::Create(node, fixture.host().device_type());
  REQUIRE_MESSAGE(kernel.ok(), kernel.status().ToString());
  tfplug::testing::KernelRun run(**kernel, &fixture.device());
  run.AddInput<float>({{1}, {4}});
  run.AddOutput(tfplug::DataType::kFloat);
  absl::Status status = run.Run();
  if (status.ok()) *result = run.Output<float>(0).elements[0];
  return status;
}

TEST_CASE(
    "an exception on another thread fails the op, and the next one runs") {
  tfplug::Fixture<Platform> fixture;
  tfplug::testing::KernelRegistry::Get().Refill(&TF_InitKernel);
  const std::pair<const char*, float> ops[] = {
      {"Relu", 5}, {"Elu", 6}, {"Selu", 3}};
  for (const auto& each : ops) {
    const char* const op = each.first;
    INFO(op);
    float result = 0;
    throws = true;
    const absl::Status status = RunOp(fixture, op, &result);
    throws = false;
    CHECK(absl::IsInternal(status));
    CHECK(status.message().find("it threw") != std::string::npos);
    CHECK(RunOp(fixture, op, &result).ok());
    CHECK(result == each.second);
  }
}

TEST_CASE("an output that no memory can hold fails the op") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  MESSAGE("skipped: a sanitizer's operator new aborts instead of throwing");
  return;
#endif
  tfplug::Fixture<Platform> fixture;
  tfplug::testing::KernelRegistry::Get().Refill(&TF_InitKernel);
  float result = 0;
  // The size in bytes overflows to 0, is negative, or is merely too large.
  for (const int64_t size : {int64_t{1} << 62, int64_t{-1}, int64_t{1} << 56}) {
    late_size = size;
    CHECK(absl::IsResourceExhausted(RunOp(fixture, "Elu", &result)));
  }
  late_size = 1;
  CHECK(RunOp(fixture, "Elu", &result).ok());
}

TEST_CASE("a continuation that takes long does not delay others") {
  using tfplug::op_kernels_internal::Continuations;
  Flag first_ran, second_ran;
  CHECK(Continuations::Add([&] {
          second_ran.Wait();
          first_ran.Set();
        }).ok());
  CHECK(Continuations::Add([&] { second_ran.Set(); }).ok());
  first_ran.Wait();
}

TEST_CASE("a task or continuation that throws does not end its thread") {
  tfplug::Fixture<Platform> fixture;
  const tfplug::op_kernels_internal::HostAccess& host =
      *tfplug::op_kernels_internal::HostAccessOf<queue::Stream>();
  queue::Device device;
  queue::Stream stream(device);
  CHECK(host.run(&stream, [] { throw std::bad_alloc(); }).ok());
  Flag task_ran, continuation_ran;
  CHECK(host.run(&stream, [&] { task_ran.Set(); }).ok());
  task_ran.Wait();
  using tfplug::op_kernels_internal::Continuations;
  CHECK(Continuations::Add([] { throw 1; }).ok());
  CHECK(Continuations::Add([&] { continuation_ran.Set(); }).ok());
  continuation_ran.Wait();
}

TEST_CASE("a shard that throws fails them all") {
  using tfplug::op_kernels_internal::ForEachShard;
  const absl::Status status = ForEachShard(100, 4, [](int64_t begin, int64_t) {
    if (begin > 50) throw std::runtime_error("it threw");
    return absl::OkStatus();
  });
  CHECK(status.message().find("it threw") != std::string::npos);
}

#endif

TEST_CASE("shards contain each number once") {
  using tfplug::op_kernels_internal::ForEachShard;
  for (const int64_t count : {0, 1, 2, 7, 100, 1000}) {
    for (const int64_t threads : {0, 1, 2, 50}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
      const absl::Status status =
          ForEachShard(count, threads, [&](int64_t begin, int64_t end) {
            CHECK(begin < end);
            for (; begin < end; ++begin) ++runs[static_cast<size_t>(begin)];
            return absl::OkStatus();
          });
      CHECK(status.ok());
      for (const std::atomic<int>& n : runs) CHECK(n == 1);
    }
  }
}

TEST_CASE("no shard waits for a thread that works for another kernel") {
  using tfplug::op_kernels_internal::Continuations;
  using tfplug::op_kernels_internal::ForEachShard;
  Flag end;
  const int busy = 2 + static_cast<int>(std::thread::hardware_concurrency());
  std::atomic<int> ended = 0;
  for (int i = 0; i < busy; ++i) {
    CHECK(Continuations::Add([&] {
            end.Wait();
            ++ended;
          }).ok());
  }
  int64_t sum = 0;
  CHECK(ForEachShard(10, 4, [&](int64_t begin, int64_t last) {
          for (; begin < last; ++begin) sum += begin;
          return absl::OkStatus();
        }).ok());
  CHECK(sum == 45);
  end.Set();
  while (ended < busy) std::this_thread::yield();
}

TEST_CASE("shards end at the first error") {
  using tfplug::op_kernels_internal::ForEachShard;
  std::atomic<int64_t> most = 0;
  const absl::Status status =
      ForEachShard(1000, 2, [&](int64_t begin, int64_t end) {
        if (begin > most) most = begin;
        return end > 500 ? absl::DataLossError("at 500") : absl::OkStatus();
      });
  CHECK(status == absl::DataLossError("at 500"));
  CHECK(most < 900);
}

}  // namespace
