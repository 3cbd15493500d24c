// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_MOVEMENT_H_
#define CPU_SIM_KERNELS_MOVEMENT_H_

#include <tfplug/kernel_context.h>
#include <tfplug/status_macros.h>

#include <cstdint>

#include "cpu_sim.h"
#include "kernels/loop.h"

// For kernels that put elements elsewhere and do not look at them: one code
// for all types of a size.
namespace cpu_sim {

// ---- Where the data is -----------------------------------------------------

template <typename Element>
void CopyRows(const Loop<2>& loop, char* y, const char* x) {
  const int64_t size = loop.row_size(), stride = loop.row_stride(1);
  ForEachRow(loop, [&](const auto& offsets) {
    auto* to = reinterpret_cast<Element*>(y) + offsets[0];
    auto* from = reinterpret_cast<const Element*>(x) + offsets[1];
    for (int64_t i = 0; i < size; ++i) to[i] = from[i * stride];
  });
}

// Tensor 0 of the loop is the output, which is dense; tensor 1 begins at the
// element `first`.
inline void CopyElements(const Loop<2>& loop, int64_t element_size, char* y,
                         const char* x, int64_t first) {
  x += first * element_size;
  switch (element_size) {
    case 1:
      return CopyRows<uint8_t>(loop, y, x);
    case 2:
      return CopyRows<uint16_t>(loop, y, x);
    case 4:
      return CopyRows<uint32_t>(loop, y, x);
    default:
      return CopyRows<uint64_t>(loop, y, x);
  }
}

// ---- On the host -----------------------------------------------------------

// TensorFlow keeps tensors of int32, mostly shapes, in host memory.
enum class Place { kDevice, kHost };

// Fills output 0, of shape `shape`, with elements of `x`: `loop` says which.
template <Place place>
absl::Status SetOutput(tfplug::KernelContext& context,
                       const tfplug::Shape& shape, const Loop<2>& loop,
                       const tfplug::Tensor& x, int64_t first = 0) {
  TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y, context.allocate_output(0, shape));
  if (y.num_elements() == 0) return absl::OkStatus();
  const auto element_size =
      static_cast<int64_t>(y.byte_size()) / y.num_elements();
  if constexpr (place == Place::kHost) {
    CopyElements(loop, element_size, static_cast<char*>(y.data()),
                 static_cast<const char*>(x.data()), first);
    return absl::OkStatus();
  }
  const auto bytes = [](const tfplug::Tensor& tensor) {
    return absl::Span<char>(static_cast<char*>(tensor.data()),
                            tensor.byte_size());
  };
  TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.stream<Stream>());
  return stream->Launch(&CopyElements, loop, element_size, bytes(y), bytes(x),
                        first);
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_MOVEMENT_H_
