// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_RESOURCE_SLICES_H_
#define TFPLUG_OP_KERNELS_RESOURCE_SLICES_H_

#include <array>
#include <string>

#include "absl/strings/string_view.h"
#include "tfplug/kernel/new_values.h"
#include "tfplug/kernel/register_op.h"
#include "tfplug/op_kernels/gather.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/scatter.h"
#include "tfplug/op_kernels/slice.h"
#include "tfplug/op_kernels/variables.h"

#pragma GCC visibility push(hidden)

// Slices of variables. Their kernels need functions that TensorFlow exports up
// to 2.18; in later releases the pass LowerVariableUpdates replaces the ops in
// graphs.
namespace tfplug {
namespace op_kernels_internal {

// Calls use(the variable of input 0 as a view) while it is locked.
template <class Use>
absl::Status WithVariable(OpRun& run, bool exclusive, const char* remedy,
                          Use use) {
  using Code = BackendVariables;
  auto lock =
      LockVariables<Code>(run.context(), {0}, exclusive, /*sparse=*/true);
  if (lock.status().code() == absl::StatusCode::kUnimplemented) {
    return absl::UnimplementedError(std::string(lock.status().message()) +
                                    "; use " + remedy + " instead");
  }
  if (!lock.ok()) return lock.status();
  TFPLUG_ASSIGN_OR_RETURN(
      const Tensor tensor,
      GetVariableTensor<Code>(run.context(), 0, /*lock_held=*/true,
                              /*is_variant=*/false, /*sparse=*/true));
  TFPLUG_ASSIGN_OR_RETURN(const Operand view, ViewOf(tensor));
  return use(view);
}

class ResourceGatherKernel final : public GatherKernel {
 public:
  absl::Status Run(OpRun& run) override {
    return WithVariable(run, /*exclusive=*/false,
                        "tf.gather(v.read_value(), indices)",
                        [&](const Operand& x) -> absl::Status {
                          TFPLUG_ASSIGN_OR_RETURN(
                              const int axis, CheckAxis(batch_dims(), x.rank));
                          return Gather(run, x, axis);
                        });
  }
};

class ResourceGatherNdKernel final : public GatherNdKernel {
 public:
  absl::Status Run(OpRun& run) override {
    return WithVariable(run, /*exclusive=*/false,
                        "tf.gather_nd(v.read_value(), indices)",
                        [&](const Operand& x) { return Gather(run, x); });
  }
};

// ResourceScatterNdAdd and its relatives: the tensor is a variable.
class ResourceScatterNdKernel final : public ScatterNdKernel {
 public:
  absl::Status Run(OpRun& run) override {
    return WithVariable(
        run, /*exclusive=*/true, "v.assign(tf.tensor_scatter_nd_add(v, ...))",
        [&](const Operand& variable) -> absl::Status {
          TFPLUG_ASSIGN_OR_RETURN(const int depth,
                                  CheckUpdates(run, ShapeOf(variable)));
          if (variable.num_elements() == 0) return absl::OkStatus();
          return Scatter(run, depth, variable);
        });
  }
};

class ResourceStridedSliceAssignKernel final : public StridedSliceUpdateKernel {
 public:
  absl::Status Run(OpRun& run) override {
    return WithVariable(
        run, /*exclusive=*/true,
        "v.assign(tf.tensor_strided_slice_update(v, ...))",
        [&](const Operand& variable) { return Replace(run, variable); });
  }
};

// ResourceScatterAdd and the other updates of slices.
class ResourceScatterKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    TFPLUG_ASSIGN_OR_RETURN(const auto type,
                            construction.GetAttr<DataType>("dtype"));
    return Init(op, type);
  }

  absl::Status Run(OpRun& run) override {
    return WithVariable(
        run, /*exclusive=*/true, "v.assign(tf.tensor_scatter_nd_add(v, ...))",
        [&](const Operand& variable) { return Update(run, variable); });
  }

 protected:
  absl::Status Init(const std::string& op, DataType type) {
    kind_ = op == "ResourceScatterUpdate" ? kSet
            : op == "ResourceScatterMul" || op == "ResourceScatterDiv"
                ? kMultiply
            : op == "ResourceScatterMax" ? kMax
            : op == "ResourceScatterMin" ? kMin
                                         : kAdd;
    // The other updates are those of changed values.
    changes_ = op == "ResourceScatterSub" || op == "ResourceScatterDiv";
    TFPLUG_ASSIGN_OR_RETURN(
        change_, MakeExpression({type}, {type}, [&](Value x) {
          return !changes_ ? x : op == "ResourceScatterSub" ? -x : 1 / x;
        }));
    return absl::OkStatus();
  }

  static constexpr ScatterKind kSet = ScatterKind::kSet,
                               kAdd = ScatterKind::kAdd,
                               kMultiply = ScatterKind::kMultiply,
                               kMax = ScatterKind::kMax,
                               kMin = ScatterKind::kMin;

  absl::Status Update(OpRun& run, const Operand& variable) const {
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(Operand updates, GetView(run, 2));
    if (variable.rank < 1) {
      return absl::InvalidArgumentError(
          "resource must be at least 1 dimensional");
    }
    Shape want = ShapeOf(indices);
    for (int d = 1; d < variable.rank; ++d) want.add_dim(variable.dim(d));
    const bool repeats = updates.rank == 0;
    if (!repeats && ShapeOf(updates) != want) {
      return absl::InvalidArgumentError("updates must have shape " +
                                        want.ToString() + ", not " +
                                        ShapeOf(updates).ToString());
    }
    const int64_t n = indices.num_elements();
    if (n == 0 || variable.num_elements() == 0) return absl::OkStatus();
    const int64_t size = variable.num_elements() / variable.dim(0);
    Operand rows = updates;
    rows.rank = 0;
    rows.AddDim(n, repeats ? 0 : size).AddDim(size, repeats ? 0 : 1);
    if (changes_ || repeats) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand changed,
                              run.launcher().Allocate(rows.type, {n, size}));
      TFPLUG_RETURN_IF_ERROR(run.launcher().Map(change_, {rows}, {changed}));
      rows = changed;
    }
    return run.launcher().Scatter(
        kind_, ir::Flat(indices), rows,
        Operand::Dense(variable.data, variable.type, {variable.dim(0), size}));
  }

 private:
  ScatterKind kind_ = ScatterKind::kAdd;
  bool changes_ = false;
  Expression change_;
};

// Returns the value that a variable has after an update (kernel/new_values.h).
class NewSlicesKernel final : public ResourceScatterKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const auto attrs,
                            kernel::NewValuesAttrs::Read(construction));
    const std::string& op = attrs.op->op;
    if (op == kOps[1] && (kernel::SetOf(attrs.type) & kFloatTypes) == 0) {
      return absl::InvalidArgumentError("T must be a float type for " + op);
    }
    return ResourceScatterKernel::Init(op, attrs.type);
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand old, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand value,
                            run.AllocateOutput(0, ShapeOf(old)));
    TFPLUG_RETURN_IF_ERROR(Copy(run, old, value));
    return Update(run, value);
  }

  // The ops that no op on values replaces.
  static constexpr std::array<absl::string_view, 2> kOps = {
      "ResourceScatterMul", "ResourceScatterDiv"};
};

}  // namespace op_kernels_internal

inline void ResourceSliceOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  const auto def = [](const std::string& op) {
    return KernelDef(op)
        .HostMemory("resource")
        .TypeConstraint<int32_t, int64_t>("Tindices");
  };
  registrar.Add<ResourceGatherKernel>(def("ResourceGather"), "dtype",
                                      kCopiedTypes);
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Min", "Max"}) {
    registrar.Add<ResourceScatterKernel>(
        def(std::string("ResourceScatter") + op), "dtype",
        op == absl::string_view("Div") ? kFloatTypes : kNumberTypes);
  }
  RegisterOp(NewValuesOp(kNewSlicesOp));
  registrar.Add<NewSlicesKernel>(KernelDef(kNewSlicesOp), "T", kNumberTypes);
  for (const absl::string_view op : NewSlicesKernel::kOps) {
    kernel::UpdateOps().push_back(
        {std::string(op), kNewSlicesOp, 1, 3, /*indices=*/1});
  }
  registrar.Add<ResourceScatterKernel>(def("ResourceScatterUpdate"), "dtype",
                                       kAllTypes);
  registrar.Add<ResourceGatherNdKernel>(def("ResourceGatherNd"), "dtype",
                                        kCopiedTypes);
  const auto nd = [](const std::string& op) {
    return KernelDef("ResourceScatterNd" + op)
        .HostMemory("ref")
        .TypeConstraint<int32_t, int64_t>("Tindices");
  };
  for (const char* op : {"Add", "Sub", "Update"}) {
    registrar.Add<ResourceScatterNdKernel>(nd(op), "T",
                                           kNumberTypes | kComplexTypes);
  }
  for (const char* op : {"Max", "Min"}) {
    registrar.Add<ResourceScatterNdKernel>(nd(op), "T", kNumberTypes);
  }
  registrar.Add<ResourceStridedSliceAssignKernel>(
      KernelDef("ResourceStridedSliceAssign")
          .HostMemory("ref")
          .HostMemory("begin")
          .HostMemory("end")
          .HostMemory("strides"),
      "T", kCopiedTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_RESOURCE_SLICES_H_
