// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_DATA_FORMAT_H_
#define TFPLUG_OP_KERNELS_DATA_FORMAT_H_

#include <algorithm>
#include <string>

#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Ops that TensorFlow's layout optimizer creates: dimensions of one data format
// such as NHWC, in another one.
namespace tfplug {
namespace op_kernels_internal {

class DataFormatKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(from_,
                            construction.GetAttr<std::string>("src_format"));
    TFPLUG_ASSIGN_OR_RETURN(to_,
                            construction.GetAttr<std::string>("dst_format"));
    if (from_.size() != 4 && from_.size() != 5) {
      return absl::InvalidArgumentError(
          "Source format must be of length 4 or 5, not " + from_);
    }
    bool is_valid = to_.size() == from_.size();
    for (const char letter : to_) {
      is_valid = is_valid && from_.find(letter) != from_.npos &&
                 to_.find(letter) == to_.rfind(letter);
    }
    if (is_valid) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "Destination and source format must determine a permutation: the same "
        "letters, each once, not " +
        from_ + " and " + to_);
  }

 protected:
  std::string from_, to_;
};

// DataFormatDimMap: the index in dst_format of dimensions of src_format.
class DimMapKernel final : public DataFormatKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_RETURN_IF_ERROR(DataFormatKernel::Init(construction));
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    TFPLUG_ASSIGN_OR_RETURN(
        map_, MakeExpression({type}, {type}, [&](Value x) {
          const auto n = static_cast<int64_t>(from_.size());
          const Value index = (x % n + n) % n;
          Value result = x.Like(0);
          for (size_t i = 0; i < from_.size(); ++i) {
            result = Select(index == static_cast<int64_t>(i),
                            static_cast<int64_t>(to_.find(from_[i])), result);
          }
          return result;
        }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    return run.launcher().Map(map_, {x}, {y});
  }

 private:
  Expression map_;
};

// DataFormatVecPermute: sizes, or pairs of them, in the order of dst_format;
// all, or those of the spatial dimensions.
class VecPermuteKernel final : public DataFormatKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    const auto n = static_cast<int64_t>(from_.size());
    const bool is_valid = (x.rank == 1 || (x.rank == 2 && x.dim(1) == 2)) &&
                          (x.dim(0) == n || x.dim(0) == n - 2);
    if (!is_valid) {
      return absl::InvalidArgumentError(
          "input must be a vector or two columns, with a row for each "
          "dimension, or each spatial one, of " +
          from_ + ", not " + ShapeOf(x).ToString());
    }
    std::string from = from_, to = to_;
    if (x.dim(0) != n) {
      const absl::string_view spatial = n == 4 ? "HW" : "DHW";
      for (std::string* format : {&from, &to}) {
        format->erase(std::remove_if(format->begin(), format->end(),
                                     [&](char letter) {
                                       return spatial.find(letter) ==
                                              spatial.npos;
                                     }),
                      format->end());
      }
      if (from.size() != spatial.size()) {
        return absl::InvalidArgumentError(
            n == 4 ? "Format specifier must contain H and W for 2D case, or "
                     "the input must have 4 rows"
                   : "Format specifier must contain D, H and W for 2D case, or "
                     "the input must have 5 rows");
      }
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    for (int64_t i = 0; i < x.dim(0); ++i) {
      const auto at =
          static_cast<int64_t>(from.find(to[static_cast<size_t>(i)]));
      TFPLUG_RETURN_IF_ERROR(
          Copy(run, ir::Range(x, 0, at, at + 1), ir::Range(y, 0, i, i + 1)));
    }
    return absl::OkStatus();
  }
};

}  // namespace op_kernels_internal

inline void DataFormatOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  registrar.Add<DimMapKernel>(KernelDef("DataFormatDimMap"), "T", kIndexTypes);
  registrar.Add<VecPermuteKernel>(KernelDef("DataFormatVecPermute"), "T",
                                  kIndexTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_DATA_FORMAT_H_
