// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_MOVEMENT_H_
#define CPU_SIM_KERNELS_MOVEMENT_H_

#include <tfplug/base/narrow_types.h>
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/kernel_context.h>
#include <tfplug/kernel/register_kernel.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#include "cpu_sim.h"
#include "kernels/loop.h"

// Helpers for kernels that move elements without interpreting them. All types
// of one size share one instantiation.
namespace cpu_sim {

// ---- On the device ---------------------------------------------------------

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

// Copies x to y; tensor 0 of the loop is y, tensor 1 is x.
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

// The memory that holds a kernel's tensors. TensorFlow keeps int32 tensors,
// which are mostly shapes, in host memory.
enum class Place { kDevice, kHost };

// Returns the bytes of a tensor from its element `first`, which must exist, to
// its end.
inline absl::Span<char> Bytes(const tfplug::Tensor& tensor, int64_t first = 0) {
  const size_t skip =
      static_cast<size_t>(first) * tfplug::DataTypeSize(tensor.dtype());
  return absl::MakeSpan(static_cast<char*>(tensor.data()) + skip,
                        tensor.byte_size() - skip);
}

// Copies elements of `x`, starting at `x_first`, to `y`, starting at `y_first`.
// `loop` has the strides of y as tensor 0 and those of x as tensor 1.
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

// Allocates output 0 of `shape` and moves elements of `x` into it.
template <Place place>
absl::Status SetOutput(tfplug::KernelContext& context,
                       const tfplug::Shape& shape, const Loop<2>& loop,
                       const tfplug::Tensor& x, int64_t first = 0) {
  TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y, context.AllocateOutput(0, shape));
  return Move<place>(context, loop, y, 0, x, first);
}

// Sets all bytes of `y` to 0.
template <Place place>
absl::Status Clear(tfplug::KernelContext& context, const tfplug::Tensor& y) {
  if constexpr (place == Place::kHost) {
    memset(y.data(), 0, y.byte_size());
    return absl::OkStatus();
  }
  TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
  return stream->MemZero(y.memory(), y.byte_size());
}

// Returns the typed op of a kernel on the device: with the types that are moved
// there, and with `arguments` in host memory.
template <class Op, class... Arguments>
Op MovedOnDevice(Arguments... arguments) {
  Op op = Op().template T<float, double, tfplug::Half, tfplug::BFloat16,
                          int64_t, bool>();
  ((op = std::move(op).HostMemory(arguments)), ...);
  return op;
}

// Registers two kernels that move elements: one on the device, with only the
// arguments `controls` in host memory, and one for int32, with `data`, the
// other inputs and the outputs, in host memory as well.
template <template <Place> class KernelT, class Op, class... Controls,
          class... Data>
bool RegisterMovement(std::tuple<Controls...> controls, Data... data) {
  return std::apply(
      [&](Controls... arguments) {
        Op on_host = Op().template T<int32_t>();
        ((on_host = std::move(on_host).HostMemory(arguments)), ...);
        ((on_host = std::move(on_host).HostMemory(data)), ...);
        return tfplug::RegisterKernel<KernelT<Place::kDevice>>(
                   MovedOnDevice<Op>(arguments...)) &&
               tfplug::RegisterKernel<KernelT<Place::kHost>>(
                   std::move(on_host));
      },
      controls);
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_MOVEMENT_H_
