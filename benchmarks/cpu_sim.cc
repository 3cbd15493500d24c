// SPDX-License-Identifier: Apache-2.0
//
// Measures examples/cpu_sim and prints lines "NAME VALUE" for tools/bench.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/device.h"
#include "runtime/machine.h"
#include "runtime/stream.h"

namespace {

namespace rt = cpu_sim::rt;
using Clock = std::chrono::steady_clock;

template <class T>
T Value(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  std::exit(1);
}
void RequireOk(const absl::Status& status) {
  if (!status.ok()) Value(absl::StatusOr<int>(status));
}

double Seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double Median(std::vector<double> values) {
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Returns the time from the call that enqueues a host task to the task's first
// instruction, on a stream that has been idle for `idle`.
double LatencyMicroseconds(rt::Stream& stream, std::chrono::microseconds idle) {
  std::vector<double> seconds;
  for (int i = 0; i < 1000; ++i) {
    for (auto until = Clock::now() + idle; Clock::now() < until;) {
      if (idle.count() > 100) std::this_thread::sleep_for(idle);
    }
    const Clock::time_point enqueued = Clock::now();
    Clock::time_point ran;
    RequireOk(stream.RunOnHost([&ran] { ran = Clock::now(); }));
    RequireOk(stream.Synchronize());
    seconds.push_back(Seconds(ran - enqueued));
  }
  return 1e6 * Median(seconds);
}

double Seconds() {
  const auto now = Clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// Returns the time per task of empty tasks enqueued in a row.
double NanosecondsPerTask(rt::Stream& stream) {
  constexpr int kTasks = 100000;
  std::vector<double> seconds;
  for (int round = 0; round < 9; ++round) {
    const double start = Seconds();
    for (int i = 0; i < kTasks; ++i) RequireOk(stream.RunOnHost([] {}));
    RequireOk(stream.Synchronize());
    seconds.push_back((Seconds() - start) / kTasks);
  }
  return 1e9 * Median(seconds);
}

// Returns the median of the time of memcpy() ÷ the time of a copy of the same
// size on the stream, including enqueueing and waiting.
double RelativeBandwidth(rt::Device& device, rt::Stream& stream, size_t bytes) {
  std::vector<char> source(bytes, 1), target(bytes, 2);
  void* const memory = Value(device.Allocate(bytes));
  const int copies = std::max<int>(1, (size_t{32} << 20) / bytes);
  std::vector<double> ratios;
  for (int round = 0; round < 21; ++round) {
    const double start = Seconds();
    for (int i = 0; i < copies; ++i) {
      std::memcpy(target.data(), source.data(), bytes);
      asm volatile("" : : "r"(target.data()) : "memory");
    }
    const double between = Seconds();
    for (int i = 0; i < copies; ++i) {
      RequireOk(stream.CopyToDevice(memory, source.data(), bytes));
    }
    RequireOk(stream.Synchronize());
    const double end = Seconds();
    // The first round touches the memory for the first time.
    if (round > 0) {
      ratios.push_back((between - start) / (end - between));
    }
  }
  RequireOk(device.Free(memory));
  return Median(ratios);
}

}  // namespace

int main() {
  rt::Options options;
  options.devices = 1;
  options.strict = true;
  const auto machine = Value(rt::Machine::Create(options));
  rt::Device& device = *Value(machine->GetDevice(0));
  const auto stream = Value(rt::Stream::Create(device));

  using std::chrono::microseconds;
  std::printf("latency_awake_us %.2f\n",
              LatencyMicroseconds(*stream, microseconds(0)));
  std::printf("latency_asleep_us %.2f\n",
              LatencyMicroseconds(*stream, microseconds(500)));
  std::printf("task_ns %.0f\n", NanosecondsPerTask(*stream));
  for (size_t bytes : {size_t{64} << 10, size_t{1} << 20, size_t{32} << 20}) {
    std::printf("bandwidth_%zu %.3f\n", bytes >> 10,
                RelativeBandwidth(device, *stream, bytes));
  }
  return 0;
}
