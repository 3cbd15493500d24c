// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_MATMUL_H_
#define TFPLUG_OP_KERNELS_MATMUL_H_

#include <string>

#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Matrix products, and the biases that follow them.
namespace tfplug {
namespace op_kernels_internal {

// Returns whether data_format puts the channels before the spatial dimensions.
inline absl::StatusOr<bool> HasChannelsFirst(KernelConstruction& construction) {
  if (!construction.HasAttr("data_format")) return false;
  TFPLUG_ASSIGN_OR_RETURN(const std::string format,
                          construction.GetAttr<std::string>("data_format"));
  for (const char* last : {"NHWC", "NDHWC", "CHANNELS_LAST"}) {
    if (format == last) return false;
  }
  for (const char* first : {"NCHW", "NCDHW", "CHANNELS_FIRST"}) {
    if (format == first) return true;
  }
  return absl::InvalidArgumentError("the data format " + format +
                                    " is not supported on this device");
}

// The operands of a product of matrices or, unless is_matrix, of batches of
// them.
struct MatMulOperands {
  bool is_matrix = false, broadcasts = false;
  bool transpose_a = false, transpose_b = false;

  // Reads inputs 0 and 1 as views that the primitive takes. Returns the shape
  // of the product. INVALID_ARGUMENT if they do not fit together.
  absl::StatusOr<Shape> Read(OpRun& run, Operand& a, Operand& b) const {
    TFPLUG_ASSIGN_OR_RETURN(a, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(b, GetView(run, 1));
    const Shape a_shape = ShapeOf(a), b_shape = ShapeOf(b);
    const auto fail = [&](const char* problem) {
      return absl::InvalidArgumentError(std::string(problem) +
                                        ": In[0]: " + a_shape.ToString() +
                                        ", In[1]: " + b_shape.ToString());
    };
    if (!broadcasts && a.rank != b.rank) {
      return fail("In[0] and In[1] has different ndims");
    }
    if (is_matrix && a.rank != 2) {
      return fail("In[0] and In[1] ndims must be == 2");
    }
    if (a.rank < 2) return fail("In[0] ndims must be >= 2");
    if (b.rank < 2) return fail("In[1] ndims must be >= 2");
    if (transpose_a) a = ir::Transposed(a);
    if (transpose_b) b = ir::Transposed(b);
    const int64_t m = a.dim(a.rank - 2), n = b.dim(b.rank - 1);
    Shape shape(ir::DimsOf(a).first(static_cast<size_t>(a.rank) - 2));
    const Shape b_batch(ir::DimsOf(b).first(static_cast<size_t>(b.rank) - 2));
    if ((!broadcasts && shape != b_batch) ||
        !BroadcastShape(b_batch, &shape).ok()) {
      return fail("In[0] and In[1] must have compatible batch dimensions");
    }
    if (a.dim(a.rank - 1) != b.dim(b.rank - 2)) {
      return fail("Matrix size-incompatible");
    }
    a = WithBatch(a, shape);
    b = WithBatch(b, shape);
    shape.add_dim(m);
    shape.add_dim(n);
    return shape;
  }

 private:
  // Returns `view` with its batch dimensions repeated to `batch`.
  static Operand WithBatch(const Operand& view, const Shape& batch) {
    const int last = view.rank - 2;
    Operand matrices = view;
    matrices.rank = last;
    return BroadcastTo(matrices, batch)
        .AddDim(view.dim(last), view.stride(last))
        .AddDim(view.dim(last + 1), view.stride(last + 1));
  }
};

// The product of complex matrices: products of their real and imaginary parts.
class ComplexProduct {
 public:
  absl::Status Init(DataType type) {
    const DataType part = PartType(type);
    TFPLUG_ASSIGN_OR_RETURN(
        combine_, MakeExpression({part, part, part, part}, {part},
                                 [](Value x, Value y, Value a, Value b) {
                                   return x * a + y * b;
                                 }));
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run, const Operand& a, const Operand& b,
                   const Operand& c, bool conjugates_a,
                   bool conjugates_b) const {
    // Empty matrices have no parts.
    if (a.num_elements() == 0) return Fill(run, c, 0);
    const double sign_a = conjugates_a ? -1 : 1;
    const double sign_b = conjugates_b ? -1 : 1;
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand other,
        run.launcher().Allocate(PartType(c.type), ir::DimsOf(c)));
    for (int part = 0; part < 2; ++part) {
      const Operand to = PartOf(c, part);
      TFPLUG_RETURN_IF_ERROR(
          run.launcher().MatMul(PartOf(a, 0), PartOf(b, part), to));
      TFPLUG_RETURN_IF_ERROR(
          run.launcher().MatMul(PartOf(a, 1), PartOf(b, 1 - part), other));
      const auto scalar = [&](double value) {
        return ir::ScalarOf(to.type, value, to);
      };
      TFPLUG_RETURN_IF_ERROR(
          run.launcher().Map(combine_,
                             {to, other, scalar(part == 0 ? 1 : sign_b),
                              scalar(part == 0 ? -sign_a * sign_b : sign_a)},
                             {to}));
    }
    return absl::OkStatus();
  }

 private:
  Expression combine_;
};

// Returns a view converted to `type`, in new memory; repeated dimensions are
// repeated again.
inline absl::StatusOr<Operand> Converted(OpRun& run, const Operand& view,
                                         DataType type) {
  if (view.type == type) return view;
  Operand once = view;
  for (int d = 0; d < view.rank; ++d) {
    if (view.stride(d) == 0) once.dim(d) = 1;
  }
  TFPLUG_ASSIGN_OR_RETURN(Operand result,
                          run.launcher().Allocate(type, ir::DimsOf(once)));
  TFPLUG_RETURN_IF_ERROR(Convert(run, once, result));
  for (int d = 0; d < view.rank; ++d) {
    if (once.dim(d) != view.dim(d)) result.stride(d) = 0;
    result.dim(d) = view.dim(d);
  }
  return result;
}

// MatMul, and BatchMatMul, V2 and V3, whose batches are broadcast.
class MatMulKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    const bool is_batch = construction.HasAttr("adj_x");
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    operands_.broadcasts = op == "BatchMatMulV2" || op == "BatchMatMulV3";
    operands_.is_matrix = !is_batch;
    TFPLUG_ASSIGN_OR_RETURN(
        operands_.transpose_a,
        construction.GetAttr<bool>(is_batch ? "adj_x" : "transpose_a"));
    TFPLUG_ASSIGN_OR_RETURN(
        operands_.transpose_b,
        construction.GetAttr<bool>(is_batch ? "adj_y" : "transpose_b"));
    TFPLUG_ASSIGN_OR_RETURN(
        const auto type,
        construction.GetAttr<DataType>(op == "BatchMatMulV3" ? "Tout" : "T"));
    return IsComplex(type) ? complex_.Init(type) : absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    Operand a, b;
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, operands_.Read(run, a, b));
    TFPLUG_ASSIGN_OR_RETURN(const Operand c, run.AllocateOutput(0, shape));
    if (c.num_elements() == 0) return absl::OkStatus();
    return Multiply(run, a, b, c);
  }

 protected:
  virtual absl::Status Multiply(OpRun& run, const Operand& a, const Operand& b,
                                const Operand& c) {
    if (!IsComplex(c.type)) {
      // The product of narrower numbers is computed in its own type.
      TFPLUG_ASSIGN_OR_RETURN(const Operand x, Converted(run, a, c.type));
      TFPLUG_ASSIGN_OR_RETURN(const Operand y, Converted(run, b, c.type));
      return run.launcher().MatMul(x, y, c);
    }
    // adj_x and adj_y conjugate as well.
    const bool is_batch = !operands_.is_matrix;
    return complex_.Run(run, a, b, c, is_batch && operands_.transpose_a,
                        is_batch && operands_.transpose_b);
  }

 private:
  MatMulOperands operands_;
  ComplexProduct complex_;
};

inline Value AddBias(Value x, Value bias) { return x + bias; }

class BiasAddKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(channels_first_, HasChannelsFirst(construction));
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    TFPLUG_ASSIGN_OR_RETURN(add_,
                            MakeExpression({type, type}, {type}, AddBias));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand bias, GetView(run, 1));
    const int channel = channels_first_ ? 1 : x.rank - 1;
    if (x.rank < 2) {
      return absl::InvalidArgumentError("Input tensor must be at least 2D: " +
                                        ShapeOf(x).ToString());
    }
    if (bias.rank != 1) {
      return absl::InvalidArgumentError("Biases must be 1D: " +
                                        ShapeOf(bias).ToString());
    }
    if (bias.dim(0) != x.dim(channel)) {
      return absl::InvalidArgumentError(
          "Must provide as many biases as the channel dimension of the input "
          "tensor: " +
          ShapeOf(bias).ToString() + " vs. " + ShapeOf(x).ToString());
    }
    Operand repeated = bias;
    repeated.rank = 0;
    for (int d = 0; d < x.rank; ++d) {
      repeated.AddDim(x.dim(d), d == channel ? bias.stride(0) : 0);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.ForwardOrAllocateOutput(0, {0}, ShapeOf(x)));
    return run.launcher().Map(add_, {x, repeated}, {y});
  }

 private:
  bool channels_first_ = false;
  Expression add_;
};

class BiasAddGradKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(channels_first_, HasChannelsFirst(construction));
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    TFPLUG_ASSIGN_OR_RETURN(sum_, primitives::MakeSum(type));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand dy, GetView(run, 0));
    if (dy.rank < 2) {
      return absl::InvalidArgumentError("Input tensor must be at least 2D: " +
                                        ShapeOf(dy).ToString());
    }
    const int channel = channels_first_ ? 1 : dy.rank - 1;
    Operand by_channel = dy;
    by_channel.rank = 0;
    by_channel.AddDim(dy.dim(channel), dy.stride(channel));
    for (int d = 0; d < dy.rank; ++d) {
      if (d != channel) by_channel.AddDim(dy.dim(d), dy.stride(d));
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand bias,
                            run.AllocateOutput(0, {dy.dim(channel)}));
    return run.launcher().Reduce(sum_, {by_channel}, {bias});
  }

 private:
  bool channels_first_ = false;
  Reduction sum_;
};

}  // namespace op_kernels_internal

inline void MatMulOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  constexpr uint64_t kTypes = kFloatTypes | kIndexTypes | kComplexTypes;
  for (const char* op : {"MatMul", "BatchMatMul", "BatchMatMulV2"}) {
    registrar.Add<MatMulKernel>(KernelDef(op), "T", kTypes);
  }
  for (DataType type : registrar.Supported(kTypes)) {
    registrar.Add<MatMulKernel>(KernelDef("BatchMatMulV3")
                                    .TypeConstraint("Ta", {type})
                                    .TypeConstraint("Tb", {type}),
                                "Tout", kernel::SetOf(type));
  }
  // Those of quantized layers.
  for (DataType a : {DataType::kInt8, DataType::kUint8}) {
    for (DataType b : {DataType::kInt8, DataType::kUint8}) {
      registrar.Add<MatMulKernel>(KernelDef("BatchMatMulV3")
                                      .TypeConstraint("Ta", {a})
                                      .TypeConstraint("Tb", {b}),
                                  "Tout", kInt32Type);
    }
  }
  for (const char* op : {"BiasAdd", "BiasAddV1"}) {
    registrar.Add<BiasAddKernel>(KernelDef(op), "T", kNumberTypes);
  }
  registrar.AddFusable(
      {{"BiasAdd", kNumberTypes, AddBias, nullptr, Shapes::kBias},
       kNumberTypes,
       "T"});
  registrar.Add<BiasAddGradKernel>(KernelDef("BiasAddGrad"), "T", kNumberTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_MATMUL_H_
