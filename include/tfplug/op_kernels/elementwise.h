// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_ELEMENTWISE_H_
#define TFPLUG_OP_KERNELS_ELEMENTWISE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/ir/elementwise.h"
#include "tfplug/kernel/op.h"
#include "tfplug/op_kernels/op_run.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/primitives/elements.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

namespace op_kernels_internal {
template <class O, class = void>
inline constexpr bool kHasTypesOfT = false;
template <class O>
inline constexpr bool kHasTypesOfT<O, std::void_t<typename O::TypesOf_T>> =
    true;
}  // namespace op_kernels_internal

// Returns the row of the table for the typed op O, such as ops::Relu:
//
//   Elementwise<ops::Relu>([](Value x) { return Max(x, 0); })
template <class O, class F>
ElementwiseOp Elementwise(F formula, const char* attr = nullptr,
                          Shapes shapes = Shapes::kBroadcast) {
  uint64_t types = 0;
  if constexpr (op_kernels_internal::kHasTypesOfT<O>)
    types = O::TypesOf_T::kSet;
  return {O::kName, types, formula, attr, shapes};
}
template <class O, class F>
ElementwiseOp Elementwise(F formula, Shapes shapes) {
  return Elementwise<O>(formula, nullptr, shapes);
}

// Returns the shape to which two shapes broadcast, by NumPy's rules.
inline absl::Status BroadcastShape(const Shape& with, Shape* shape) {
  if (*shape == with) return absl::OkStatus();
  const int rank = std::max(shape->rank(), with.rank());
  Shape both;
  for (int d = 0; d < rank; ++d) {
    const int a = d - (rank - shape->rank()), b = d - (rank - with.rank());
    const int64_t size_a = a < 0 ? 1 : shape->dim(a);
    const int64_t size_b = b < 0 ? 1 : with.dim(b);
    if (size_a != size_b && size_a != 1 && size_b != 1) {
      return absl::InvalidArgumentError(
          "Incompatible shapes: " + shape->ToString() + " vs. " +
          with.ToString());
    }
    both.add_dim(size_a == 1 ? size_b : size_a);
  }
  *shape = std::move(both);
  return absl::OkStatus();
}

// Returns `view` repeated to `shape`, to which it must broadcast.
inline Operand BroadcastTo(const Operand& view, const Shape& shape) {
  Operand result = ir::WithoutDims(view);
  const int added = shape.rank() - view.rank;
  for (int d = 0; d < shape.rank(); ++d) {
    const int from = d - added;
    const bool repeats = from < 0 || view.dim(from) == 1;
    result.AddDim(shape.dim(d), repeats ? 0 : view.stride(from));
  }
  return result;
}

namespace op_kernels_internal {

// Runs Map for dense tensors that broadcast to `shape`, which the outputs have.
// Changes the inputs.
inline absl::Status MapTensors(Launcher& launcher, const Expression& expression,
                               const Shape& shape, absl::Span<Operand> inputs,
                               absl::Span<Operand> outputs) {
  const size_t count = inputs.size() + outputs.size();
  std::array<void*, FlatOperands::kMost> addresses;
  if (count <= addresses.size()) {
    FlatOperands flat{shape.num_elements(), 0, {addresses.data(), count}};
    size_t k = 0;
    for (; k < inputs.size(); ++k) {
      if (ir::DimsOf(inputs[k]) != shape.dims()) {
        if (inputs[k].num_elements() != 1) break;
        flat.repeated |= uint64_t{1} << k;
      }
      addresses[k] = inputs[k].data;
    }
    if (k == inputs.size()) {
      for (const Operand& output : outputs) addresses[k++] = output.data;
      return launcher.MapFlat(expression, flat);
    }
  }
  for (Operand& input : inputs) input = BroadcastTo(input, shape);
  return launcher.Map(expression, inputs, outputs);
}

// Returns all rows of all tables in the library.
inline std::vector<ElementwiseOp>& ElementwiseTable() {
  static auto* const table = new std::vector<ElementwiseOp>;
  return *table;
}
// Returns the row of an op, or null.
inline const ElementwiseOp* FindElementwise(absl::string_view name) {
  for (const ElementwiseOp& op : ElementwiseTable()) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

// Returns what the op computes for a type.
inline absl::StatusOr<Expression> ExpressionOf(const ElementwiseOp& op,
                                               DataType type, double attr) {
  ExpressionBuilder builder;
  std::vector<Value> x;
  x.reserve(static_cast<size_t>(op.formula.arity()));
  const bool selects = absl::string_view(op.name) == "SelectV2";
  for (int i = 0; i < op.formula.arity(); ++i) {
    x.push_back(builder.Input(selects && i == 0 ? DataType::kBool : type));
  }
  const Value y = op.formula(x, attr);
  const bool gives_bool = y.type() == DataType::kBool;
  builder.Output(y, gives_bool ? DataType::kBool : type);
  return std::move(builder).Build();
}

// Gets the result of Equal and NotEqual for tensors of incompatible shapes,
// which are unequal; nothing if these are an error.
inline absl::Status GetResultOfUnfit(const KernelConstruction& construction,
                                     absl::string_view op,
                                     std::optional<bool>& result) {
  constexpr char kFails[] = "incompatible_shape_error";
  bool fails = true;
  if (construction.HasAttr(kFails)) {
    TFPLUG_ASSIGN_OR_RETURN(fails, construction.GetAttr<bool>(kFails));
  }
  if (!fails) result = op == "NotEqual";
  return absl::OkStatus();
}
inline absl::Status SetResult(OpRun& run, bool result) {
  TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, {}));
  return primitives::Fill(run.launcher(), y, result ? 1 : 0);
}

class ElementwiseKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string name, construction.GetOp());
    if (const ElementwiseOp* const op = FindElementwise(name)) {
      return Build(*op, construction);
    }
    return absl::InternalError("the op " + name + " is in no table");
  }

  absl::Status Run(OpRun& run) override {
    constexpr int kMaxInputs = 4;
    constexpr int kCandidates[kMaxInputs] = {0, 1, 2, 3};
    const size_t n = expression_.inputs().size();
    std::array<Operand, kMaxInputs> inputs;
    Shape shape;
    for (size_t i = 0; i < n; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Tensor x,
                              run.GetInput(static_cast<int>(i)));
      TFPLUG_ASSIGN_OR_RETURN(inputs[i], ViewOf(x));
      if (i == 0) {
        shape = x.shape();
      } else if (shapes_ != Shapes::kBroadcast) {
        TFPLUG_RETURN_IF_ERROR(CheckShape(x.shape(), shape));
        if (inputs[i].rank != 0) inputs[i] = DenseOf(inputs[i], shape);
      } else if (auto s = BroadcastShape(x.shape(), &shape); !s.ok()) {
        return default_ ? SetResult(run, *default_) : s;
      }
    }
    TFPLUG_ASSIGN_OR_RETURN(
        Operand y,
        run.ForwardOrAllocateOutput(0, absl::MakeSpan(kCandidates, n), shape));
    return MapTensors(run.launcher(), expression_, shape,
                      absl::MakeSpan(inputs.data(), n), absl::MakeSpan(&y, 1));
  }

 private:
  absl::Status Build(const ElementwiseOp& op,
                     KernelConstruction& construction) {
    shapes_ = op.shapes;
    DataType type = DataType::kBool;
    if (op.types != 0) {
      TFPLUG_ASSIGN_OR_RETURN(type, GetType(construction));
    }
    double attr = 0;
    if (op.attr != nullptr) {
      TFPLUG_ASSIGN_OR_RETURN(attr, construction.GetAttr<float>(op.attr));
    }
    TFPLUG_RETURN_IF_ERROR(GetResultOfUnfit(construction, op.name, default_));
    TFPLUG_ASSIGN_OR_RETURN(expression_, ExpressionOf(op, type, attr));
    return absl::OkStatus();
  }

  absl::Status CheckShape(const Shape& shape, const Shape& first) const {
    if (shape == first) return absl::OkStatus();
    if (shapes_ == Shapes::kEqualSizes
            ? shape.num_elements() == first.num_elements()
            : shapes_ == Shapes::kEqualOrScalars && shape.rank() == 0) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "all inputs must have the same shape: " + first.ToString() + " vs. " +
        shape.ToString());
  }
  static Operand DenseOf(const Operand& view, const Shape& shape) {
    return Operand::Dense(view.data, view.type, shape.dims());
  }

  Expression expression_;
  Shapes shapes_ = Shapes::kBroadcast;
  std::optional<bool> default_;
};

// Returns whether the op's output is a bool, whatever the attribute T.
inline bool GivesBool(const ElementwiseOp& op) {
  constexpr DataType kType = DataType::kFloat;
  if ((op.types & kernel::SetOf(kType)) == 0) return false;  // of bits
  ExpressionBuilder builder;
  std::vector<Value> x;
  x.reserve(static_cast<size_t>(op.formula.arity()));
  for (int i = 0; i < op.formula.arity(); ++i)
    x.push_back(builder.Input(kType));
  return op.formula(x, 0).type() == DataType::kBool;
}

}  // namespace op_kernels_internal

// Registers the ops of a table.
inline void AddElementwiseOps(const Registrar& registrar,
                              const std::vector<ElementwiseOp>& table) {
  for (const ElementwiseOp& op : table) {
    op_kernels_internal::ElementwiseTable().push_back(op);
    if (op.types == 0) {
      registrar.Add<op_kernels_internal::ElementwiseKernel>(KernelDef(op.name));
      registrar.AddFusable(
          {op, kernel::SetOf(DataType::kBool), nullptr, /*gives_bool=*/true});
      continue;
    }
    const uint64_t types =
        registrar.WithOpcodes(op.types & kAllTypes, [&](DataType type) {
          return op_kernels_internal::ExpressionOf(op, type, /*attr=*/0);
        });
    const uint64_t on_host = kernel::HasHostKernel(op.name) ? kInt32Type : 0;
    ir::FusableOp fusable = {op, types & ~on_host, "T",
                             op_kernels_internal::GivesBool(op)};
    // TensorFlow refuses to divide by zero.
    const bool may_fail =
        absl::StrContains(op.name, "Div") || absl::StrContains(op.name, "Mod");
    if (!may_fail) fusable.host_types = types & on_host;
    registrar.AddFusable(std::move(fusable));
    registrar.Add<op_kernels_internal::ElementwiseKernel>(
        KernelDef(op.name), "T", types & ~on_host);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_ELEMENTWISE_H_
