// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_KERNELS_ELEMENTWISE_H_
#define CPU_SIM_KERNELS_ELEMENTWISE_H_

#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "cpu_sim.h"
#include "kernels/loop.h"

// Elementwise kernels. The operation is a function object over Eigen arrays; a
// tensor that is broadcast along a row is passed as a constant array.
namespace cpu_sim {

// ---- On the device ---------------------------------------------------------

template <typename T>
using Row = Eigen::Array<T, 1, Eigen::Dynamic>;
template <typename T>
using RowMap = Eigen::Map<Row<T>>;
template <typename T>
using ConstRowMap = Eigen::Map<const Row<T>>;

// Rows are processed in pieces of this many elements.
inline constexpr int64_t kPiece = 512;

// A row of an input: `size` elements from `data` on or, with stride 0, copies
// of its first element.
template <typename T>
class RowSource {
 public:
  RowSource(const T* data, int64_t stride, int64_t size) : data_(data) {
    if (stride != 0) return;
    repeated_.setConstant(std::min(size, kPiece), *data);
    data_ = nullptr;
  }

  ConstRowMap<T> Piece(int64_t begin, int64_t size) const {
    return ConstRowMap<T>(data_ ? data_ + begin : repeated_.data(), size);
  }

 private:
  const T* data_;
  Eigen::Array<T, 1, Eigen::Dynamic, Eigen::RowMajor, 1, kPiece> repeated_;
};

// Tensor 0 of the loop is the output, which is dense.
template <const auto& op, typename Out, typename... In>
void DoElementwise(const Loop<sizeof...(In) + 1>& loop, Out* y,
                   const In*... x) {
  const int64_t row_size = loop.row_size();
  ForEachRow(loop, [&](const auto& offsets) {
    size_t i = 0;
    const auto source_of = [&](const auto* data) {
      ++i;
      return RowSource(data + offsets[i], loop.row_stride(i), row_size);
    };
    // Braces fix the order of evaluation.
    const std::tuple<RowSource<In>...> sources{source_of(x)...};
    for (int64_t begin = 0; begin < row_size; begin += kPiece) {
      const int64_t size = std::min(kPiece, row_size - begin);
      RowMap<Out> out(y + offsets[0] + begin, size);
      std::apply(
          [&](const auto&... source) {
            out = op(source.Piece(begin, size)...);
          },
          sources);
    }
  });
}

// ---- On the host -----------------------------------------------------------

// Computes output 0, of type Out, as op(inputs 0, 1, ... of types In...).
template <const auto& op, typename Out, typename... In>
class Elementwise final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    return Compute(context, std::index_sequence_for<In...>());
  }

 private:
  template <size_t... i>
  static absl::Status Compute(tfplug::KernelContext& context,
                              std::index_sequence<i...>) {
    constexpr size_t n = sizeof...(In);
    std::array<tfplug::Tensor, n> inputs;
    std::array<tfplug::Shape, n> shapes;
    for (size_t k = 0; k < n; ++k) {
      TFPLUG_ASSIGN_OR_RETURN(inputs[k], context.GetInput(static_cast<int>(k)));
      shapes[k] = inputs[k].shape();
    }
    TFPLUG_ASSIGN_OR_RETURN(const Broadcast<n> all,
                            BroadcastAll<n>({shapes[i].dims()...}));
    const std::tuple x(inputs[i].template flat<In>()...);
    inputs = {};  // released so that y can reuse a buffer
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y, context.ForwardOrAllocateOutput(
                                                  0, {static_cast<int>(i)...},
                                                  tfplug::Shape(all.shape)));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(&DoElementwise<op, Out, In...>, all.loop,
                          y.flat<Out>(), std::get<i>(x)...);
  }
};

// Registers a kernel for the op `name` for each of Types as its attribute T.
template <const auto& op, typename... Types>
bool RegisterUnary(const char* name) {
  return (tfplug::RegisterKernel<Elementwise<op, Types, Types>>(
              tfplug::KernelDef(name).TypeConstraint<Types>("T")) &&
          ...);
}
template <const auto& op, typename... Types>
bool RegisterBinary(const char* name) {
  return (tfplug::RegisterKernel<Elementwise<op, Types, Types, Types>>(
              tfplug::KernelDef(name).TypeConstraint<Types>("T")) &&
          ...);
}

}  // namespace cpu_sim

#endif  // CPU_SIM_KERNELS_ELEMENTWISE_H_
