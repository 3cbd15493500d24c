// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_BACKEND_DEVICE_VIEWS_H_
#define CPU_SIM_BACKEND_DEVICE_VIEWS_H_

#include <tfplug/backend/view.h>
#include <tfplug/base/status_macros.h>

#include <algorithm>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "cpu_sim.h"

namespace cpu_sim {

using DeviceViews = absl::InlinedVector<tfplug::Operand, 4>;

// Replaces the address of an operand by the private address of its memory.
inline absl::Status MakePrivate(Stream& stream, tfplug::Operand& view) {
  if (!view.has_memory()) return absl::OkStatus();
  int64_t first = 0, last = 0;
  const auto extend = [&](int64_t size, int64_t stride) {
    const int64_t reach = (size - 1) * stride;
    (reach < 0 ? first : last) += reach;
  };
  for (int d = 0; d < view.rank; ++d) {
    if (view.dim(d) == 0) return absl::OkStatus();
    extend(view.dim(d), view.stride(d));
  }
  if (view.axis_size > 0) extend(view.axis_size, view.axis_stride);
  const auto size = static_cast<int64_t>(DataTypeSize(view.type));
  char* const begin = static_cast<char*>(view.data) + first * size;
  TFPLUG_ASSIGN_OR_RETURN(
      void* const address,
      stream.ToPrivate(begin,
                       static_cast<uint64_t>((last - first + 1) * size)));
  view.data = static_cast<char*>(address) - first * size;
  return absl::OkStatus();
}

inline absl::StatusOr<DeviceViews> ForDevice(Stream& stream,
                                             tfplug::Operands operands) {
  DeviceViews views(operands.begin(), operands.end());
  for (tfplug::Operand& view : views) {
    TFPLUG_RETURN_IF_ERROR(MakePrivate(stream, view));
  }
  return views;
}

}  // namespace cpu_sim

#endif  // CPU_SIM_BACKEND_DEVICE_VIEWS_H_
