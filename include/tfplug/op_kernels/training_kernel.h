// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_TRAINING_KERNEL_H_
#define TFPLUG_OP_KERNELS_TRAINING_KERNEL_H_

#include <array>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "tfplug/kernel/op.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/variables.h"

#pragma GCC visibility push(hidden)

// The kernel of all optimizers, and the rows of their table (training.h).
namespace tfplug::op_kernels_internal {

// An op that changes variables, its first inputs. The other inputs are scalars
// and one gradient. The op's variant for slices has one more input, the indices
// of the slices, which follows the gradient.
struct TrainingOp {
  using Values = std::vector<Value>;

  const char* name;
  const char* sparse_name;  // null if the op has no such variant
  size_t num_inputs;        // of the first op
  size_t num_variables;
  std::array<const char*, 4> variables;  // their names
  size_t gradient;
  const char* attr;  // the last argument of the formula, or null
  void (*formula)();
  Values (*call)(void (*formula)(), const Values& inputs, bool attr);
};

// Calls a formula.
template <size_t kVariables, class Indices, class... A>
struct TrainingFormula;
template <size_t kVariables, size_t... i, class... A>
struct TrainingFormula<kVariables, std::index_sequence<i...>, A...> {
  using Function = std::array<Value, kVariables> (*)(A...);

  template <class Argument>
  static Argument Get(const TrainingOp::Values& inputs, size_t k, bool attr) {
    if constexpr (std::is_same_v<Argument, bool>) {
      return attr;
    } else {
      return inputs[k];
    }
  }
  static TrainingOp::Values Call(void (*formula)(),
                                 const TrainingOp::Values& inputs, bool attr) {
    const auto result =
        reinterpret_cast<Function>(formula)(Get<A>(inputs, i, attr)...);
    return TrainingOp::Values(result.begin(), result.end());
  }
};

// The index of the gradient among the inputs of O.
template <class O, class = void>
inline constexpr size_t kGradientOf = static_cast<size_t>(O::delta);
template <class O>
inline constexpr size_t kGradientOf<O, std::void_t<decltype(O::grad)>> =
    static_cast<size_t>(O::grad);

// Returns the row of the typed op O and its variant for slices. The formula
// takes the inputs in order, and the attribute `attr` if it has one.
template <class O, class Sparse = void, size_t kVariables, class... A>
TrainingOp Training(std::array<Value, kVariables> (*formula)(A...),
                    const char* attr = nullptr) {
  TrainingOp op = {};
  op.name = O::kName;
  if constexpr (!std::is_void_v<Sparse>) op.sparse_name = Sparse::kName;
  op.num_inputs = (size_t{std::is_same_v<A, Value>} + ...);
  op.num_variables = kVariables;
  for (size_t i = 0; i < kVariables; ++i) {
    op.variables[i] =
        kernel_internal::NameOf(static_cast<typename O::Inputs>(i));
  }
  op.gradient = kGradientOf<O>;
  op.attr = attr;
  op.formula = reinterpret_cast<void (*)()>(formula);
  op.call =
      &TrainingFormula<kVariables, std::index_sequence_for<A...>, A...>::Call;
  return op;
}

// Returns the step of a proximal method.
inline Value Shrink(Value x, Value lr, Value l1, Value l2) {
  return Sign(x) * Max(Abs(x) - lr * l1, 0) / (1 + lr * l2);
}

inline std::array<Value, 3> Ftrl(Value var, Value accum, Value linear,
                                 Value grad, Value shrunk, Value lr, Value l1,
                                 Value l2, Value lr_power,
                                 bool multiply_linear_by_lr) {
  const auto power = [&](Value x) {
    return Select(lr_power == -0.5, Sqrt(x), Pow(x, -lr_power));
  };
  const Value sum = accum + grad * grad;
  const Value change = power(sum) - power(accum);
  if (multiply_linear_by_lr) {
    linear = linear + shrunk * lr - change * var;
    l1 = l1 * lr;
    l2 = l2 * lr;
  } else {
    linear = linear + shrunk - change / lr * var;
  }
  const Value scale = multiply_linear_by_lr ? power(sum) : power(sum) / lr;
  const Value x = l1 * Sign(linear) - linear;
  return {Select(Abs(linear) > l1, x / (scale + 2 * l2), 0), sum, linear};
}

// The optimizers; set by TrainingOps.
inline const std::vector<TrainingOp>* training_table = nullptr;

class TrainingKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string name, construction.GetOp());
    for (const TrainingOp& op : *training_table) {
      is_sparse_ = op.sparse_name != nullptr && name == op.sparse_name;
      if (is_sparse_ || name == op.name) return Build(op, construction);
    }
    return absl::InternalError("the op " + name + " is in no table");
  }

  absl::Status Run(OpRun& run) override {
    using Code = BackendVariables;
    const size_t n = op_->num_variables;
    constexpr int kVariables[] = {0, 1, 2, 3};
    auto lock =
        LockVariables<Code>(run.context(), absl::MakeConstSpan(kVariables, n),
                            /*exclusive=*/true, is_sparse_);
    if (!lock.ok()) return Explain(lock.status());
    absl::InlinedVector<Tensor, 4> tensors;
    absl::InlinedVector<Operand, 4> variables;
    for (size_t i = 0; i < n; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(
          Tensor tensor,
          GetVariableTensor<Code>(run.context(), kVariables[i],
                                  /*lock_held=*/true, /*is_variant=*/false,
                                  /*sparse=*/is_sparse_));
      if (i > 0 && tensor.shape() != tensors[0].shape()) {
        return WrongShape(op_->variables[i], tensor.shape(),
                          tensors[0].shape());
      }
      TFPLUG_ASSIGN_OR_RETURN(const Operand view, ViewOf(tensor));
      variables.push_back(view);
      tensors.push_back(std::move(tensor));
    }
    return is_sparse_ ? UpdateSlices(run, variables)
                      : UpdateAll(run, variables);
  }

 private:
  using Views = absl::InlinedVector<Operand, 12>;

  absl::Status Build(const TrainingOp& op, KernelConstruction& construction) {
    op_ = &op;
    TFPLUG_ASSIGN_OR_RETURN(const auto type,
                            construction.GetAttr<DataType>("T"));
    bool attr = false;
    if (op.attr != nullptr) {
      TFPLUG_ASSIGN_OR_RETURN(attr, construction.GetAttr<bool>(op.attr));
    }
    ExpressionBuilder builder;
    TrainingOp::Values inputs;
    if (is_sparse_) {
      TFPLUG_ASSIGN_OR_RETURN(const auto index_type,
                              construction.GetAttr<DataType>("Tindices"));
      const Value index = Cast(builder.Input(index_type), DataType::kInt64);
      for (size_t i = 0; i < op.num_variables; ++i) {
        inputs.push_back(builder.Element(builder.AxisInput(type), index));
      }
    }
    while (inputs.size() < op.num_inputs) {
      inputs.push_back(builder.Input(type));
    }
    for (Value value : op.call(op.formula, inputs, attr)) {
      builder.Output(value, type);
    }
    TFPLUG_ASSIGN_OR_RETURN(expression_, std::move(builder).Build());
    return absl::OkStatus();
  }

  absl::Status UpdateAll(OpRun& run, absl::Span<const Operand> variables) {
    Views inputs(variables.begin(), variables.end());
    TFPLUG_RETURN_IF_ERROR(
        AddInputs(run, ShapeOf(variables[0]), variables[0], inputs));
    Views outputs(variables.begin(), variables.end());
    return run.launcher().Map(expression_, absl::MakeSpan(inputs),
                              absl::MakeSpan(outputs));
  }

  // Computes new slices and stores them. Of several slices with one index, the
  // last one counts, so the caller must have added their gradients, as Keras
  // does.
  absl::Status UpdateSlices(OpRun& run, absl::Span<const Operand> variables) {
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices,
                            GetView(run, static_cast<int>(op_->gradient) + 1));
    if (variables[0].rank < 1 || indices.rank != 1) {
      return absl::InvalidArgumentError(
          "var must be at least 1 dimensional, and indices must be one "
          "dimensional, not " +
          ShapeOf(indices).ToString());
    }
    const int64_t n = indices.dim(0);
    Operand slices = variables[0];
    slices.dim(0) = n;
    Views inputs, outputs;
    Operand index = indices;
    for (int d = 1; d < slices.rank; ++d) index.AddDim(slices.dim(d), 0);
    inputs.push_back(index);
    for (const Operand& variable : variables) {
      inputs.push_back(ir::WithDim(ir::WithAxis(variable, 0), 0, n));
      TFPLUG_ASSIGN_OR_RETURN(
          const Operand result,
          run.launcher().Allocate(variable.type, ir::DimsOf(slices)));
      outputs.push_back(result);
    }
    TFPLUG_RETURN_IF_ERROR(AddInputs(run, ShapeOf(slices), slices, inputs));
    if (n == 0) return absl::OkStatus();
    Views results = outputs;
    TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
        expression_, absl::MakeSpan(inputs), absl::MakeSpan(results)));
    for (size_t i = 0; i < outputs.size(); ++i) {
      TFPLUG_RETURN_IF_ERROR(run.launcher().Scatter(ScatterKind::kSet, indices,
                                                    outputs[i], variables[i]));
    }
    return absl::OkStatus();
  }

  // Adds the op's other inputs: the gradient, which has the shape of the
  // outputs, and scalars.
  absl::Status AddInputs(OpRun& run, const Shape& shape, const Operand& like,
                         Views& inputs) const {
    for (size_t i = op_->num_variables; i < op_->num_inputs; ++i) {
      const size_t position = is_sparse_ && i > op_->gradient ? i + 1 : i;
      TFPLUG_ASSIGN_OR_RETURN(Operand view,
                              GetView(run, static_cast<int>(position)));
      if (i == op_->gradient) {
        if (ShapeOf(view) != shape) {
          return WrongShape("the gradient", ShapeOf(view), shape);
        }
      } else {
        if (view.rank != 0) {
          return absl::InvalidArgumentError(
              "input " + std::to_string(position) +
              " is not a scalar: " + ShapeOf(view).ToString());
        }
        for (int d = 0; d < like.rank; ++d) view.AddDim(like.dim(d), 0);
      }
      inputs.push_back(view);
    }
    return absl::OkStatus();
  }

  [[gnu::cold, gnu::noinline]] static absl::Status WrongShape(
      const char* name, const Shape& shape, const Shape& expected) {
    return absl::InvalidArgumentError(std::string(name) + " must have shape " +
                                      expected.ToString() + ", not " +
                                      shape.ToString());
  }
  [[gnu::cold, gnu::noinline]] static absl::Status Explain(
      const absl::Status& status) {
    if (status.code() != absl::StatusCode::kUnimplemented) return status;
    return absl::UnimplementedError(
        std::string(status.message()) +
        "; use an optimizer of Keras 3, which needs no such op");
  }

  const TrainingOp* op_ = nullptr;
  bool is_sparse_ = false;
  Expression expression_;
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_TRAINING_KERNEL_H_
