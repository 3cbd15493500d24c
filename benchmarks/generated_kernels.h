// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BENCHMARKS_GENERATED_KERNELS_H_
#define TFPLUG_BENCHMARKS_GENERATED_KERNELS_H_

#include <tfplug/base/status_macros.h>
#include <tfplug/compiled/compiled.h>
#include <tfplug/ir/value.h>
#include <tfplug/testing.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace benchmarks {

using tfplug::DataType;
using tfplug::DeviceMemory;
using tfplug::Expression;
using tfplug::Launcher;
using tfplug::Operand;
using tfplug::Value;

// Memory of the device, which is released in the end.
class Memories final : public tfplug::Scratch {
 public:
  explicit Memories(tfplug::testing::FakeDevice& device) : device_(device) {}
  ~Memories() override {
    for (const DeviceMemory memory : all_) device_.Deallocate(memory);
  }

  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    const DeviceMemory memory = device_.Allocate(static_cast<uint64_t>(bytes));
    if (memory.opaque() == nullptr) {
      return absl::ResourceExhaustedError("the device has no memory left");
    }
    all_.push_back(memory);
    return memory.opaque();
  }

 private:
  tfplug::testing::FakeDevice& device_;
  std::vector<DeviceMemory> all_;
};

// Returns the median time in seconds of `work`, which enqueues, until the
// stream is done. One run before the others compiles.
template <class Work>
absl::StatusOr<double> MedianTime(tfplug::testing::FakeStream& stream, int runs,
                                  Work work) {
  std::vector<double> times;
  for (int run = 0; run <= runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    TFPLUG_RETURN_IF_ERROR(work());
    TFPLUG_RETURN_IF_ERROR(stream.BlockHostUntilDone());
    const std::chrono::duration<double> passed =
        std::chrono::steady_clock::now() - start;
    if (run > 0) times.push_back(passed.count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Measures a compiled backend's copies, kernels and launches, and prints a
// Markdown table.
template <class Backend>
class GeneratedKernels {
 public:
  using Stream = typename Backend::Stream;

  GeneratedKernels(Backend& backend, tfplug::testing::FakeDevice& device)
      : device_(device),
        stream_(device.compute()),
        scratch_(device),
        launcher_(tfplug::MakeLauncher(
            backend,
            *static_cast<Stream*>(static_cast<void*>(stream_.handle())),
            scratch_)) {}

  absl::Status Run() {
    std::printf("| what | time | rate |\n|---|---:|---:|\n");
    TFPLUG_RETURN_IF_ERROR(Copies());
    TFPLUG_RETURN_IF_ERROR(Chain());
    TFPLUG_RETURN_IF_ERROR(Sum());
    TFPLUG_RETURN_IF_ERROR(Products());
    return Launches();
  }

 private:
  static constexpr int64_t kFloats = 1 << 24;
  static constexpr uint64_t kBytes = sizeof(float) * kFloats;
  // How often each measurement is repeated; the median is printed.
  static constexpr int kRuns = 15;

  template <class Work>
  absl::StatusOr<double> Time(Work work) {
    return MedianTime(stream_, kRuns, work);
  }

  static void Print(const char* what, double seconds, double rate,
                    const char* unit) {
    std::printf("| %s | %.1f us | %.1f %s |\n", what, 1e6 * seconds,
                rate / seconds / 1e9, unit);
  }

  absl::StatusOr<DeviceMemory> Allocate(int64_t bytes) {
    TFPLUG_ASSIGN_OR_RETURN(void* const address, scratch_.Allocate(bytes));
    const DeviceMemory memory(address, static_cast<uint64_t>(bytes));
    TFPLUG_RETURN_IF_ERROR(stream_.MemZero(memory, memory.size()));
    return memory;
  }

  absl::Status Copies() {
    TFPLUG_ASSIGN_OR_RETURN(const DeviceMemory a, Allocate(kBytes));
    TFPLUG_ASSIGN_OR_RETURN(const DeviceMemory b, Allocate(kBytes));
    void* const host = device_.AllocateHost(kBytes);
    if (host == nullptr) return absl::ResourceExhaustedError("host memory");
    auto to_device =
        Time([&] { return stream_.CopyHostToDevice(a, host, kBytes); });
    auto to_host =
        Time([&] { return stream_.CopyDeviceToHost(host, a, kBytes); });
    device_.DeallocateHost(host);
    TFPLUG_RETURN_IF_ERROR(to_device.status());
    TFPLUG_RETURN_IF_ERROR(to_host.status());
    Print("copy of 64 MiB to the device", *to_device, kBytes, "GB/s");
    Print("copy of 64 MiB to the host", *to_host, kBytes, "GB/s");
    TFPLUG_ASSIGN_OR_RETURN(
        copy_, Time([&] { return stream_.CopyDeviceToDevice(b, a, kBytes); }));
    Print("copy of 64 MiB on the device", copy_, 2.0 * kBytes, "GB/s");
    return absl::OkStatus();
  }

  absl::Status Chain() {
    TFPLUG_ASSIGN_OR_RETURN(const DeviceMemory x, Allocate(kBytes));
    TFPLUG_ASSIGN_OR_RETURN(const DeviceMemory y, Allocate(kBytes));
    TFPLUG_ASSIGN_OR_RETURN(
        const Expression chain,
        tfplug::MakeExpression(
            {DataType::kFloat}, {DataType::kFloat},
            [](Value v) { return Max((Abs(v) * 2 + 1) * v - 3, v) * v + 4; }));
    TFPLUG_ASSIGN_OR_RETURN(
        const double seconds,
        Time([&] { return Map(chain, {View(x, kFloats)}, View(y, kFloats)); }));
    Print("chain of 8 element-wise ops on 16M floats", seconds, 2.0 * kBytes,
          "GB/s");
    std::printf("| the chain, compared with the copy | %.2f | |\n",
                seconds / copy_);
    return absl::OkStatus();
  }

  absl::Status Sum() {
    TFPLUG_ASSIGN_OR_RETURN(const DeviceMemory x, Allocate(kBytes));
    TFPLUG_ASSIGN_OR_RETURN(const DeviceMemory y, Allocate(kBytes));
    tfplug::Reduction sum;
    TFPLUG_ASSIGN_OR_RETURN(
        sum.map, tfplug::MakeExpression({DataType::kFloat}, {DataType::kFloat},
                                        [](Value v) { return v; }));
    sum.finish = sum.map;
    for (const int64_t rows : {int64_t{1}, int64_t{4096}}) {
      TFPLUG_ASSIGN_OR_RETURN(
          const double seconds, Time([&] {
            std::vector<Operand> in = {Operand::Dense(
                x.opaque(), DataType::kFloat, {rows, kFloats / rows})};
            std::vector<Operand> out = {
                Operand::Dense(y.opaque(), DataType::kFloat, {rows})};
            return launcher_.Reduce(sum, absl::MakeSpan(in),
                                    absl::MakeSpan(out));
          }));
      Print(rows == 1 ? "sum of 16M floats" : "sums of 4,096 rows of 4,096",
            seconds, kBytes, "GB/s");
    }
    return absl::OkStatus();
  }

  absl::Status Products() {
    for (const int64_t n : {256, 1024}) {
      TFPLUG_ASSIGN_OR_RETURN(const DeviceMemory a, Allocate(4 * n * n));
      TFPLUG_ASSIGN_OR_RETURN(const DeviceMemory b, Allocate(4 * n * n));
      TFPLUG_ASSIGN_OR_RETURN(const DeviceMemory c, Allocate(4 * n * n));
      const auto matrix = [n](DeviceMemory memory) {
        return Operand::Dense(memory.opaque(), DataType::kFloat, {n, n});
      };
      TFPLUG_ASSIGN_OR_RETURN(const double seconds, Time([&] {
                                return launcher_.MatMul(matrix(a), matrix(b),
                                                        matrix(c));
                              }));
      Print(n == 256 ? "product of 256 x 256 matrices"
                     : "product of 1,024 x 1,024 matrices",
            seconds, 2.0 * static_cast<double>(n * n * n), "GFLOP/s");
    }
    return absl::OkStatus();
  }

  // The time of the host for one launch.
  absl::Status Launches() {
    constexpr int kLaunches = 1000;
    TFPLUG_ASSIGN_OR_RETURN(const DeviceMemory memory, Allocate(1024));
    TFPLUG_ASSIGN_OR_RETURN(
        const Expression add,
        tfplug::MakeExpression({DataType::kFloat, DataType::kFloat},
                               {DataType::kFloat},
                               [](Value v, Value w) { return v + w; }));
    TFPLUG_ASSIGN_OR_RETURN(
        const double seconds, Time([&] {
          absl::Status status;
          for (int i = 0; i < kLaunches && status.ok(); ++i) {
            status =
                Map(add, {View(memory, 1), View(memory, 1)}, View(memory, 1));
          }
          return status;
        }));
    Print("launch of a sum of two floats, 1 of 1,000", seconds / kLaunches, 1,
          "G/s");
    return absl::OkStatus();
  }

  static Operand View(DeviceMemory memory, int64_t size) {
    return Operand::Dense(memory.opaque(), DataType::kFloat, {size});
  }
  absl::Status Map(const Expression& expression, std::vector<Operand> inputs,
                   Operand output) {
    return launcher_.Map(expression, absl::MakeSpan(inputs),
                         absl::MakeSpan(&output, 1));
  }

  tfplug::testing::FakeDevice& device_;
  tfplug::testing::FakeStream& stream_;
  Memories scratch_;
  Launcher launcher_;
  double copy_ = 0;
};

}  // namespace benchmarks

#endif  // TFPLUG_BENCHMARKS_GENERATED_KERNELS_H_
