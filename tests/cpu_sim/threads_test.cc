// SPDX-License-Identifier: Apache-2.0
#include "kernels/threads.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "levels.h"

namespace cpu_sim::threads_test {
namespace {

// Calls f(block, slot) on the threads.
template <class F>
void Run(Threads& threads, int64_t blocks, F f) {
  threads.Run(
      blocks,
      [](void* context, int64_t block, int64_t slot) {
        (*static_cast<F*>(context))(block, slot);
      },
      &f);
}

TEST_CASE("each block runs once, and no slot is used twice at the same time") {
  for (const int count : {1, 2, 3, 8}) {
    Threads threads(count);
    for (const int64_t blocks : {0, 1, 2, 7, 1000}) {
      // Neither is atomic: a second thread would be a race.
      std::vector<int> runs(static_cast<size_t>(blocks));
      std::vector<int> of_slot(static_cast<size_t>(count));
      Run(threads, blocks, [&](int64_t block, int64_t slot) {
        REQUIRE(slot < count);
        ++runs[static_cast<size_t>(block)];
        ++of_slot[static_cast<size_t>(slot)];
      });
      int64_t sum = 0;
      for (const int each : of_slot) sum += each;
      CHECK(sum == blocks);
      for (const int each : runs) CHECK(each == 1);
    }
  }
}

TEST_CASE("an exception of a block is thrown after the other blocks") {
  for (const int count : {2, 8}) {
    Threads threads(count);
    std::atomic<int> runs{0};
    CHECK_THROWS_AS(Run(threads, 100,
                        [&](int64_t block, int64_t) {
                          ++runs;
                          if (block == 50) throw std::runtime_error("50");
                        }),
                    std::runtime_error);
    CHECK(runs == 100);
  }
}

TEST_CASE("several streams, and blocks, use the threads at the same time") {
  Threads threads(3);
  std::atomic<int> runs{0};
  const auto stream = [&] {
    for (int i = 0; i < 50; ++i) {
      Run(threads, 10, [&](int64_t, int64_t) {
        Run(threads, 3, [&](int64_t, int64_t) { ++runs; });
      });
    }
  };
  std::vector<std::thread> streams;
  for (int i = 0; i < 4; ++i) streams.emplace_back(stream);
  for (std::thread& each : streams) each.join();
  CHECK(runs == 4 * 50 * 10 * 3);
}

TEST_CASE("CPU_SIM_THREADS must be a number from 1 to 256") {
  for (const char* text : {"", "0", "-1", "257", "2 or 3", "two"}) {
    setenv("CPU_SIM_THREADS", text, 1);
    CHECK(Threads::CountFromEnvironment().status().message() ==
          "CPU_SIM_THREADS=" + std::string(text) +
              " is invalid; expected a number from 1 to 256");
  }
  setenv("CPU_SIM_THREADS", "3", 1);
  CHECK(Threads::CountFromEnvironment().value() == 3);
  unsetenv("CPU_SIM_THREADS");
  CHECK(Threads::CountFromEnvironment().value() >= 1);
}

// The default is the number of processors, which may be one here; this test must
// come before the first use of Threads::Get().
TEST_CASE("batch normalization of many rows uses all threads") {
  setenv("CPU_SIM_THREADS", "4", 1);
  REQUIRE(Threads::Get().count() == 4);
  const int64_t rows = 40000, depth = 17;
  const Floats x = Draw(rows * depth), ones(static_cast<size_t>(depth), 1);
  Doubles want_mean(ones.size());
  for (size_t i = 0; i < x.size(); ++i) want_mean[i % depth] += x[i];
  for (double& each : want_mean) each /= static_cast<double>(rows);
  ForEachLevel([&](const SimdCode& code) {
    Output y(rows * depth), mean(depth);
    Floats next(ones.size()), variance(ones.size());
    code.batch_norm.training({rows, depth, 0.001f, 1}, x.data(), ones.data(),
                             ones.data(), ones.data(), ones.data(), y.data(),
                             next.data(), next.data(), mean.data(),
                             variance.data());
    mean.Check(want_mean);
    Doubles want(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t c = i % static_cast<size_t>(depth);
      want[i] = (x[i] - want_mean[c]) / std::sqrt(variance[c] + 0.001) + 1;
    }
    y.Check(want);
  });
}

}  // namespace
}  // namespace cpu_sim::threads_test
