// SPDX-License-Identifier: Apache-2.0
#include "kernels/reduction.h"

#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>

#include <cstdint>
#include <functional>
#include <string>

#include "cpu_sim.h"
#include "kernels/host_tensor.h"

namespace cpu_sim {
namespace {

// A function of reduction.h: (loop, output, output size, input).
template <typename T>
using ReduceFunction = void (*)(const Loop<2>&, T*, int64_t, const T*);

enum class Place { kDevice, kHost };

// Reduces input 0 over the dimensions in input 1, which is in host memory.
template <typename T, ReduceFunction<T> reduce, Place place>
class Reduction final : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(keep_dims_,
                            construction.GetAttr<bool>("keep_dims"));
    return absl::OkStatus();
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor axes_tensor, context.GetInput(1));
    TFPLUG_ASSIGN_OR_RETURN(const Dims axes, ReadAxes(axes_tensor, x.rank()));
    const tfplug::Shape shape = x.shape();

    Dims kept(shape.dims().begin(), shape.dims().end());
    for (const int64_t axis : axes) kept[axis] = 1;
    Dims y_strides = DenseStrides(kept);
    tfplug::Shape y_shape;
    for (int d = 0; d < x.rank(); ++d) {
      const bool reduced = absl::c_linear_search(axes, d);
      if (reduced) y_strides[d] = 0;
      if (!reduced || keep_dims_) y_shape.add_dim(kept[d]);
    }

    TFPLUG_ASSIGN_OR_RETURN(
        const Loop<2> loop,
        (MakeLoop<2>(shape.dims(), {y_strides, DenseStrides(shape.dims())})));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(0, y_shape));
    if constexpr (place == Place::kHost) {
      reduce(loop, y.flat<T>().data(), y.num_elements(), x.flat<T>().data());
      return absl::OkStatus();
    }
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(reduce, loop, y.flat<T>(), y.num_elements(),
                          x.flat<T>());
  }

 private:
  bool keep_dims_ = false;
};

template <typename T, ReduceFunction<T> reduce>
bool Register(const char* op) {
  return tfplug::RegisterKernel<Reduction<T, reduce, Place::kDevice>>(
      tfplug::KernelDef(op).TypeConstraint<T>("T").HostMemory(
          "reduction_indices"));
}

// TensorFlow keeps int32 tensors, which are mostly shapes, in host memory.
template <ReduceFunction<int32_t> reduce>
bool RegisterHost(const char* op) {
  return tfplug::RegisterKernel<Reduction<int32_t, reduce, Place::kHost>>(
      tfplug::KernelDef(op)
          .TypeConstraint<int32_t>("T")
          .HostMemory("input")
          .HostMemory("reduction_indices")
          .HostMemory("output"));
}

template <ReduceFunction<bool> reduce>
bool RegisterLogical(const char* op) {
  return tfplug::RegisterKernel<Reduction<bool, reduce, Place::kDevice>>(
      tfplug::KernelDef(op).HostMemory("reduction_indices"));
}

[[maybe_unused]] const bool reductions =
    Register<float, &SumFloats>("Sum") &&
    Register<float, &ReduceMean<float>>("Mean") &&
    Register<float, &Reduce<ProdReducer<float>>>("Prod") &&
    Register<float, &Reduce<MaxReducer<float>>>("Max") &&
    Register<float, &Reduce<MinReducer<float>>>("Min") &&
    Register<int64_t, &Reduce<SumReducer<int64_t>>>("Sum") &&
    RegisterHost<&Reduce<SumReducer<int32_t>>>("Sum") &&
    RegisterHost<&Reduce<ProdReducer<int32_t>>>("Prod") &&
    RegisterHost<&Reduce<MaxReducer<int32_t>>>("Max") &&
    RegisterHost<&Reduce<MinReducer<int32_t>>>("Min") &&
    RegisterLogical<&Reduce<MinReducer<bool>>>("All") &&
    RegisterLogical<&Reduce<MaxReducer<bool>>>("Any");

// ---- L2Loss: half the sum of squares ---------------------------------------

class L2Loss final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y, context.AllocateOutput(0, {}));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(
        [](float* y, const float* x, int64_t size) {
          *y = ConstRowMap<float>(x, size).square().sum() / 2;
        },
        y.flat<float>(), x.flat<float>(), x.num_elements());
  }
};
TFPLUG_REGISTER_KERNEL(L2Loss,
                       tfplug::KernelDef("L2Loss").TypeConstraint<float>("T"));

// ---- ArgMax, ArgMin: the first one wins ------------------------------------

template <typename Index, typename Better>
void FindBest(Index* best, const float* x, int64_t outer, int64_t size,
              int64_t inner, Better better) {
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const float* first = x + o * size * inner + i;
      int64_t at = 0;
      for (int64_t k = 1; k < size; ++k) {
        if (better(first[k * inner], first[at * inner])) at = k;
      }
      best[o * inner + i] = static_cast<Index>(at);
    }
  }
}

template <typename Index, typename Better>
class ArgBest final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor axis_tensor, context.GetInput(1));
    TFPLUG_ASSIGN_OR_RETURN(const Dims axes, ReadAxes(axis_tensor, x.rank()));
    if (axes.size() != 1) {
      return absl::InvalidArgumentError("dimension must be a scalar; it has " +
                                        std::to_string(axes.size()) +
                                        " elements");
    }
    const int axis = static_cast<int>(axes[0]);
    if (x.dim(axis) == 0) {
      return absl::InvalidArgumentError("dimension " + std::to_string(axis) +
                                        " of " + x.shape().ToString() +
                                        " is empty");
    }
    int64_t outer = 1, inner = 1;
    tfplug::Shape shape;
    for (int d = 0; d < x.rank(); ++d) {
      if (d == axis) continue;
      (d < axis ? outer : inner) *= x.dim(d);
      shape.add_dim(x.dim(d));
    }
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor best,
                            context.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(&FindBest<Index, Better>, best.flat<Index>(),
                          x.flat<float>(), outer, x.dim(axis), inner, Better());
  }
};

template <typename Index, typename Better>
bool RegisterArg(const char* op) {
  return tfplug::RegisterKernel<ArgBest<Index, Better>>(
      tfplug::KernelDef(op)
          .TypeConstraint<float>("T")
          .TypeConstraint<Index>("output_type")
          .HostMemory("dimension"));
}
[[maybe_unused]] const bool arg_kernels =
    RegisterArg<int32_t, std::greater<float>>("ArgMax") &&
    RegisterArg<int64_t, std::greater<float>>("ArgMax") &&
    RegisterArg<int32_t, std::less<float>>("ArgMin") &&
    RegisterArg<int64_t, std::less<float>>("ArgMin");

}  // namespace
}  // namespace cpu_sim
