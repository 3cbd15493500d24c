// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/testing.h>
#include <tfplug/testing/process.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

// Many threads use the four streams of cpu_sim's two devices at once, through
// TensorFlow's allocator, copies and kernels, and end with the right sums.
// $TFPLUG_STRESS is the number of operations.
namespace tfplug::host_stress_test {
namespace {

using testing::HostDevice;
using testing::TF_Tensor;

constexpr int kThreads = 8;

// A sum that a thread keeps on a device, and what it must be.
class Sum {
 public:
  Sum(testing::Process& process, testing::FakeKernel& add, uint64_t seed)
      : add_(add), random_(seed) {
    for (int i = 0; i < 2; ++i) devices_[i] = process.Device("SIM", i).value();
    size_ = static_cast<int64_t>(1 + random_() % 2000);
    value_ = Upload(0);
  }

  // Does one of: add a number, move to the other device, read, allocate.
  void Operate() {
    switch (random_() % 4) {
      case 0: {
        const float x = static_cast<float>(random_() % 100);
        Add(Upload(x));
        expected_ += x;
        break;
      }
      case 1:
        value_ = devices_[at_]->CopyTo(*devices_[1 - at_], *value_).value();
        at_ = 1 - at_;
        break;
      case 2:
        Check();
        break;
      default:
        devices_[at_]->Allocate(1 + random_() % 100000);
    }
  }
  void Check() {
    const TF_Tensor host = devices_[at_]->CopyToHost(*value_).value();
    const auto elements =
        testing::ReadTensor<float>(nullptr, host).value().elements;
    if (elements != std::vector<float>(elements.size(), expected_)) ++wrong;
  }
  static inline std::atomic<int> wrong{0};

 private:
  TF_Tensor Upload(float x) {
    const std::vector<float> elements(static_cast<size_t>(size_), x);
    return devices_[at_]
        ->CopyFromHost(testing::MakeTensor<float>({size_}, elements))
        .value();
  }
  void Add(TF_Tensor x) {
    testing::KernelRun run(add_, &devices_[at_]->device());
    run.AddInput(std::move(*value_));
    run.AddInput(std::move(x));
    run.AddOutput(DataType::kFloat);
    if (run.Compute().ok()) {
      value_ = *run.output(0);
    } else {
      ++wrong;
    }
  }

  testing::FakeKernel& add_;
  std::mt19937_64 random_;
  HostDevice* devices_[2];
  int at_ = 0;
  int64_t size_ = 0;
  float expected_ = 0;
  std::optional<TF_Tensor> value_;
};

TEST_CASE("many threads, streams and operations end with the right sums") {
  testing::MakeFakeTensorFlow();  // sets the result of TF_Version
  const char* const path = std::getenv("TFPLUG_TEST_PLUGIN");
  REQUIRE(path != nullptr);
  const char* const wanted = std::getenv("TFPLUG_STRESS");
  const int operations = wanted == nullptr ? 8000 : std::atoi(wanted);
  testing::Process process;
  const absl::Status loaded = process.Load(path);
  REQUIRE_MESSAGE(loaded.ok(), loaded.ToString());
  auto add = testing::FakeKernel::Create(
      {"AddV2", "add", {{"T", DataType::kFloat}}, {}}, "SIM");
  REQUIRE_MESSAGE(add.ok(), add.status().ToString());
  const int64_t tensors = testing::LiveTensorCount();
  REQUIRE(process.Device("SIM").ok());
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&process, &add, t, operations] {
      Sum sum(process, **add, static_cast<uint64_t>(t));
      for (int i = 0; i < operations / kThreads; ++i) sum.Operate();
      sum.Check();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(Sum::wrong == 0);
  CHECK(testing::LiveTensorCount() == tensors);
  CHECK(process.Problems() == absl::OkStatus());
}

}  // namespace
}  // namespace tfplug::host_stress_test
