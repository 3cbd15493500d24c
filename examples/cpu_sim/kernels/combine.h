// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_COMBINE_H_
#define CPU_SIM_KERNELS_COMBINE_H_

#include <cstdint>

#include "kernels/elementwise.h"
#include "kernels/indexing.h"

// The ways in which scatter ops combine a slice of a tensor with an update, on
// the device.
namespace cpu_sim {

struct CombineSet {
  template <typename A, typename B>
  static void Do(A& to, const B& value) {
    to = value;
  }
};
struct CombineAdd {
  template <typename A, typename B>
  static void Do(A& to, const B& value) {
    to += value;
  }
};
struct CombineSub {
  template <typename A, typename B>
  static void Do(A& to, const B& value) {
    to -= value;
  }
};
struct CombineMul {
  template <typename A, typename B>
  static void Do(A& to, const B& value) {
    to *= value;
  }
};
struct CombineMax {
  template <typename A, typename B>
  static void Do(A& to, const B& value) {
    to = (to >= value || to != to).select(to, value);
  }
};
struct CombineMin {
  template <typename A, typename B>
  static void Do(A& to, const B& value) {
    to = (to <= value || to != to).select(to, value);
  }
};

// Combines `count` updates of `slice_size` elements with the slices of y that
// `indices` select. An index out of range is ignored, as on TensorFlow's GPUs,
// because a device cannot raise an error on the host.
template <typename Combine, typename T, typename Index>
void ScatterSlices(T* y, const Index* indices, const T* updates, int64_t count,
                   Coordinates coordinates, int64_t slice_size) {
  for (int64_t i = 0; i < count; ++i, updates += slice_size) {
    const int64_t at = coordinates.Find(indices + i * coordinates.rank);
    if (at < 0) continue;
    RowMap<T> to(y + at * slice_size, slice_size);
    Combine::Do(to, ConstRowMap<T>(updates, slice_size));
  }
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_COMBINE_H_
