// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_LIKE_GPU_TEST_GRAPHS_H_
#define CUDA_LIKE_GPU_TEST_GRAPHS_H_

#include <tfplug/base/status_macros.h>
#include <tfplug/ir/value.h>
#include <tfplug/testing.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "absl/status/status.h"
#include "backend.h"
#include "generated_kernels.h"

namespace cuda_like {

// The median seconds of work: of the calls that enqueue it, and until the
// stream is done.
struct Times {
  double host = 0, all = 0;
};

template <class Work>
absl::StatusOr<Times> TimeBoth(tfplug::testing::FakeStream& stream,
                               const Work& work) {
  constexpr int kRuns = 31;
  std::vector<double> host, all;
  for (int run = 0; run <= kRuns; ++run) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    TFPLUG_RETURN_IF_ERROR(work());
    const auto enqueued = Clock::now();
    TFPLUG_RETURN_IF_ERROR(stream.BlockHostUntilDone());
    const auto done = Clock::now();
    if (run == 0) continue;  // compiles
    host.push_back(std::chrono::duration<double>(enqueued - start).count());
    all.push_back(std::chrono::duration<double>(done - start).count());
  }
  std::sort(host.begin(), host.end());
  std::sort(all.begin(), all.end());
  return Times{host[kRuns / 2], all[kRuns / 2]};
}

// Measures small launches one by one and as a graph, checks their result, and
// prints a Markdown table.
inline absl::Status CompareGraphs(Backend& backend,
                                  tfplug::testing::FakeDevice& device) {
  tfplug::testing::FakeStream& fake = device.compute();
  auto& stream = *static_cast<Stream*>(static_cast<void*>(fake.handle()));
  benchmarks::Memories memories(device);
  TFPLUG_ASSIGN_OR_RETURN(void* const memory, memories.Allocate(1024));
  const tfplug::Operand x =
      tfplug::Operand::Dense(memory, tfplug::DataType::kFloat, {256});
  TFPLUG_ASSIGN_OR_RETURN(
      const tfplug::Expression add,
      tfplug::MakeExpression({x.type}, {x.type},
                             [](tfplug::Value v) { return v + 1; }));
  std::printf(
      "\n| small launches | one by one: host, us | until done, us | as a "
      "graph: host, us | until done, us | capture, us |\n"
      "|---:|---:|---:|---:|---:|---:|\n");
  for (const int count : {4, 24, 200, 1000}) {
    const auto enqueue = [&](Stream& on) {
      tfplug::Launcher launcher = tfplug::MakeLauncher(backend, on, memories);
      absl::Status status;
      for (int i = 0; i < count && status.ok(); ++i) {
        status = launcher.Map(add, {x}, {x});
      }
      return status;
    };
    TFPLUG_ASSIGN_OR_RETURN(const Times single,
                            TimeBoth(fake, [&] { return enqueue(stream); }));
    const auto start = std::chrono::steady_clock::now();
    TFPLUG_ASSIGN_OR_RETURN(const auto graph, backend.Capture(stream, enqueue));
    const std::chrono::duration<double> capture =
        std::chrono::steady_clock::now() - start;
    TFPLUG_ASSIGN_OR_RETURN(const Times whole,
                            TimeBoth(fake, [&] { return graph->Launch(); }));
    std::printf("| %d | %.1f | %.1f | %.1f | %.1f | %.1f |\n", count,
                1e6 * single.host, 1e6 * single.all, 1e6 * whole.host,
                1e6 * whole.all, 1e6 * capture.count());
    std::fflush(stdout);
    // The launches of a graph follow each other.
    float result = 0;
    const tfplug::DeviceMemory device_memory(memory, 1024);
    TFPLUG_RETURN_IF_ERROR(fake.MemZero(device_memory, 1024));
    TFPLUG_RETURN_IF_ERROR(graph->Launch());
    TFPLUG_RETURN_IF_ERROR(fake.BlockHostUntilDone());
    TFPLUG_RETURN_IF_ERROR(
        device.CopyDeviceToHost(&result, device_memory, sizeof(result)));
    if (result != static_cast<float>(count)) {
      return absl::InternalError("a graph has another result");
    }
  }
  return absl::OkStatus();
}

}  // namespace cuda_like

#endif  // CUDA_LIKE_GPU_TEST_GRAPHS_H_
