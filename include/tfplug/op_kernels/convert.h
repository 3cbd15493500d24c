// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_CONVERT_H_
#define TFPLUG_OP_KERNELS_CONVERT_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tfplug/ir/scalar_code.h"
#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Ops of one Map that do not fit in a table.
namespace tfplug {
namespace op_kernels_internal {

class CastKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType from,
                            construction.GetAttr<DataType>("SrcT"));
    TFPLUG_ASSIGN_OR_RETURN(const DataType to,
                            construction.GetAttr<DataType>("DstT"));
    bool truncates = false;
    if (construction.HasAttr("Truncate")) {
      TFPLUG_ASSIGN_OR_RETURN(truncates,
                              construction.GetAttr<bool>("Truncate"));
    }
    if (truncates && IsFloat(from) && IsFloat(to)) {
      return absl::UnimplementedError(
          "Cast with Truncate=true is not implemented for this device; use "
          "tf.cast, which rounds");
    }
    is_same_ = from == to;
    TFPLUG_ASSIGN_OR_RETURN(expression_, CastExpression(from, to));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor tensor, run.GetInput(0));
    if (is_same_) return run.context().SetOutput(0, tensor);
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, ViewOf(tensor));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    return run.launcher().MapFlat(expression_,
                                  {x.num_elements(), 0, {x.data, y.data}});
  }

 private:
  bool is_same_ = false;
  Expression expression_;
};

class FillKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor dims, run.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand value, GetView(run, 1));
    // TensorFlow's CPU kernel also accepts a scalar as dims and a vector of one
    // element as value.
    if (dims.rank() > 1) {
      return absl::InvalidArgumentError(
          "dims must represent a vector, got shape " + dims.shape().ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const Ints sizes, run.GetInts(0));
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, ToShape(sizes));
    if (value.rank > 1 || value.num_elements() != 1) {
      return absl::InvalidArgumentError(
          "value must represent a scalar, got shape " +
          ShapeOf(value).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    const Operand scalar = Operand::Dense(value.data, value.type, {});
    return Copy(run, BroadcastTo(scalar, shape), y);
  }
};

// Select: the condition has the shape of the others, or is a scalar, or a
// vector that chooses rows.
class SelectKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand condition, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, GetView(run, 2));
    const Shape shape = ShapeOf(x), chosen = ShapeOf(condition);
    const bool is_vector =
        condition.rank == 1 && x.rank > 0 && condition.dim(0) == x.dim(0);
    if (shape != ShapeOf(y) ||
        (condition.rank != 0 && chosen != shape && !is_vector)) {
      return absl::InvalidArgumentError(
          "'then' and 'else' must have the same size, and 'cond' their shape "
          "or a vector of their rows: " +
          shape.ToString() + ", " + ShapeOf(y).ToString() + ", " +
          chosen.ToString());
    }
    Operand rows = condition;
    for (int d = rows.rank; d < x.rank; ++d) rows.AddDim(x.dim(d), 0);
    if (condition.rank == 0) rows = BroadcastTo(condition, shape);
    const Operand a = ir::AsWords(x), b = ir::AsWords(y);
    TFPLUG_ASSIGN_OR_RETURN(const Operand out, run.AllocateOutput(0, shape));
    const Operand z = ir::AsWords(out);
    if (z.rank > rows.rank) rows.AddDim(2, 0);  // complex128
    TFPLUG_ASSIGN_OR_RETURN(
        const Expression select,
        MakeExpression(
            {DataType::kBool, a.type, b.type}, {z.type},
            [](Value c, Value u, Value v) { return Select(c, u, v); }));
    return run.launcher().Map(select, {rows, a, b}, {z});
  }
};

inline Value AddAll(const std::vector<Value>& x) {
  Value sum = x[0];
  for (size_t i = 1; i < x.size(); ++i) sum = sum + x[i];
  return sum;
}

// AddN: the sum of any number of tensors of one shape.
class AddNKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    TFPLUG_ASSIGN_OR_RETURN(const int64_t n,
                            construction.GetAttr<int32_t>("N"));
    ExpressionBuilder builder;
    std::vector<Value> x;
    for (int64_t i = 0; i < n; ++i) x.push_back(builder.Input(type));
    builder.Output(AddAll(x), type);
    TFPLUG_ASSIGN_OR_RETURN(sum_, std::move(builder).Build());
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    absl::InlinedVector<Operand, 4> inputs;
    for (int i = 0; i < run.context().num_inputs(); ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, i));
      inputs.push_back(x);
      if (ShapeOf(x) != ShapeOf(inputs[0])) {
        return absl::InvalidArgumentError(
            "Inputs to operation AddN must have the same size and shape. "
            "Input 0: " +
            ShapeOf(inputs[0]).ToString() + " != input " + std::to_string(i) +
            ": " + ShapeOf(x).ToString());
      }
    }
    TFPLUG_ASSIGN_OR_RETURN(Operand y,
                            run.AllocateOutput(0, ShapeOf(inputs[0])));
    return run.launcher().Map(sum_, absl::MakeSpan(inputs),
                              absl::MakeSpan(&y, 1));
  }

 private:
  Expression sum_;
};

// Range: start, limit and delta are in host memory.
class RangeKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(type_, construction.GetAttr<DataType>("Tidx"));
    const DataType computed = ComputeType(type_);
    TFPLUG_ASSIGN_OR_RETURN(
        expression_,
        MakeExpression({DataType::kInt64, computed, computed}, {type_},
                       [&](Value i, Value start, Value delta) {
                         return start + Cast(i, computed) * delta;
                       }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    const char* const names[] = {"start", "limit", "delta"};
    for (int i = 0; i < 3; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Tensor x, run.GetInput(i));
      if (x.rank() == 0 || (x.rank() == 1 && x.dim(0) == 1)) continue;
      return absl::InvalidArgumentError(std::string(names[i]) +
                                        " must be a scalar, not shape " +
                                        x.shape().ToString());
    }
    absl::Status status;
    ir::VisitStored(type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_same_v<T, bool>) {
      } else if constexpr (std::is_integral_v<T> &&
                           !std::is_same_v<T, uint64_t>) {
        status = RunIn<int64_t>(run, &ReadAs<T, int64_t>);
      } else {
        status = RunIn<T>(run, &ReadAs<T, ir::Computed<T>>);
      }
    });
    return status;
  }

 private:
  // Returns the number of elements, computed in T, as TensorFlow does: in a
  // wider type, (1.1 - 0.1) / 0.1 is more than 10.
  template <class T, class C = ir::Computed<T>>
  static absl::StatusOr<int64_t> SizeOf(C start, C limit, C delta) {
    const auto ends = [&] {
      return std::to_string(start) + "/" + std::to_string(limit);
    };
    if (delta == 0) {
      return absl::InvalidArgumentError("Requires delta != 0: 0");
    }
    // NaN is neither.
    if (delta > 0 ? !(start <= limit) : !(start >= limit)) {
      return absl::InvalidArgumentError(
          (delta > 0 ? "Requires start <= limit when delta > 0: "
                     : "Requires start >= limit when delta < 0: ") +
          ends());
    }
    if constexpr (std::is_integral_v<C>) {
      const auto unsigned_of = [](C x) { return static_cast<uint64_t>(x); };
      const bool ascends = delta > 0;
      const uint64_t step = unsigned_of(ascends ? delta : C(0)) -
                            unsigned_of(ascends ? C(0) : delta);
      const uint64_t distance = unsigned_of(ascends ? limit : start) -
                                unsigned_of(ascends ? start : limit);
      const uint64_t size = distance / step + (distance % step != 0 ? 1 : 0);
      if (static_cast<int64_t>(size) >= 0) return static_cast<int64_t>(size);
    } else {
      // Each operation rounds to T.
      const T distance(limit - start);
      const T steps(static_cast<C>(distance) / delta);
      const C size = std::ceil(std::fabs(static_cast<C>(steps)));
      if (size < C(9.2e18)) return static_cast<int64_t>(size);
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "Requires ((limit - start) / delta) <= ", INT64_MAX, ": ", ends()));
  }

  template <class T, class C>
  static C ReadAs(const void* value) {
    return static_cast<C>(*static_cast<const T*>(value));
  }
  template <class T, class C = ir::Computed<T>>
  absl::Status RunIn(OpRun& run, C (*read)(const void*)) const {
    C values[3];
    for (int i = 0; i < 3; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Tensor x, run.GetInput(i));
      values[i] = read(x.data());
    }
    TFPLUG_ASSIGN_OR_RETURN(const int64_t size,
                            SizeOf<T>(values[0], values[1], values[2]));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, {size}));
    const DataType computed = ComputeType(type_);
    const auto scalar = [&](C value) {
      const auto bits = ConstantBits(computed, static_cast<double>(value),
                                     ir::Convert<int64_t>(value));
      return Operand::Scalar(computed, bits).AddDim(size, 0);
    };
    return run.launcher().Map(expression_,
                              {Operand::Index().AddDim(size, 1),
                               scalar(values[0]), scalar(values[2])},
                              {y});
  }

  DataType type_{};
  Expression expression_;
};

class OneHotKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(axis_, construction.GetAttr<int32_t>("axis"));
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    TFPLUG_ASSIGN_OR_RETURN(const DataType index,
                            construction.GetAttr<DataType>("TI"));
    const DataType moved = ir::BitsOf(type);
    constexpr DataType kInt64 = DataType::kInt64;
    TFPLUG_ASSIGN_OR_RETURN(
        expression_,
        MakeExpression({index, kInt64, moved, moved}, {moved},
                       [](Value wanted, Value i, Value on, Value off) {
                         return Select(Cast(wanted, kInt64) == i, on, off);
                       }));
    return absl::OkStatus();
  }
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand indices, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(
        const int64_t depth,
        run.GetScalar(1, "depth must be a scalar, but got: "));
    TFPLUG_ASSIGN_OR_RETURN(const Operand on, GetView(run, 2));
    TFPLUG_ASSIGN_OR_RETURN(const Operand off, GetView(run, 3));
    TFPLUG_ASSIGN_OR_RETURN(const int axis, CheckAxis(axis_, indices.rank + 1));
    if (depth < 0) {
      return absl::InvalidArgumentError("depth must be non-negative, got: " +
                                        std::to_string(depth));
    }
    if (on.rank != 0 || off.rank != 0) {
      return absl::InvalidArgumentError(
          (on.rank != 0 ? "on_value must be a scalar, but got: "
                        : "off_value must be a scalar, but got: ") +
          ShapeOf(on.rank != 0 ? on : off).ToString());
    }
    const Operand wanted = ir::WithDim(indices, axis, depth);
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, ShapeOf(wanted)));
    const auto results = MovableParts(y);
    const auto ons = MovableParts(BroadcastTo(on, ShapeOf(y)));
    const auto offs = MovableParts(BroadcastTo(off, ShapeOf(y)));
    for (size_t i = 0; i < results.size(); ++i) {
      TFPLUG_RETURN_IF_ERROR(run.launcher().Map(
          expression_, {wanted, ir::IndexOf(wanted, axis), ons[i], offs[i]},
          {results[i]}));
    }
    return absl::OkStatus();
  }

 private:
  int64_t axis_ = 0;
  Expression expression_;
};

// MatrixBandPart: keeps a band around the diagonal of each matrix.
class MatrixBandPartKernel final : public BackendKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, 0));
    if (x.rank < 2) {
      return absl::InvalidArgumentError(
          "input must be at least 2-dim, received shape: " +
          ShapeOf(x).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(
        const int64_t lower,
        run.GetScalar(1, "num_lower must be scalar, got shape "));
    TFPLUG_ASSIGN_OR_RETURN(
        const int64_t upper,
        run.GetScalar(2, "num_upper must be scalar, got shape "));
    const int row = x.rank - 2;
    if (lower > x.dim(row) || upper > x.dim(row + 1)) {
      return absl::InvalidArgumentError(
          "num_lower and num_upper must be negative or at most the number of "
          "rows and columns of " +
          ShapeOf(x).ToString());
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, ShapeOf(x)));
    constexpr DataType kInt64 = DataType::kInt64;
    const DataType moved = MovableParts(y)[0].type;
    TFPLUG_ASSIGN_OR_RETURN(
        const Expression keep,
        MakeExpression({moved, kInt64, kInt64, kInt64}, {moved},
                       [](Value v, Value diagonal, Value low, Value high) {
                         const Value inside =
                             ((low < 0) | (diagonal <= low)) &
                             ((high < 0) | (-diagonal <= high));
                         return Select(inside, v, 0);
                       }));
    Operand diagonal = ir::IndexOf(x, row);  // row - column
    diagonal.stride(row + 1) = -1;
    return MoveParts(x, y, [&](const Operand& from, const Operand& to) {
      return run.launcher().Map(
          keep,
          {from, diagonal, ir::ScalarOf(kInt64, static_cast<double>(lower), x),
           ir::ScalarOf(kInt64, static_cast<double>(upper), x)},
          {to});
    });
  }
};

}  // namespace op_kernels_internal

inline void ConvertOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  for (DataType from : registrar.Supported(kAllTypes)) {
    registrar.Add<CastKernel>(KernelDef("Cast").TypeConstraint("SrcT", {from}),
                              "DstT", kAllTypes);
  }
  constexpr uint64_t kAddN = kNumberTypes & ~kInt32Type;
  // A cast only converts to the type of the output.
  registrar.AddFusable(
      {{"Cast", kAllTypes, [](Value x) { return x; }}, kAllTypes, "DstT"});
  registrar.AddFusable(
      {{"Select", kAllTypes,
        [](Value c, Value x, Value y) { return Select(c, x, y); }, nullptr,
        Shapes::kEqual},
       kAllTypes,
       "T",
       /*gives_bool=*/false,
       /*needs_equal_shapes=*/true});
  registrar.AddFusable(
      {{"AddN", kAddN, AddAll, nullptr, Shapes::kEqual}, kAddN, "T"});
  registrar.Add<FillKernel>(KernelDef("Fill").HostMemory("dims"), "T",
                            kCopiedTypes & ~kInt32Type);
  registrar.Add<SelectKernel>(KernelDef("Select"), "T", kCopiedTypes);
  registrar.Add<AddNKernel>(KernelDef("AddN"), "T", kAddN);
  registrar.Add<RangeKernel>(
      KernelDef("Range").HostMemory("start").HostMemory("limit").HostMemory(
          "delta"),
      "Tidx", kFloatTypes | kernel::SetOf(DataType::kInt64));
  registrar.Add<OneHotKernel>(
      KernelDef("OneHot")
          .TypeConstraint<uint8_t, int8_t, int32_t, int64_t>("TI")
          .HostMemory("depth"),
      "T", kCopiedTypes);
  registrar.Add<MatrixBandPartKernel>(
      KernelDef("MatrixBandPart")
          .TypeConstraint<int32_t, int64_t>("Tindex")
          .HostMemory("num_lower")
          .HostMemory("num_upper"),
      "T", kCopiedTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_CONVERT_H_
