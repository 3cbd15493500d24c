// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_OPS_SCAN_H_
#define TFPLUG_BACKEND_OPS_SCAN_H_

#include <string>

#include "tfplug/backend/ops/helpers.h"
#include "tfplug/backend/registrar.h"

#pragma GCC visibility push(hidden)

// Cumsum, Cumprod and TopKV2.
namespace tfplug {
namespace internal {

// Cumsum and Cumprod.
class ScanKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    TFPLUG_ASSIGN_OR_RETURN(is_exclusive_,
                            construction.GetAttr<bool>("exclusive"));
    TFPLUG_ASSIGN_OR_RETURN(is_reversed_,
                            construction.GetAttr<bool>("reverse"));
    kind_ = op == "Cumprod" ? ReduceKind::kProduct : ReduceKind::kSum;
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const int axis, GetAxis(run, 1, x.rank));
    TFPLUG_ASSIGN_OR_RETURN(Operand y, run.AllocateOutput(0, ShapeOf(x)));
    if (x.num_elements() == 0) return absl::OkStatus();
    const int last = x.rank - 1;
    const int64_t size = x.dim(axis);
    for (Operand* view : {&x, &y}) {
      *view = WithDimLast(*view, axis);
      if (!is_reversed_) continue;
      view->Advance((size - 1) * view->stride(last));
      view->stride(last) = -view->stride(last);
    }
    if (is_exclusive_) {
      TFPLUG_RETURN_IF_ERROR(
          Fill(run, Range(y, last, 0, 1), kind_ == ReduceKind::kSum ? 0 : 1));
      x = Range(x, last, 0, size - 1);
      y = Range(y, last, 1, size);
    }
    if (y.num_elements() == 0) return absl::OkStatus();
    return run.launcher().Scan(kind_, x, y);
  }

 private:
  bool is_exclusive_ = false;
  bool is_reversed_ = false;
  ReduceKind kind_ = ReduceKind::kSum;
};

class TopKKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const int64_t k, run.GetScalar(1));
    const int last = x.rank - 1;
    if (k < 0 || last < 0 || x.dim(last) < k) {
      return absl::InvalidArgumentError(
          "input must have at least k columns, and k must be non-negative; "
          "the input has shape " +
          ShapeOf(x).ToString());
    }
    Shape shape = ShapeOf(x);
    shape.set_dim(last, k);
    TFPLUG_ASSIGN_OR_RETURN(const Operand values, run.AllocateOutput(0, shape));
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices,
                            run.AllocateOutput(1, shape));
    if (values.num_elements() == 0) return absl::OkStatus();
    return run.launcher().Sort(x, values, indices);
  }
};

}  // namespace internal

inline void ScanOps(const Registrar& registrar) {
  using namespace internal;  // NOLINT
  for (const char* op : {"Cumsum", "Cumprod"}) {
    registrar.Add<ScanKernel>(
        KernelDef(op).TypeConstraint<int32_t, int64_t>("Tidx").HostMemory(
            "axis"),
        "T", kNumberTypes);
  }
  registrar.Add<TopKKernel>(KernelDef("TopKV2").HostMemory("k"), "T",
                            kNumberTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_OPS_SCAN_H_
