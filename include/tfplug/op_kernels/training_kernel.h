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
#include "tfplug/ir/elementwise.h"
#include "tfplug/kernel/new_values.h"
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
  const char* name;
  const char* sparse_name;  // null if the op has no such variant
  size_t num_variables;
  std::array<const char*, 4> variables;  // their names
  size_t gradient;
  size_t step;       // the scalar of type int64, which the formula gets as T
  const char* attr;  // the last argument of the formula, or null
  Formula formula;

  size_t num_inputs() const { return static_cast<size_t>(formula.arity()); }
};

// The index of the gradient among the inputs of O.
template <class O, class = void>
inline constexpr size_t kGradientOf = static_cast<size_t>(O::delta);
template <class O>
inline constexpr size_t kGradientOf<O, std::void_t<decltype(O::grad)>> =
    static_cast<size_t>(O::grad);

// The index of the number of steps among the inputs of O, if it has one.
template <class O, class = void>
inline constexpr size_t kStepOf = kernel::UpdateOp::kNone;
template <class O>
inline constexpr size_t kStepOf<O, std::void_t<decltype(O::global_step)>> =
    static_cast<size_t>(O::global_step);

// Returns the row of the typed op O and its variant for slices. The formula
// takes the inputs in order, and the attribute `attr` if it has one.
template <class O, class Sparse = void, size_t kVariables, class... A>
TrainingOp Training(std::array<Value, kVariables> (*formula)(A...),
                    const char* attr = nullptr) {
  TrainingOp op = {O::kName,       nullptr,    kVariables, {},
                   kGradientOf<O>, kStepOf<O>, attr,       formula};
  if constexpr (!std::is_void_v<Sparse>) op.sparse_name = Sparse::kName;
  for (size_t i = 0; i < kVariables; ++i) {
    op.variables[i] =
        kernel_internal::NameOf(static_cast<typename O::Inputs>(i));
  }
  return op;
}

// Describes the op, or its variant for slices, to LowerVariableUpdates.
inline kernel::UpdateOp UpdateOpOf(const TrainingOp& op, bool is_sparse) {
  kernel::UpdateOp update = {is_sparse ? op.sparse_name : op.name,
                             kNewTrainingValuesOp, op.num_variables,
                             op.num_inputs() + is_sparse};
  if (is_sparse) update.indices = op.gradient + 1;
  if (op.step != kernel::UpdateOp::kNone) {
    update.step = op.step + (is_sparse && op.step > op.gradient);
  }
  update.option = op.attr;
  return update;
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

// The update of an optimizer, for both of its kernels.
class TrainingUpdate {
 public:
  using Variables = absl::InlinedVector<Operand, 4>;

  // Finds the op in the table.
  absl::Status Find(const std::string& name) {
    for (const TrainingOp& op : *training_table) {
      is_sparse_ = op.sparse_name != nullptr && name == op.sparse_name;
      if (!is_sparse_ && name != op.name) continue;
      op_ = &op;
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError("op " + name + " is not an optimizer");
  }

  // Prepares the formula. `option` is the value of the attribute option().
  absl::Status Build(DataType type, DataType index_type, bool option) {
    ExpressionBuilder builder;
    Formula::Values inputs;
    if (is_sparse_) {
      const Value index = Cast(builder.Input(index_type), DataType::kInt64);
      for (size_t i = 0; i < op_->num_variables; ++i) {
        inputs.push_back(builder.Element(builder.AxisInput(type), index));
      }
    }
    while (inputs.size() < op_->num_inputs()) {
      const bool is_step = inputs.size() == op_->step;
      const Value input = builder.Input(is_step ? DataType::kInt64 : type);
      inputs.push_back(is_step ? Cast(input, type) : input);
    }
    for (Value value : op_->formula.Outputs(inputs, option)) {
      builder.Output(value, type);
    }
    TFPLUG_ASSIGN_OR_RETURN(expression_, std::move(builder).Build());
    return absl::OkStatus();
  }

  // Returns the position of the indices among the op's inputs.
  size_t indices_input() const { return op_->gradient + 1; }
  const char* option() const { return op_->attr; }
  size_t num_variables() const { return op_->num_variables; }
  bool is_sparse() const { return is_sparse_; }

  // Checks the variable `i` against the first one.
  absl::Status CheckVariable(size_t i, const Shape& shape,
                             const Shape& first) const {
    return shape == first ? absl::OkStatus()
                          : WrongShape(op_->variables[i], shape, first);
  }

  // Computes new values from the old ones and the op's other inputs. If
  // is_sparse(), `to` must have the old values.
  absl::Status Run(OpRun& run, const Variables& from,
                   const Variables& to) const {
    return is_sparse_ ? UpdateSlices(run, to) : UpdateAll(run, from, to);
  }

 private:
  using Views = absl::InlinedVector<Operand, 12>;

  absl::Status UpdateAll(OpRun& run, const Variables& from,
                         const Variables& to) const {
    Views inputs(from.begin(), from.end());
    TFPLUG_RETURN_IF_ERROR(AddInputs(run, ShapeOf(from[0]), from[0], inputs));
    Views outputs(to.begin(), to.end());
    return run.launcher().Map(expression_, absl::MakeSpan(inputs),
                              absl::MakeSpan(outputs));
  }

  // Computes new slices and stores them. Of several slices with one index, the
  // last one counts, so the caller must have added their gradients, as Keras
  // does.
  absl::Status UpdateSlices(OpRun& run, const Variables& variables) const {
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices,
                            GetView(run, static_cast<int>(indices_input())));
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
    for (size_t i = op_->num_variables; i < op_->num_inputs(); ++i) {
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
        view = ir::AlongDim(view, like, -1);
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

  const TrainingOp* op_ = nullptr;
  bool is_sparse_ = false;
  Expression expression_;
};

// Updates variables in place.
class TrainingKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string name, construction.GetOp());
    TFPLUG_RETURN_IF_ERROR(update_.Find(name));
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    DataType index_type = DataType::kInt64;
    bool option = false;
    if (update_.is_sparse()) {
      TFPLUG_ASSIGN_OR_RETURN(index_type,
                              construction.GetAttr<DataType>("Tindices"));
    }
    if (update_.option() != nullptr) {
      TFPLUG_ASSIGN_OR_RETURN(option,
                              construction.GetAttr<bool>(update_.option()));
    }
    return update_.Build(type, index_type, option);
  }

  absl::Status Run(OpRun& run) override {
    using Code = BackendVariables;
    const bool is_sparse = update_.is_sparse();
    constexpr int kVariables[] = {0, 1, 2, 3};
    auto lock = LockVariables<Code>(
        run.context(), absl::MakeConstSpan(kVariables, update_.num_variables()),
        /*exclusive=*/true, is_sparse);
    if (!lock.ok()) return Explain(lock.status());
    absl::InlinedVector<Tensor, 4> tensors;
    TrainingUpdate::Variables variables;
    for (size_t i = 0; i < update_.num_variables(); ++i) {
      TFPLUG_ASSIGN_OR_RETURN(
          Tensor tensor,
          GetVariableTensor<Code>(run.context(), kVariables[i],
                                  /*lock_held=*/true, /*is_variant=*/false,
                                  /*sparse=*/is_sparse));
      TFPLUG_ASSIGN_OR_RETURN(const Operand view, ViewOf(tensor));
      variables.push_back(view);
      tensors.push_back(std::move(tensor));
      TFPLUG_RETURN_IF_ERROR(
          update_.CheckVariable(i, tensors[i].shape(), tensors[0].shape()));
    }
    return update_.Run(run, variables, variables);
  }

 private:
  [[gnu::cold, gnu::noinline]] static absl::Status Explain(
      const absl::Status& status) {
    if (status.code() != absl::StatusCode::kUnimplemented) return status;
    return absl::UnimplementedError(
        std::string(status.message()) +
        "; use an optimizer of Keras 3, which needs no such op");
  }

  TrainingUpdate update_;
};

// Returns the values that variables have after an update (kernel/new_values.h).
class NewTrainingValuesKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const auto attrs,
                            kernel::NewValuesAttrs::Read(construction));
    TFPLUG_RETURN_IF_ERROR(update_.Find(attrs.op->op));
    return update_.Build(attrs.type, attrs.index_type, attrs.option);
  }

  absl::Status Run(OpRun& run) override {
    TrainingUpdate::Variables from, to;
    for (size_t i = 0; i < update_.num_variables(); ++i) {
      const int k = static_cast<int>(i);
      TFPLUG_ASSIGN_OR_RETURN(const Operand old, GetView(run, k));
      from.push_back(old);
      TFPLUG_RETURN_IF_ERROR(
          update_.CheckVariable(i, ShapeOf(old), ShapeOf(from[0])));
      TFPLUG_ASSIGN_OR_RETURN(const Operand value,
                              run.AllocateOutput(k, ShapeOf(old)));
      to.push_back(value);
      if (update_.is_sparse()) TFPLUG_RETURN_IF_ERROR(Copy(run, old, value));
    }
    return update_.Run(run, from, to);
  }

 private:
  TrainingUpdate update_;
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_TRAINING_KERNEL_H_
