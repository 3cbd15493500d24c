// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_CONFORMANCE_H_
#define TFPLUG_TESTING_CONFORMANCE_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "tfplug/testing/fake_device.h"
#include "tfplug/testing/internal/device_program.h"
#include "tfplug/testing/internal/device_run.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

struct ConformanceOptions {
  uint64_t seed = 1;
  // The time for finding failures; shrinking one takes up to 10 seconds more.
  double seconds = 1;
};

// A clock for the time that options allow.
class Deadline {
 public:
  explicit Deadline(double seconds)
      : end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(seconds))) {}
  bool has_passed() const { return Clock::now() >= end_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_;
};

// Returns `program` with a pause before each step on a stream: work that is
// late shows a mistake in each run.
inline DeviceProgram WithPauses(const DeviceProgram& program) {
  DeviceProgram slow;
  for (const Step& step : program) {
    if (IsOnStream(step.kind)) {
      slow.emplace_back().stream = step.stream;
    }
    slow.push_back(step);
  }
  return slow;
}

// Makes a failing program smaller for up to 10 seconds: removes steps, reduces
// sizes. `run` returns a difference, or "".
template <class Run>
class Shrinker {
 public:
  Shrinker(DeviceProgram program, std::string difference, Run run)
      : program_(std::move(program)),
        difference_(std::move(difference)),
        run_(std::move(run)) {}

  void Shrink() {
    // Whether it fails may depend on the speed of threads.
    const DeviceProgram original = program_;
    if (!Try(original) && !Try(WithPauses(original))) failures_needed_ = 1;
    RemoveAndReduce();
    // A smaller program may have passed by luck, which more runs show.
    runs_ = 15;
    RemoveAndReduce();
  }
  const DeviceProgram& program() const { return program_; }
  const std::string& difference() const { return difference_; }

 private:
  void RemoveAndReduce() {
    for (bool is_smaller = true; is_smaller && !deadline_.has_passed();) {
      is_smaller = false;
      for (size_t n = program_.size(); n > 0; n /= 2) {
        is_smaller = RemoveSteps(n) || is_smaller;
      }
      for (size_t i = 0; i < program_.size(); ++i) {
        is_smaller = ReduceSize(i) || is_smaller;
      }
    }
  }
  // Takes the program if it fails as often as needed in so many runs.
  bool Try(const DeviceProgram& program) {
    if (!IsRaceFree(program)) return false;
    int failures = 0;
    for (int left = runs_; failures < failures_needed_; --left) {
      if (left < failures_needed_ - failures) return false;
      if (deadline_.has_passed()) return false;
      std::string found = run_(program);
      if (found.empty()) continue;
      difference_ = std::move(found);
      ++failures;
    }
    program_ = program;
    return true;
  }
  bool RemoveSteps(size_t n) {
    bool is_smaller = false;
    for (size_t i = 0; i + n <= program_.size();) {
      DeviceProgram smaller = program_;
      const auto first = smaller.begin() + static_cast<std::ptrdiff_t>(i);
      smaller.erase(first, first + static_cast<std::ptrdiff_t>(n));
      const bool taken = Try(smaller);
      is_smaller = is_smaller || taken;
      if (!taken) ++i;
    }
    return is_smaller;
  }
  bool ReduceSize(size_t i) {
    const int64_t unit = program_[i].kind == StepKind::kMemset32 ? 4 : 1;
    const int64_t size = program_[i].size;
    for (const int64_t smaller_size : {unit, size / 2 / unit * unit}) {
      if (smaller_size == 0 || smaller_size >= size) continue;
      DeviceProgram smaller = program_;
      smaller[i].size = smaller_size;
      if (Try(smaller)) return true;
    }
    return false;
  }

  DeviceProgram program_;
  std::string difference_;
  const Run run_;
  const Deadline deadline_{10};
  int failures_needed_ = 3;
  int runs_ = 3;
};

// Checks that copies, fills, host tasks, events and streams of a device do what
// TensorFlow relies on. Random programs run on the device's four streams, and
// on a model that runs each step at once. INTERNAL if the results differ; the
// message has the smallest program found, in the names of tfplug's hooks.
//
//   CHECK(tfplug::testing::CheckDevice(device) == absl::OkStatus());
inline absl::Status CheckDevice(FakeDevice& device,
                                const ConformanceOptions& options = {}) {
  DeviceRun run(device);
  if (absl::Status status = run.Init(); !status.ok()) return status;
  const bool has_fills = run.HasFills(), has_memset32 = run.HasMemset32();
  const Deadline deadline(options.seconds);
  constexpr int kFewest = 20;
  for (int i = 0; i < kFewest || !deadline.has_passed(); ++i) {
    std::mt19937_64 random(options.seed + static_cast<uint64_t>(i));
    // A large copy takes longer than the call that enqueues it.
    const int64_t size = i % 8 == 7 ? DeviceRun::kBufferSize : 64;
    const DeviceProgram made =
        DeviceProgramMaker(random, size, has_fills, has_memset32).Make();
    const std::string found = run.Run(made, size);
    if (found.empty()) continue;
    Shrinker shrinker(made, found, [&](const DeviceProgram& smaller) {
      return run.Run(smaller, size);
    });
    shrinker.Shrink();
    const DeviceProgram& program = shrinker.program();
    std::string text =
        "the device does not conform. ConformanceOptions::seed = " +
        std::to_string(options.seed + static_cast<uint64_t>(i)) +
        " repeats it. The smallest program found:\n";
    for (size_t k = 0; k < program.size(); ++k) {
      text += std::to_string(k + 1) + ". " + StepText(program[k]) + "\n";
    }
    text += std::to_string(program.size() + 1) +
            ". host: BlockHostUntilDone of each stream (by default, a recorded "
            "event and BlockHost), SynchronizeAllActivity and "
            "CopyDeviceToHostSync of each buffer\n";
    return absl::InternalError(text + shrinker.difference());
  }
  return device.Problems();
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_CONFORMANCE_H_
