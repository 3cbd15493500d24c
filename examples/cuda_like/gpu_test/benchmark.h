// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_LIKE_GPU_TEST_BENCHMARK_H_
#define CUDA_LIKE_GPU_TEST_BENCHMARK_H_

#include <tfplug/testing.h>

#include "absl/status/status.h"
#include "backend.h"

namespace cuda_like {

// Measures copies, kernels and launches on a device, and prints a table.
absl::Status RunBenchmarks(Backend& backend,
                           tfplug::testing::FakeDevice& device);

}  // namespace cuda_like

#endif  // CUDA_LIKE_GPU_TEST_BENCHMARK_H_
