// SPDX-License-Identifier: Apache-2.0
#include "kernels/simd.h"

#include <cstdlib>

#include "absl/strings/string_view.h"
#include "kernels/row_code.h"

namespace cpu_sim {

namespace baseline {
extern const SimdCode kCode;
extern const RowCode kRows;
}  // namespace baseline
#ifdef CPU_SIM_WIDE_LEVELS
namespace v3 {
extern const SimdCode kCode;
extern const RowCode kRows;
}  // namespace v3
namespace v4 {
extern const SimdCode kCode;
extern const RowCode kRows;
}  // namespace v4
#endif

const SimdCode& SimdUpTo([[maybe_unused]] const char* level) {
  const SimdCode* best = &baseline::kCode;
#ifdef CPU_SIM_WIDE_LEVELS
  const auto use = [&](const SimdCode& code, bool can_run) {
    if (can_run && absl::string_view(code.level) <= level) best = &code;
  };
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") &&
                  __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  use(v3::kCode, v3);
  use(v4::kCode, v3 && __builtin_cpu_supports("avx512f") &&
                     __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512cd") &&
                     __builtin_cpu_supports("avx512dq") &&
                     __builtin_cpu_supports("avx512vl"));
#endif
  return *best;
}

const SimdCode& Simd() {
  static const SimdCode& code = []() -> const SimdCode& {
    const char* limit = getenv("CPU_SIM_LEVEL");
    return SimdUpTo(limit == nullptr ? "v4" : limit);
  }();
  return code;
}

const RowCode& RowsOf([[maybe_unused]] const SimdCode& code) {
#ifdef CPU_SIM_WIDE_LEVELS
  if (&code == &v4::kCode) return v4::kRows;
  if (&code == &v3::kCode) return v3::kRows;
#endif
  return baseline::kRows;
}

const RowCode& Rows() { return RowsOf(Simd()); }

void Gemm(int64_t m, int64_t n, int64_t k, GemmOperand a, GemmOperand b,
          float* c, int64_t c_stride, GemmMode mode) {
  Simd().gemm(m, n, k, a, b, c, c_stride, mode);
}

}  // namespace cpu_sim
