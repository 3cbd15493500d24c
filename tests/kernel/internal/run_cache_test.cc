// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/kernel/internal/run_cache.h>

#include <array>
#include <thread>

#include "leak_checked_fake.h"

namespace tfplug::kernel_internal::run_cache_test {
namespace {

// Thread sanitizer reports a race here if the holders are not ordered.
TEST_CASE(
    "one run at a time holds the cache and sees the previous run's writes") {
  testing::LeakCheckedFake fake;
  RunCache cache;
  std::array<capi::TF_OpKernelContext, 2> contexts;
  std::array<int, 2> acquired{};
  int writes = 0;  // written by the holder only
  std::array<std::thread, 2> threads;
  for (size_t t = 0; t < threads.size(); ++t) {
    threads[t] = std::thread([&, t] {
      for (int i = 0; i < 20000; ++i) {
        if (!cache.TryAcquire(&contexts[t])) continue;
        ++writes;
        ++acquired[t];
        cache.Release();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(writes == acquired[0] + acquired[1]);
  CHECK(writes > 0);
  REQUIRE(cache.TryAcquire(&contexts[0]));
  CHECK_FALSE(cache.TryAcquire(&contexts[1]));
  CHECK(cache.status() != nullptr);
  CHECK(cache.outputs() == 0);
  cache.Release();
  CHECK(cache.TryAcquire(&contexts[1]));
}

TEST_CASE("a bit for each of the first 64 outputs") {
  testing::LeakCheckedFake fake;
  capi::TF_OpKernelContext context;
  for (const auto& [outputs, bits] : {std::pair<size_t, uint64_t>{0, 0},
                                      {1, 1},
                                      {63, ~uint64_t{0} >> 1},
                                      {64, ~uint64_t{0}},
                                      {65, ~uint64_t{0}}}) {
    context.outputs.assign(outputs, {capi::TF_FLOAT, false, {}});
    CHECK(RunCache::OutputsOf(&context) == bits);
  }
}

}  // namespace
}  // namespace tfplug::kernel_internal::run_cache_test
