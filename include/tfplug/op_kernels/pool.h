// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_POOL_H_
#define TFPLUG_OP_KERNELS_POOL_H_

#include <limits>
#include <string>

#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/window.h"

#pragma GCC visibility push(hidden)

// Pooling of two and three dimensions and its gradients.
namespace tfplug {
namespace op_kernels_internal {

class PoolKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    kind_ = op.rfind("Max", 0) == 0 ? PoolKind::kMax : PoolKind::kAverage;
    has_window_inputs_ = !construction.HasAttr("ksize");
    return attrs_.Init(construction, op.find("3D") != op.npos ? 3 : 2);
  }

 protected:
  // Returns an image with its channels last.
  Operand Image(const Operand& view) const {
    return ChannelsLast(view, attrs_.channels_first());
  }
  // Returns the pooling of an image with its channels last.
  absl::StatusOr<Pooling> Describe(OpRun& run, const Operand& image) const {
    if (!has_window_inputs_) return Describe(attrs_, image);
    // The last inputs of an op V2 are the sizes and the strides.
    const int n = run.context().num_inputs();
    WindowAttrs attrs = attrs_;
    TFPLUG_ASSIGN_OR_RETURN(const Ints sizes, run.GetInts(n - 2));
    TFPLUG_ASSIGN_OR_RETURN(const Ints strides, run.GetInts(n - 1));
    TFPLUG_RETURN_IF_ERROR(attrs.SetWindow(sizes, strides));
    return Describe(attrs, image);
  }
  Shape OutputShape(const Pooling& pooling, const Operand& image) const {
    return ImageShape(image.dim(0), pooling.windows, image.dim(image.rank - 1),
                      attrs_.channels_first());
  }

 private:
  absl::StatusOr<Pooling> Describe(const WindowAttrs& attrs,
                                   const Operand& image) const {
    if (image.rank != attrs.spatial() + 2) {
      return absl::InvalidArgumentError(
          "tensor_in must be " + std::to_string(attrs.spatial() + 2) +
          "-dimensional: " + ShapeOf(image).ToString());
    }
    Pooling pooling;
    pooling.kind = kind_;
    TFPLUG_ASSIGN_OR_RETURN(pooling.windows, attrs.Over(image));
    return pooling;
  }

  PoolKind kind_ = PoolKind::kMax;
  bool has_window_inputs_ = false;
  WindowAttrs attrs_;
};

class Pool final : public PoolKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand input, GetView(run, 0));
    const Operand x = Image(input);
    TFPLUG_ASSIGN_OR_RETURN(const Pooling pooling, Describe(run, x));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, OutputShape(pooling, x)));
    if (y.num_elements() == 0) return absl::OkStatus();
    return run.launcher().Pool(pooling, x, Image(y));
  }
};

class MaxPoolGrad final : public PoolKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand input, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand output, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand dy, GetView(run, 2));
    const Operand x = Image(input);
    TFPLUG_ASSIGN_OR_RETURN(const Pooling pooling, Describe(run, x));
    const Shape want = OutputShape(pooling, x);
    TFPLUG_RETURN_IF_ERROR(CheckShape("orig_output", output, want));
    TFPLUG_RETURN_IF_ERROR(CheckShape("grad", dy, want));
    TFPLUG_ASSIGN_OR_RETURN(const Operand dx,
                            run.AllocateOutput(0, ShapeOf(input)));
    if (dx.num_elements() == 0) return absl::OkStatus();
    if (dy.num_elements() == 0) return Fill(run, dx, 0);
    return run.launcher().PoolGradient(pooling, x, Image(output), Image(dy),
                                       Image(dx));
  }
};

// The gradient of MaxPoolGrad with respect to its `grad`: for each window, the
// input at the element that counts, the first one that equals orig_output.
class MaxPoolGradGrad final : public PoolKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    constexpr DataType kInt64 = DataType::kInt64;
    TFPLUG_ASSIGN_OR_RETURN(
        first_, primitives::MakeReduction(
                    ReduceKind::kMin, {type, type, kInt64}, kInt64,
                    [](Value x, Value y, Value i) {
                      return Select(x == y, i,
                                    std::numeric_limits<int64_t>::max());
                    },
                    kInt64));
    TFPLUG_ASSIGN_OR_RETURN(
        chosen_,
        primitives::MakeReduction(
            ReduceKind::kSum, {type, kInt64, kInt64}, ComputeType(type),
            [](Value x, Value i, Value first) {
              return Select(i == first, x, 0);
            },
            type));
    return PoolKernel::Init(construction);
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand input, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand output, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand grad, GetView(run, 2));
    const Operand x = Image(input);
    TFPLUG_ASSIGN_OR_RETURN(const Pooling pooling, Describe(run, x));
    const Shape want = OutputShape(pooling, x);
    TFPLUG_RETURN_IF_ERROR(CheckShape("orig_output", output, want));
    TFPLUG_RETURN_IF_ERROR(CheckShape("grad", grad, ShapeOf(input)));
    TFPLUG_ASSIGN_OR_RETURN(const Operand result, run.AllocateOutput(0, want));
    if (result.num_elements() == 0) return absl::OkStatus();

    const int spatial = static_cast<int>(pooling.windows.size());
    const auto windows_of = [&](const Operand& image,
                                double padding) -> absl::StatusOr<Operand> {
      TFPLUG_ASSIGN_OR_RETURN(
          const Operand padded,
          primitives::Padded(run.launcher(), image, pooling.windows, padding));
      return primitives::WithWindowLast(
          primitives::WindowsOf(padded, pooling.windows), spatial);
    };
    // NaN equals no output.
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand elements,
        windows_of(x, std::numeric_limits<double>::quiet_NaN()));
    TFPLUG_ASSIGN_OR_RETURN(const Operand gradients,
                            windows_of(Image(grad), 0));
    const Operand y = Image(output);
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand first,
        run.launcher().Allocate(DataType::kInt64, ir::DimsOf(y)));
    const auto repeat = [&](Operand view) {
      for (int d = view.rank; d < elements.rank; ++d) {
        view.AddDim(elements.dim(d), 0);
      }
      return view;
    };
    Operand order = Operand::Index();
    order.rank = elements.rank;
    int64_t step = 1;
    for (int d = elements.rank; d-- > 0;) {
      order.dim(d) = elements.dim(d);
      order.stride(d) = d < y.rank ? 0 : step;
      step *= elements.dim(d);
    }
    TFPLUG_RETURN_IF_ERROR(
        run.launcher().Reduce(first_, {elements, repeat(y), order}, {first}));
    return run.launcher().Reduce(chosen_, {gradients, order, repeat(first)},
                                 {Image(result)});
  }

 private:
  Reduction first_, chosen_;
};

class AvgPoolGrad final : public PoolKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, GetShape(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand dy, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand result, run.AllocateOutput(0, shape));
    const Operand dx = Image(result);
    TFPLUG_ASSIGN_OR_RETURN(const Pooling pooling, Describe(run, dx));
    TFPLUG_RETURN_IF_ERROR(CheckShape("grad", dy, OutputShape(pooling, dx)));
    if (dx.num_elements() == 0) return absl::OkStatus();
    if (dy.num_elements() == 0) return Fill(run, dx, 0);
    const Operand none = ir::ScalarOf(dx.type, 0, dx);
    return run.launcher().PoolGradient(pooling, none, none, Image(dy), dx);
  }
};

}  // namespace op_kernels_internal

inline void PoolOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  for (const char* op : {"MaxPool", "MaxPool3D", "AvgPool", "AvgPool3D"}) {
    registrar.Add<Pool>(KernelDef(op), "T", kFloatTypes);
  }
  registrar.Add<MaxPoolGrad>(KernelDef("MaxPoolGrad"), "T", kFloatTypes);
  for (const char* op : {"MaxPoolGradGrad", "MaxPool3DGradGrad"}) {
    registrar.Add<MaxPoolGradGrad>(KernelDef(op), "T", kFloatTypes);
  }
  const auto with_inputs = [](const char* op) {
    return KernelDef(op).HostMemory("ksize").HostMemory("strides");
  };
  registrar.Add<Pool>(with_inputs("MaxPoolV2"), "T", kFloatTypes);
  registrar.Add<MaxPoolGrad>(with_inputs("MaxPoolGradV2"), "T", kFloatTypes);
  registrar.Add<MaxPoolGradGrad>(with_inputs("MaxPoolGradGradV2"), "T",
                                 kFloatTypes);
  // TensorFlow's op has no float64.
  for (DataType type :
       registrar.Supported(kFloatTypes & ~kernel::SetOf(DataType::kDouble))) {
    registrar.Add<MaxPoolGrad>(
        KernelDef("MaxPool3DGrad").TypeConstraint("TInput", {type}), "T",
        kernel::SetOf(type));
  }
  for (const char* op : {"AvgPoolGrad", "AvgPool3DGrad"}) {
    registrar.Add<AvgPoolGrad>(KernelDef(op).HostMemory("orig_input_shape"),
                               "T", kFloatTypes);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_POOL_H_
