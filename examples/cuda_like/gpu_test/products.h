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

// Returns the median seconds of multiply(launcher, matrices) for three matrices
// of n x n elements.
template <class Multiply>
absl::StatusOr<double> TimeProduct(Backend& backend,
                                   tfplug::testing::FakeDevice& device,
                                   tfplug::DataType type, int64_t n,
                                   const Multiply& multiply) {
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
  return benchmarks::MedianTime(stream, 5,
                                [&] { return multiply(launcher, matrices); });
}

// Measures products by cuBLAS and by tfplug's kernels, and prints a Markdown
// table: those of floats with TF32 as well. The last size is the first one of
// at least 50 ms.
inline absl::Status CompareProducts(Backend& kernels, Backend& blas,
                                    tfplug::testing::FakeDevice& device) {
  std::printf(
      "\n| product | cuBLAS, TFLOP/s | with TF32, TFLOP/s | kernels, TFLOP/s "
      "| time of the kernels, compared |\n|---|---:|---:|---:|---:|\n");
  using Type = tfplug::DataType;
  auto& stream =
      *static_cast<Stream*>(static_cast<void*>(device.compute().handle()));
  const auto multiply = [](tfplug::Launcher& launcher,
                           const tfplug::Operand* m) {
    return launcher.MatMul(m[0], m[1], m[2]);
  };
  const auto multiply_by = [&](bool tf32) {
    return [&stream, tf32](tfplug::Launcher&, const tfplug::Operand* m) {
      return stream.blas().Multiply(stream, *MakeBlasProduct(m[0], m[1], m[2]),
                                    tf32);
    };
  };
  for (const Type type : {Type::kFloat, Type::kHalf, Type::kDouble}) {
    double seconds = 0;
    for (int64_t n = 64; n <= 8192 && seconds < 0.05; n *= 2) {
      const double work = 2e-12 * static_cast<double>(n * n * n);
      TFPLUG_ASSIGN_OR_RETURN(
          seconds, TimeProduct(blas, device, type, n, multiply_by(false)));
      const auto size = static_cast<long long>(n);
      std::printf("| %s, %lld x %lld | %.3f | ",
                  tfplug::DataTypeName(type).c_str(), size, size,
                  work / seconds);
      if (type == Type::kFloat) {
        TFPLUG_ASSIGN_OR_RETURN(
            const double rounded,
            TimeProduct(blas, device, type, n, multiply_by(true)));
        std::printf("%.3f", work / rounded);
      }
      TFPLUG_ASSIGN_OR_RETURN(const double ours,
                              TimeProduct(kernels, device, type, n, multiply));
      std::printf(" | %.3f | %.2f |\n", work / ours, ours / seconds);
      std::fflush(stdout);
    }
  }
  return absl::OkStatus();
}

}  // namespace cuda_like

#endif  // CUDA_LIKE_GPU_TEST_PRODUCTS_H_
