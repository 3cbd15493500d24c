// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_HOST_INTERNAL_CHAIN_H_
#define TFPLUG_HOST_INTERNAL_CHAIN_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "tfplug/host/host_loops.h"
#include "tfplug/ir/opcodes.h"

#pragma GCC visibility push(hidden)

// HostLoops::chain: a block of values stays in the processor's registers while
// all steps are applied to it. A loop for each step would store every value and
// load it again. Included several times under other names, as code.h.
namespace tfplug::host_internal {

// The widest vectors of floats of the instruction set. Blocks of narrow ones
// take longer than loops for each step.
#if defined(__AVX512F__)
#define TFPLUG_INTERNAL_VECTOR_BYTES 64
#elif defined(__AVX__)
#define TFPLUG_INTERNAL_VECTOR_BYTES 32
#else
#define TFPLUG_INTERNAL_VECTOR_BYTES 16
#define TFPLUG_INTERNAL_HAS_NO_CHAIN
#endif
using FloatVector =
    float __attribute__((vector_size(TFPLUG_INTERNAL_VECTOR_BYTES)));
using BitsVector =
    int32_t __attribute__((vector_size(TFPLUG_INTERNAL_VECTOR_BYTES)));
#undef TFPLUG_INTERNAL_VECTOR_BYTES

inline FloatVector AbsOf(const FloatVector& v) {
  return reinterpret_cast<FloatVector>(reinterpret_cast<BitsVector>(v) &
                                       0x7fffffff);
}
inline float AbsOf(float v) { return std::fabs(v); }

// Applies the steps to the elements from `i` on that fit into kVectors vectors.
template <class V, int kVectors>
[[gnu::always_inline]] inline void RunSteps(const HostStep* steps,
                                            int num_steps, int64_t i, float* y,
                                            const float* x) {
  constexpr int64_t kLanes = sizeof(V) / sizeof(float);
  V a[kVectors];
  for (int k = 0; k < kVectors; ++k) {
    std::memcpy(&a[k], x + i + k * kLanes, sizeof(V));
  }
  for (const HostStep* step = steps; step != steps + num_steps; ++step) {
    const auto apply = [&](auto f) {
      if (step->b != nullptr) {
        for (int k = 0; k < kVectors; ++k) {
          V b;
          std::memcpy(&b, step->b + i + k * kLanes, sizeof(b));
          a[k] = f(a[k], b);
        }
        return;
      }
      const V b = step->single - V{};  // in all lanes, also -0
      for (int k = 0; k < kVectors; ++k) a[k] = f(a[k], b);
    };
    const auto apply_in_order = [&](auto f) {
      if (step->swapped) {
        apply([f](const V& u, const V& v) { return f(v, u); });
      } else {
        apply(f);
      }
    };
    switch (static_cast<Opcode>(step->opcode)) {
      case Opcode::kAdd:
        apply([](const V& u, const V& v) { return u + v; });
        break;
      case Opcode::kMul:
        apply([](const V& u, const V& v) { return u * v; });
        break;
      case Opcode::kSub:
        apply_in_order([](const V& u, const V& v) { return u - v; });
        break;
      case Opcode::kDiv:
        apply_in_order([](const V& u, const V& v) { return u / v; });
        break;
      // opcodes.def defines the results for NaN.
      case Opcode::kMax:
        apply_in_order([](const V& u, const V& v) {
          return ((u > v) | (u != u)) ? u : v;
        });
        break;
      case Opcode::kMin:
        apply_in_order([](const V& u, const V& v) {
          return ((u < v) | (u != u)) ? u : v;
        });
        break;
      case Opcode::kNeg:
        for (V& v : a) v = -v;
        break;
      default:  // kAbs
        for (V& v : a) v = AbsOf(v);
    }
  }
  for (int k = 0; k < kVectors; ++k) {
    std::memcpy(y + i + k * kLanes, &a[k], sizeof(V));
  }
}

inline void HostChain(const HostStep* steps, int num_steps, int64_t n, float* y,
                      const float* x) {
  constexpr int kVectors = 4;
  constexpr int64_t kLanes = sizeof(FloatVector) / sizeof(float);
  int64_t i = 0;
  for (; i + kVectors * kLanes <= n; i += kVectors * kLanes) {
    RunSteps<FloatVector, kVectors>(steps, num_steps, i, y, x);
  }
  for (; i + kLanes <= n; i += kLanes) {
    RunSteps<FloatVector, 1>(steps, num_steps, i, y, x);
  }
  for (; i < n; ++i) RunSteps<float, 1>(steps, num_steps, i, y, x);
}

#ifdef TFPLUG_INTERNAL_HAS_NO_CHAIN
inline constexpr decltype(HostLoops::chain) kHostChain = nullptr;
#undef TFPLUG_INTERNAL_HAS_NO_CHAIN
#else
inline constexpr decltype(HostLoops::chain) kHostChain = &HostChain;
#endif

}  // namespace tfplug::host_internal

#pragma GCC visibility pop

#endif  // TFPLUG_HOST_INTERNAL_CHAIN_H_
