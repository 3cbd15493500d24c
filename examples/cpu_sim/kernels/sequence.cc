// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/ops/array.h>
#include <tfplug/ops/math.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

#include "cpu_sim.h"
#include "kernels/host_tensor.h"

namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// ---- Range: start, start + delta, ..., below limit --------------------------

// TensorFlow has a kernel for int32, in host memory, on every device.
template <typename T>
class Range final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    T bounds[3];  // start, limit, delta
    for (int i = 0; i < 3; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor tensor, context.GetInput(i));
      if (tensor.num_elements() != 1) {
        return absl::InvalidArgumentError(
            "start, limit and delta must be scalars, not " +
            tensor.shape().ToString());
      }
      bounds[i] = tensor.scalar<T>();
    }
    const auto [start, limit, delta] = bounds;
    if (delta == 0 || (delta > 0 ? start > limit : start < limit)) {
      return absl::InvalidArgumentError(
          "Range from " + std::to_string(start) + " to " +
          std::to_string(limit) + " needs a delta in that direction, not " +
          std::to_string(delta));
    }
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor y,
        context.AllocateOutput(0, {Count(start, limit, delta)}));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(
        [](T* y, int64_t size, T start, T delta) {
          for (int64_t i = 0; i < size; ++i) {
            y[i] = start + static_cast<T>(i) * delta;
          }
        },
        y.flat<T>(), y.num_elements(), start, delta);
  }

 private:
  static int64_t Count(T start, T limit, T delta) {
    if constexpr (std::is_integral_v<T>) {
      const T rest = (limit - start) % delta;
      return (limit - start) / delta + (rest != 0 ? 1 : 0);
    } else {
      return static_cast<int64_t>(std::ceil(std::abs((limit - start) / delta)));
    }
  }
};

template <typename... Types>
bool RegisterRange() {
  return (tfplug::RegisterKernel<Range<Types>>(
              ops::Range()
                  .template Tidx<Types>()
                  .HostMemory(ops::Range::start)
                  .HostMemory(ops::Range::limit)
                  .HostMemory(ops::Range::delta)) &&
          ...);
}

// ---- LinSpace: `num` values from start to stop, inclusive -------------------

template <typename T>
class LinSpace final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    T bounds[2];
    for (int i = 0; i < 2; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor tensor, context.GetInput(i));
      if (tensor.num_elements() != 1) {
        return absl::InvalidArgumentError(
            "start and stop must be scalars, not " + tensor.shape().ToString());
      }
      bounds[i] = tensor.scalar<T>();
    }
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor num_tensor,
                            context.GetInput(ops::LinSpace::num));
    TFPLUG_ASSIGN_OR_RETURN(const Dims num, ReadDims(num_tensor));
    if (num.size() != 1 || num[0] <= 0) {
      return absl::InvalidArgumentError("num must be a scalar with num > 0");
    }
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(0, {num[0]}));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(
        [](T* y, int64_t size, T start, T stop) {
          const T step = size > 1 ? (stop - start) / T(size - 1) : T(0);
          for (int64_t i = 0; i < size; ++i) y[i] = start + step * T(i);
          if (size > 1) y[size - 1] = stop;
        },
        y.flat<T>(), y.num_elements(), bounds[0], bounds[1]);
  }
};

template <typename... Types>
bool RegisterLinSpace() {
  return (tfplug::RegisterKernel<LinSpace<Types>>(
              ops::LinSpace()
                  .template T<Types>()
                  .template Tidx<int32_t, int64_t>()
                  .HostMemory(ops::LinSpace::start)
                  .HostMemory(ops::LinSpace::stop)
                  .HostMemory(ops::LinSpace::num)) &&
          ...);
}

// ---- OneHot: a new dimension with one element `on` --------------------------

// Treats the output as [outer, depth, inner] and indices as [outer, inner]. For
// an index out of range, all elements are `off`.
template <typename T, typename Index>
void SetHot(T* y, const Index* indices, const T* on, const T* off,
            int64_t outer, int64_t depth, int64_t inner) {
  std::fill_n(y, outer * depth * inner, *off);
  for (int64_t o = 0; o < outer; ++o, y += depth * inner) {
    for (int64_t i = 0; i < inner; ++i, ++indices) {
      const int64_t at = static_cast<int64_t>(*indices);
      if (at >= 0 && at < depth) y[at * inner + i] = *on;
    }
  }
}

template <typename T, typename Index>
class OneHot final : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(axis_, construction.GetAttr(ops::OneHot::axis));
    return absl::OkStatus();
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor indices,
                            context.GetInput(ops::OneHot::indices));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor depth_tensor,
                            context.GetInput(ops::OneHot::depth));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor on,
                            context.GetInput(ops::OneHot::on_value));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor off,
                            context.GetInput(ops::OneHot::off_value));
    TFPLUG_ASSIGN_OR_RETURN(const Dims depth, ReadDims(depth_tensor));
    TFPLUG_ASSIGN_OR_RETURN(const int axis,
                            CheckAxis(axis_, indices.rank() + 1));
    if (depth.size() != 1 || depth[0] < 0 || on.num_elements() != 1 ||
        off.num_elements() != 1) {
      return absl::InvalidArgumentError(
          "depth must be a non-negative scalar; on_value and off_value must be "
          "scalars");
    }
    int64_t outer = 1, inner = 1;
    tfplug::Shape shape;
    for (int d = 0; d < indices.rank(); ++d) {
      if (d == axis) shape.add_dim(depth[0]);
      shape.add_dim(indices.dim(d));
      (d < axis ? outer : inner) *= indices.dim(d);
    }
    if (axis == indices.rank()) shape.add_dim(depth[0]);
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y, context.AllocateOutput(0, shape));
    if (y.num_elements() == 0) return absl::OkStatus();
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(&SetHot<T, Index>, y.flat<T>(), indices.flat<Index>(),
                          on.flat<T>(), off.flat<T>(), outer, depth[0], inner);
  }

 private:
  int64_t axis_ = -1;
};

template <typename T, typename... Index>
bool RegisterOneHot() {
  return (tfplug::RegisterKernel<OneHot<T, Index>>(
              ops::OneHot().template T<T>().template TI<Index>().HostMemory(
                  ops::OneHot::depth)) &&
          ...);
}

[[maybe_unused]] const bool kernels =
    RegisterRange<float, double, int64_t>() &&
    RegisterLinSpace<float, double>() &&
    RegisterOneHot<float, uint8_t, int32_t, int64_t>() &&
    RegisterOneHot<int64_t, uint8_t, int32_t, int64_t>() &&
    RegisterOneHot<bool, uint8_t, int32_t, int64_t>();

}  // namespace
}  // namespace cpu_sim
