// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_LIKE_GPU_TEST_PRODUCTS_H_
#define CUDA_LIKE_GPU_TEST_PRODUCTS_H_

#include <tfplug/base/status_macros.h>
#include <tfplug/testing.h>

#include <cstdint>
#include <cstdio>
#include <initializer_list>

#include "absl/status/status.h"
#include "backend.h"
#include "generated_kernels.h"

namespace cuda_like {

// Returns the median seconds of a product of n x n matrices.
inline absl::StatusOr<double> TimeProduct(Backend& backend,
                                          tfplug::testing::FakeDevice& device,
                                          tfplug::DataType type, int64_t n) {
  tfplug::testing::FakeStream& stream = device.compute();
  benchmarks::Memories memories(device);
  tfplug::Launcher launcher = tfplug::MakeLauncher(
      backend, *static_cast<Stream*>(static_cast<void*>(stream.handle())),
      memories);
  tfplug::Operand matrices[3];
  for (tfplug::Operand& matrix : matrices) {
    const int64_t size =
        n * n * static_cast<int64_t>(tfplug::DataTypeSize(type));
    TFPLUG_ASSIGN_OR_RETURN(void* const memory, memories.Allocate(size));
    TFPLUG_RETURN_IF_ERROR(stream.MemZero(
        tfplug::DeviceMemory(memory, static_cast<uint64_t>(size)),
        static_cast<uint64_t>(size)));
    matrix = tfplug::Operand::Dense(memory, type, {n, n});
  }
  return benchmarks::MedianTime(stream, 5, [&] {
    return launcher.MatMul(matrices[0], matrices[1], matrices[2]);
  });
}

// Measures products by cuBLAS and by tfplug's kernels, and prints a Markdown
// table. The last size is the first one of at least 50 ms.
inline absl::Status CompareProducts(Backend& kernels, Backend& blas,
                                    tfplug::testing::FakeDevice& device) {
  std::printf(
      "\n| product | cuBLAS, TFLOP/s | kernels, TFLOP/s | time of the kernels, "
      "compared |\n|---|---:|---:|---:|\n");
  using Type = tfplug::DataType;
  for (const Type type : {Type::kFloat, Type::kHalf, Type::kDouble}) {
    double seconds = 0;
    for (int64_t n = 64; n <= 8192 && seconds < 0.05; n *= 2) {
      TFPLUG_ASSIGN_OR_RETURN(seconds, TimeProduct(blas, device, type, n));
      TFPLUG_ASSIGN_OR_RETURN(const double ours,
                              TimeProduct(kernels, device, type, n));
      const double work = 2e-12 * static_cast<double>(n * n * n);
      const auto size = static_cast<long long>(n);
      std::printf("| %s, %lld x %lld | %.3f | %.3f | %.2f |\n",
                  tfplug::DataTypeName(type).c_str(), size, size,
                  work / seconds, work / ours, ours / seconds);
      std::fflush(stdout);
    }
  }
  return absl::OkStatus();
}

}  // namespace cuda_like

#endif  // CUDA_LIKE_GPU_TEST_PRODUCTS_H_
