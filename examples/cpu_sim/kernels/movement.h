// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_MOVEMENT_H_
#define CPU_SIM_KERNELS_MOVEMENT_H_

#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/kernel_context.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cpu_sim.h"
#include "kernels/loop.h"

// For kernels that put elements elsewhere and do not look at them: one code
// for all types of a size.
namespace cpu_sim {

// ---- Where the data is -----------------------------------------------------

template <typename Element>
void CopyRows(const Loop<2>& loop, char* y, const char* x) {
  const int64_t size = loop.row_size();
  const int64_t y_stride = loop.row_stride(0), x_stride = loop.row_stride(1);
  ForEachRow(loop, [&](const auto& offsets) {
    auto* to = reinterpret_cast<Element*>(y) + offsets[0];
    auto* from = reinterpret_cast<const Element*>(x) + offsets[1];
    if (y_stride == 1 && x_stride == 1) {
      std::copy_n(from, size, to);
    } else {
      for (int64_t i = 0; i < size; ++i) to[i * y_stride] = from[i * x_stride];
    }
  });
}

// Tensor 0 of the loop is the output, tensor 1 the input.
inline void CopyElements(const Loop<2>& loop, int64_t element_size, char* y,
                         const char* x) {
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

// The memory of a tensor from its element `first` on, which must be one.
inline absl::Span<char> Bytes(const tfplug::Tensor& tensor, int64_t first = 0) {
  const size_t skip =
      static_cast<size_t>(first) * tfplug::DataTypeSize(tensor.dtype());
  return absl::MakeSpan(static_cast<char*>(tensor.data()) + skip,
                        tensor.byte_size() - skip);
}

// Copies elements of `x`, from `x_first` on, into `y`, from `y_first` on, as
// tensors 1 and 0 of `loop` say.
template <Place place>
absl::Status Move(tfplug::KernelContext& context, const Loop<2>& loop,
                  const tfplug::Tensor& y, int64_t y_first,
                  const tfplug::Tensor& x, int64_t x_first) {
  if (loop.is_empty()) return absl::OkStatus();
  const auto element_size =
      static_cast<int64_t>(tfplug::DataTypeSize(y.dtype()));
  const auto to = Bytes(y, y_first), from = Bytes(x, x_first);
  if constexpr (place == Place::kHost) {
    CopyElements(loop, element_size, to.data(), from.data());
    return absl::OkStatus();
  }
  TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
  return stream->Launch(&CopyElements, loop, element_size, to, from);
}

// Fills a new output 0 of `shape` with elements of `x`, as Move does it.
template <Place place>
absl::Status SetOutput(tfplug::KernelContext& context,
                       const tfplug::Shape& shape, const Loop<2>& loop,
                       const tfplug::Tensor& x, int64_t first = 0) {
  TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y, context.AllocateOutput(0, shape));
  return Move<place>(context, loop, y, 0, x, first);
}

// All bytes 0.
template <Place place>
absl::Status Clear(tfplug::KernelContext& context, const tfplug::Tensor& y) {
  if constexpr (place == Place::kHost) {
    memset(y.data(), 0, y.byte_size());
    return absl::OkStatus();
  }
  TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
  return stream->MemZero(y.memory(), y.byte_size());
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_MOVEMENT_H_
