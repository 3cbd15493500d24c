// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SPARSE_MATH_H_
#define TFPLUG_OP_KERNELS_SPARSE_MATH_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "tfplug/ir/scalar_code.h"
#include "tfplug/op_kernels/sparse_tensor.h"

#pragma GCC visibility push(hidden)

// Arithmetic of sparse tensors, whose results have as many elements as their
// coordinates require: on the host.
namespace tfplug {
namespace op_kernels_internal {

// Calls visit with a tag of the C++ type of a number.
template <class Visit>
void VisitNumber(DataType type, Visit visit) {
  if (type == DataType::kComplex64) {
    return visit(ir::TypeTagOf<std::complex<float>>());
  }
  if (type == DataType::kComplex128) {
    return visit(ir::TypeTagOf<std::complex<double>>());
  }
  ir::VisitStored(type, [&visit](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, bool>) visit(tag);
  });
}

// The type that sums of T are computed in.
template <class T, class = void>
struct SumType {
  using type = ir::Computed<T>;
};
template <class T>
struct SumType<std::complex<T>> {
  using type = std::complex<T>;
};
template <class T>
using SumOf = typename SumType<T>::type;

// Adds integers modulo 2^n.
template <class S>
S AddNumbers(S a, S b) {
  if constexpr (std::is_integral_v<S>) {
    using U = std::make_unsigned_t<S>;
    return static_cast<S>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}
// Returns NaN if either is NaN.
template <class S>
S LargerOf(S a, S b) {
  return a > b || a != a ? a : b;
}

// Returns -1, 0 or 1 as row `a` precedes, equals or follows row `b`.
inline int CompareRows(const int64_t* a, const int64_t* b, int64_t rank) {
  for (int64_t d = 0; d < rank; ++d) {
    if (a[d] != b[d]) return a[d] < b[d] ? -1 : 1;
  }
  return 0;
}

// SparseAdd: the elements of both tensors, which are in the order of their
// coordinates, and the sums of those with equal coordinates that are not below
// the threshold.
class SparseAddKernel final : public ReadThenHostKernel {
 public:
  bool IsInputOnHost(int i) const override { return i == 2 || i == 5; }
  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    TFPLUG_ASSIGN_OR_RETURN(const SparseView a,
                            SparseView::Of(in[0], in[1], in[2]));
    TFPLUG_ASSIGN_OR_RETURN(const SparseView b,
                            SparseView::Of(in[3], in[4], in[5]));
    if (a.shape != b.shape) {
      return absl::InvalidArgumentError(
          a.rank() != b.rank()
              ? "Operands do not have the same ranks; got shapes: " +
                    Shape(a.shape).ToString() + " and " +
                    Shape(b.shape).ToString()
              : "Operands' shapes do not match: got " +
                    Shape(a.shape).ToString() + " and " +
                    Shape(b.shape).ToString());
    }
    if (in[6].shape.rank() != 0) {
      return absl::InvalidArgumentError(
          "The magnitude threshold must be a scalar: got shape " +
          in[6].shape.ToString());
    }
    // The type of the threshold is an attribute of its own.
    long double least = 0;
    VisitNumber(in[6].type, [&](auto tag) {
      using R = typename decltype(tag)::type;
      if constexpr (std::is_arithmetic_v<SumOf<R>>) {
        least = static_cast<long double>(static_cast<SumOf<R>>(*in[6].as<R>()));
      }
    });
    SparseBuilder builder(in[1].type);
    VisitNumber(in[1].type, [&](auto tag) {
      Add<typename decltype(tag)::type>(a, b, least, builder);
    });
    builder.AddTensor(outputs, a.shape);
    return absl::OkStatus();
  }

 private:
  template <class T>
  static void Add(const SparseView& a, const SparseView& b, long double least,
                  SparseBuilder& builder) {
    const auto rank = static_cast<size_t>(a.rank());
    const auto add = [&](const SparseView& from, int64_t i) {
      builder.Add({from.row(i), rank}, *from.values, i);
    };
    int64_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
      const int order = CompareRows(a.row(i), b.row(j), a.rank());
      if (order < 0) {
        add(a, i++);
      } else if (order > 0) {
        add(b, j++);
      } else {
        using S = SumOf<T>;
        T sum = T(AddNumbers(static_cast<S>(a.values->template as<T>()[i]),
                             static_cast<S>(b.values->template as<T>()[j])));
        if (Reaches(sum, least)) {
          builder.Add({a.row(i), rank}, {a.values->type, Shape{1}, &sum}, 0);
        }
        ++i;
        ++j;
      }
    }
    while (i < a.size()) add(a, i++);
    while (j < b.size()) add(b, j++);
  }

  template <class T>
  static bool Reaches(T sum, long double least) {
    if constexpr (std::is_arithmetic_v<SumOf<T>>) {
      return least <=
             std::fabs(static_cast<long double>(static_cast<SumOf<T>>(sum)));
    } else {
      return least <= std::abs(sum);
    }
  }
};

// SparseAddGrad: the gradients of the sum at the coordinates of each operand, 0
// where the sum has no element.
class SparseAddGradKernel final : public ReadThenHostKernel {
 public:
  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    const int64_t rank = in[3].shape.rank() == 2 ? in[3].shape.dim(1) : -1;
    bool fits = rank >= 0 && in[0].shape == Shape{in[3].shape.dim(0)};
    for (size_t k = 1; fits && k < 3; ++k) {
      fits = in[k].shape.rank() == 2 && in[k].shape.dim(1) == rank;
    }
    if (!fits) {
      return absl::InvalidArgumentError(
          "a_indices, b_indices and sum_indices must be matrices with as many "
          "columns, and backprop_val_grad have an element for each row of "
          "sum_indices, not " +
          in[1].shape.ToString() + ", " + in[2].shape.ToString() + ", " +
          in[3].shape.ToString() + " and " + in[0].shape.ToString());
    }
    const size_t size = DataTypeSize(in[0].type);
    for (size_t k = 1; k < 3; ++k) {
      const int64_t n = in[k].shape.dim(0);
      const HostArray& to = outputs.Add(in[0].type, {n});
      for (int64_t i = 0, at = 0; i < n; ++i) {
        const int64_t* const row = in[k].as<int64_t>() + i * rank;
        int order = -1;
        while (at < in[3].shape.dim(0)) {
          order = CompareRows(in[3].as<int64_t>() + at * rank, row, rank);
          if (order >= 0) break;
          ++at;
        }
        if (order != 0 || at == in[3].shape.dim(0)) continue;
        std::memcpy(to.as<char>() + static_cast<size_t>(i) * size,
                    in[0].as<char>() + static_cast<size_t>(at) * size, size);
        ++at;
      }
    }
    return absl::OkStatus();
  }
};

// SparseSoftmax: of the values in each row of the last dimension. They become
// ordered by their coordinates, as in TensorFlow's kernel.
class SparseSoftmaxKernel final : public ReadThenHostKernel {
 public:
  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    TFPLUG_ASSIGN_OR_RETURN(const SparseView x,
                            SparseView::Of(in[0], in[1], in[2]));
    if (x.rank() < 2) {
      return absl::InvalidArgumentError("Input should have rank >= 2, but is " +
                                        Shape(x.shape).ToString());
    }
    TFPLUG_RETURN_IF_ERROR(x.CheckSizes());
    const HostArray& y = outputs.Add(in[1].type, {x.size()});
    const std::vector<int64_t> order =
        RowOrder(in[0].as<int64_t>(), x.size(), x.rank());
    ir::VisitStored(in[1].type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_floating_point_v<ir::Computed<T>>) {
        std::vector<T> row;
        T* to = y.as<T>();
        for (size_t i = 0; i < order.size(); ++i) {
          row.push_back(in[1].as<T>()[order[i]]);
          if (i + 1 < order.size() &&
              CompareRows(x.row(order[i]), x.row(order[i + 1]), x.rank() - 1) ==
                  0) {
            continue;
          }
          ComputeRow(row.data(), to, static_cast<int64_t>(row.size()));
          to += row.size();
          row.clear();
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  template <class T>
  static void ComputeRow(const T* x, T* y, int64_t n) {
    double largest = static_cast<double>(x[0]), sum = 0;
    for (int64_t i = 1; i < n; ++i) {
      largest = LargerOf(largest, static_cast<double>(x[i]));
    }
    for (int64_t i = 0; i < n; ++i) {
      sum += std::exp(static_cast<double>(x[i]) - largest);
    }
    for (int64_t i = 0; i < n; ++i) {
      y[i] =
          ir::Convert<T>(std::exp(static_cast<double>(x[i]) - largest) / sum);
    }
  }
};

// SparseReduceSum and SparseReduceMax, whose result is dense, and
// SparseReduceSumSparse and SparseReduceMaxSparse.
class SparseReduceKernel final : public ReadThenHostKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    TFPLUG_ASSIGN_OR_RETURN(keep_dims_,
                            construction.GetAttr<bool>("keep_dims"));
    is_max_ = op.find("Max") != op.npos;
    is_sparse_ = op.size() > 16;
    return absl::OkStatus();
  }
  bool IsInputOnHost(int i) const override { return i >= 2; }
  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    TFPLUG_ASSIGN_OR_RETURN(const SparseView x,
                            SparseView::Of(in[0], in[1], in[2]));
    const auto rank = static_cast<size_t>(x.rank());
    TFPLUG_RETURN_IF_ERROR(x.CheckSizes());
    std::vector<bool> is_reduced(rank, false);
    if (in[3].shape.rank() > 1) {
      return absl::InvalidArgumentError(
          "Expected reduction_axes to be a scalar or a vector, not shape " +
          in[3].shape.ToString());
    }
    for (int64_t i = 0; i < in[3].shape.num_elements(); ++i) {
      TFPLUG_ASSIGN_OR_RETURN(
          const int axis,
          CheckAxis(in[3].as<int32_t>()[i], static_cast<int>(rank)));
      is_reduced[static_cast<size_t>(axis)] = true;
    }
    // The coordinates of each element in the result.
    std::vector<int64_t> shape, rows;
    for (size_t d = 0; d < rank; ++d) {
      if (!is_reduced[d] || keep_dims_) {
        shape.push_back(is_reduced[d] ? 1 : x.shape[d]);
      }
    }
    TFPLUG_RETURN_IF_ERROR(ToShape(shape).status());
    for (int64_t i = 0; i < x.size(); ++i) {
      for (size_t d = 0; d < rank; ++d) {
        const int64_t at = x.row(i)[d];
        if (!is_reduced[d]) {
          rows.push_back(at);
        } else if (keep_dims_) {
          rows.push_back(0);
        }
      }
    }
    const std::vector<int64_t> order =
        RowOrder(rows.data(), x.size(), static_cast<int64_t>(shape.size()));
    absl::Status status;
    VisitNumber(in[1].type, [&](auto tag) {
      status = Reduce<typename decltype(tag)::type>(in[1], shape, rows, order,
                                                    outputs);
    });
    return status;
  }

 private:
  template <class T>
  absl::Status Reduce(const HostArray& values,
                      const std::vector<int64_t>& shape,
                      const std::vector<int64_t>& rows,
                      const std::vector<int64_t>& order,
                      HostOutputs& outputs) const {
    const auto rank = static_cast<int64_t>(shape.size());
    std::vector<int64_t> firsts;  // an element of each group
    std::vector<T> results;
    const auto row = [&](int64_t i) { return rows.data() + i * rank; };
    for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      SumOf<T> total = static_cast<SumOf<T>>(values.as<T>()[order[begin]]);
      for (end = begin + 1;
           end < order.size() &&
           CompareRows(row(order[begin]), row(order[end]), rank) == 0;
           ++end) {
        total =
            Combine(total, static_cast<SumOf<T>>(values.as<T>()[order[end]]));
      }
      firsts.push_back(order[begin]);
      results.push_back(T(total));
    }
    return Write({values.type, Shape{}, results.data()}, firsts, shape, rows,
                 outputs);
  }
  // Outputs the results, of which each belongs to the row of an element.
  absl::Status Write(const HostArray& results,
                     const std::vector<int64_t>& firsts,
                     const std::vector<int64_t>& shape,
                     const std::vector<int64_t>& rows,
                     HostOutputs& outputs) const {
    const auto rank = static_cast<int64_t>(shape.size());
    const auto row = [&](int64_t i) { return rows.data() + i * rank; };
    if (!is_sparse_) {
      const HostArray& y = outputs.Add(results.type, Shape(shape));
      const size_t bytes = DataTypeSize(results.type);
      for (size_t g = 0; g < firsts.size(); ++g) {
        uint64_t at = 0;  // wraps
        for (int64_t d = 0; d < rank; ++d) {
          at = at * static_cast<uint64_t>(shape[static_cast<size_t>(d)]) +
               static_cast<uint64_t>(row(firsts[g])[d]);
        }
        if (at >= static_cast<uint64_t>(y.shape.num_elements())) {
          return absl::InternalError(absl::StrCat(
              "Obtained a write index of ", static_cast<int64_t>(at),
              " which is outside of bounds of [0, ", y.shape.num_elements(),
              ")"));
        }
        std::memcpy(y.as<char>() + at * bytes, results.as<char>() + g * bytes,
                    bytes);
      }
      return absl::OkStatus();
    }
    SparseBuilder builder(results.type);
    for (size_t g = 0; g < firsts.size(); ++g) {
      builder.Add({row(firsts[g]), shape.size()}, results,
                  static_cast<int64_t>(g));
    }
    builder.AddTensor(outputs, shape);
    return absl::OkStatus();
  }

  template <class S>
  S Combine(S a, S b) const {
    if constexpr (std::is_arithmetic_v<S>) {
      if (is_max_) return LargerOf(a, b);
    }
    return AddNumbers(a, b);
  }

  bool keep_dims_ = false, is_max_ = false, is_sparse_ = false;
};

}  // namespace op_kernels_internal

inline void SparseMathOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  constexpr uint64_t kAdded =
      kernel::SetOf(DataType::kFloat, DataType::kDouble, DataType::kInt64,
                    DataType::kInt16, DataType::kInt8) |
      kComplexTypes;
  registrar.Add<SparseAddKernel>(
      KernelDef("SparseAdd").HostMemory("a_shape").HostMemory("b_shape"), "T",
      kAdded | kInt32Type);
  registrar.Add<SparseAddGradKernel>(KernelDef("SparseAddGrad"), "T",
                                     kAdded | kInt32Type);
  registrar.Add<SparseSoftmaxKernel>(
      KernelDef("SparseSoftmax"), "T",
      kernel::SetOf(DataType::kFloat, DataType::kDouble, DataType::kHalf));
  const auto reduction = [&](const char* op, uint64_t types) {
    registrar.Add<SparseReduceKernel>(
        KernelDef(op).HostMemory("input_shape").HostMemory("reduction_axes"),
        "T", types);
  };
  reduction("SparseReduceSum", kNumberTypes | kComplexTypes);
  reduction("SparseReduceSumSparse", kNumberTypes | kComplexTypes);
  reduction("SparseReduceMax", kNumberTypes);
  reduction("SparseReduceMaxSparse", kNumberTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SPARSE_MATH_H_
