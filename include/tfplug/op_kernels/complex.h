// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_COMPLEX_H_
#define TFPLUG_OP_KERNELS_COMPLEX_H_

#include <string>
#include <utility>
#include <vector>

#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Element-wise ops on complex numbers. Expressions compute with real numbers,
// so the real and the imaginary parts of a tensor are two views of it.
namespace tfplug {
namespace op_kernels_internal {

struct ComplexValue {
  Value re, im;
};
using ComplexValues = std::vector<ComplexValue>;

inline ComplexValue operator+(ComplexValue a, ComplexValue b) {
  return {a.re + b.re, a.im + b.im};
}
inline ComplexValue operator-(ComplexValue a, ComplexValue b) {
  return {a.re - b.re, a.im - b.im};
}
inline ComplexValue operator*(ComplexValue a, ComplexValue b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// Divides both numbers by the larger part of b first, so that nothing
// overflows (Smith, "Algorithm 116: Complex division", 1962).
inline ComplexValue operator/(ComplexValue a, ComplexValue b) {
  const Value by_re = Abs(b.re) >= Abs(b.im);
  const Value large = Select(by_re, b.re, b.im);
  const Value ratio = Select(by_re, b.im, b.re) / large;
  const Value divisor = large + Select(by_re, b.im, b.re) * ratio;
  const Value re = Select(by_re, a.re + a.im * ratio, a.re * ratio + a.im);
  const Value im = Select(by_re, a.im - a.re * ratio, a.im * ratio - a.re);
  return {re / divisor, im / divisor};
}
inline Value AbsOf(ComplexValue x) {
  const Value large = Max(Abs(x.re), Abs(x.im));
  const Value ratio = Min(Abs(x.re), Abs(x.im)) / large;
  const Value is_exact = (large == 0) | (large == Infinity(large));
  return Select(is_exact, large, large * Sqrt(1 + ratio * ratio));
}
inline ComplexValue SelectComplex(Value condition, ComplexValue x,
                                  ComplexValue y) {
  return {Select(condition, x.re, y.re), Select(condition, x.im, y.im)};
}
inline Value IsZero(ComplexValue x) { return (x.re == 0) & (x.im == 0); }
inline ComplexValue ExpOf(ComplexValue x) {
  const Value size = Exp(x.re);
  return {size * Cos(x.im), size * Sin(x.im)};
}
// Return the product of a factor up to 1 and cosh(x) or sinh(x), which may
// overflow alone.
inline Value TimesCosh(Value factor, Value x) {
  const Value half = Cosh(x * 0.5);
  return Select(Abs(x) > 40, 2 * factor * half * half, factor * Cosh(x));
}
inline Value TimesSinh(Value factor, Value x) {
  return Select(Abs(x) > 40, TimesCosh(Select(x < 0, -factor, factor), x),
                factor * Sinh(x));
}
inline ComplexValue OneLike(ComplexValue x) {
  return {x.re.Like(1), x.re.Like(0)};
}
inline ComplexValue RealOnly(Value x) { return {x, x}; }

// An op with complex numbers. If an input or the output is real or bool, it is
// `re`.
struct ComplexOp {
  const char* name;
  int arity;  // 0: the attribute N
  ComplexValue (*formula)(const ComplexValues& x);
};

inline const std::vector<ComplexOp>& ComplexTable() {
  using C = ComplexValue;
  using Cs = ComplexValues;
  static const auto* const table = new std::vector<ComplexOp>{
      {"Add", 2, [](const Cs& x) { return x[0] + x[1]; }},
      {"AddV2", 2, [](const Cs& x) { return x[0] + x[1]; }},
      {"Sub", 2, [](const Cs& x) { return x[0] - x[1]; }},
      {"Mul", 2, [](const Cs& x) { return x[0] * x[1]; }},
      {"Div", 2, [](const Cs& x) { return x[0] / x[1]; }},
      {"RealDiv", 2, [](const Cs& x) { return x[0] / x[1]; }},
      {"DivNoNan", 2,
       [](const Cs& x) {
         return SelectComplex(IsZero(x[1]), x[1], x[0] / x[1]);
       }},
      {"MulNoNan", 2,
       [](const Cs& x) {
         return SelectComplex(IsZero(x[1]), x[1], x[0] * x[1]);
       }},
      {"Xdivy", 2,
       [](const Cs& x) {
         return SelectComplex(IsZero(x[0]), x[0], x[0] / x[1]);
       }},
      {"SelectV2", 3,
       [](const Cs& x) { return SelectComplex(x[0].re, x[1], x[2]); }},
      {"AddN", 0,
       [](const Cs& x) {
         C sum = x[0];
         for (size_t i = 1; i < x.size(); ++i) sum = sum + x[i];
         return sum;
       }},
      {"Neg", 1,
       [](const Cs& x) {
         return C{-x[0].re, -x[0].im};
       }},
      {"Square", 1, [](const Cs& x) { return x[0] * x[0]; }},
      {"Reciprocal", 1, [](const Cs& x) { return OneLike(x[0]) / x[0]; }},
      {"Inv", 1, [](const Cs& x) { return OneLike(x[0]) / x[0]; }},
      {"Sign", 1,
       [](const Cs& x) {
         const Value size = AbsOf(x[0]);
         return SelectComplex(size == 0, x[0],
                              {x[0].re / size, x[0].im / size});
       }},
      {"OnesLike", 1, [](const Cs& x) { return OneLike(x[0]); }},
      {"ZerosLike", 1,
       [](const Cs& x) {
         return C{x[0].re.Like(0), x[0].re.Like(0)};
       }},
      {"Exp", 1, [](const Cs& x) { return ExpOf(x[0]); }},
      {"Sin", 1,
       [](const Cs& x) {
         return C{TimesCosh(Sin(x[0].re), x[0].im),
                  TimesSinh(Cos(x[0].re), x[0].im)};
       }},
      {"Cos", 1,
       [](const Cs& x) {
         return C{TimesCosh(Cos(x[0].re), x[0].im),
                  TimesSinh(-Sin(x[0].re), x[0].im)};
       }},
      {"Sinh", 1,
       [](const Cs& x) {
         return C{TimesSinh(Cos(x[0].im), x[0].re),
                  TimesCosh(Sin(x[0].im), x[0].re)};
       }},
      {"Cosh", 1,
       [](const Cs& x) {
         return C{TimesCosh(Cos(x[0].im), x[0].re),
                  TimesSinh(Sin(x[0].im), x[0].re)};
       }},
      {"Conj", 1,
       [](const Cs& x) {
         return C{x[0].re, -x[0].im};
       }},
      {"Complex", 2,
       [](const Cs& x) {
         return C{x[0].re, x[1].re};
       }},
      {"Cast", 1, [](const Cs& x) { return x[0]; }},
      {"Real", 1, [](const Cs& x) { return x[0]; }},
      {"Imag", 1, [](const Cs& x) { return RealOnly(x[0].im); }},
      {"ComplexAbs", 1, [](const Cs& x) { return RealOnly(AbsOf(x[0])); }},
      {"Angle", 1,
       [](const Cs& x) { return RealOnly(Atan2(x[0].im, x[0].re)); }},
      {"Equal", 2,
       [](const Cs& x) {
         return RealOnly((x[0].re == x[1].re) & (x[0].im == x[1].im));
       }},
      {"NotEqual", 2,
       [](const Cs& x) {
         return RealOnly((x[0].re != x[1].re) | (x[0].im != x[1].im));
       }},
  };
  return *table;
}

class ComplexKernel final : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string name, construction.GetOp());
    for (const ComplexOp& op : ComplexTable()) {
      if (op.name == name) return Build(op, construction);
    }
    return absl::InternalError("the op " + name + " is in no table");
  }

  absl::Status Run(OpRun& run) override {
    const int n = run.context().num_inputs();
    absl::InlinedVector<Operand, 4> views, inputs, outputs;
    Shape shape;
    for (int i = 0; i < n; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(const Operand x, GetView(run, i));
      views.push_back(x);
      if (i == 0) shape = ShapeOf(x);
      if (is_sum_ && ShapeOf(x) != shape) {
        return absl::InvalidArgumentError(
            "Inputs to operation AddN must have the same size and shape: " +
            shape.ToString() + " and " + ShapeOf(x).ToString());
      }
      if (auto s = BroadcastShape(ShapeOf(x), &shape); !s.ok()) {
        return has_default_ ? SetDefault(run) : s;
      }
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, shape));
    const auto add = [](const Operand& view, auto& parts) {
      const int count = IsComplex(view.type) ? 2 : 1;
      for (int k = 0; k < count; ++k) {
        parts.push_back(count == 1 ? view : PartOf(view, k));
      }
    };
    for (const Operand& x : views) add(BroadcastTo(x, shape), inputs);
    add(y, outputs);
    return run.launcher().Map(expression_, absl::MakeSpan(inputs),
                              absl::MakeSpan(outputs));
  }

 private:
  absl::Status Build(const ComplexOp& op, KernelConstruction& construction) {
    const auto has = [&](const char* attr) {
      return construction.HasAttr(attr);
    };
    TFPLUG_ASSIGN_OR_RETURN(
        const DataType from,
        construction.GetAttr<DataType>(has("SrcT") ? "SrcT" : "T"));
    DataType to = from;
    for (const char* attr : {"Tout", "DstT"}) {
      if (!has(attr)) continue;
      TFPLUG_ASSIGN_OR_RETURN(to, construction.GetAttr<DataType>(attr));
    }
    if (has("incompatible_shape_error")) {  // Equal and NotEqual
      TFPLUG_ASSIGN_OR_RETURN(
          const bool fails,
          construction.GetAttr<bool>("incompatible_shape_error"));
      has_default_ = !fails;
      default_ = absl::string_view(op.name) == "NotEqual";
    }
    int64_t arity = op.arity;
    is_sum_ = arity == 0;
    if (is_sum_) {
      TFPLUG_ASSIGN_OR_RETURN(arity, construction.GetAttr<int32_t>("N"));
    }
    ExpressionBuilder builder;
    ComplexValues inputs;
    const bool selects = absl::string_view(op.name) == "SelectV2";
    for (int64_t i = 0; i < arity; ++i) {
      const DataType type = selects && i == 0 ? DataType::kBool : from;
      const Value re = builder.Input(PartType(type));
      const Value im =
          IsComplex(type) ? builder.Input(PartType(type)) : re.Like(0);
      inputs.push_back({re, im});
    }
    const ComplexValue result = op.formula(inputs);
    if (result.re.type() == DataType::kBool && from != DataType::kBool) {
      to = DataType::kBool;
    }
    builder.Output(Cast(result.re, PartType(to)), PartType(to));
    if (IsComplex(to)) {
      builder.Output(Cast(result.im, PartType(to)), PartType(to));
    }
    TFPLUG_ASSIGN_OR_RETURN(expression_, std::move(builder).Build());
    return absl::OkStatus();
  }

  // Tensors of incompatible shapes are unequal.
  absl::Status SetDefault(OpRun& run) const {
    TFPLUG_ASSIGN_OR_RETURN(const Operand y, run.AllocateOutput(0, {}));
    return Fill(run, y, default_ ? 1 : 0);
  }

  bool is_sum_ = false;
  bool has_default_ = false, default_ = false;
  Expression expression_;
};

}  // namespace op_kernels_internal

inline void ComplexOps(const Registrar& registrar) {
  using op_kernels_internal::ComplexKernel;
  const std::vector<DataType> types = registrar.Supported(kComplexTypes);
  for (const op_kernels_internal::ComplexOp& op :
       op_kernels_internal::ComplexTable()) {
    const std::string name = op.name;
    for (const DataType type : types) {
      const DataType part = op_kernels_internal::PartType(type);
      if (name == "Cast") {
        registrar.Add<ComplexKernel>(
            KernelDef(name).TypeConstraint("SrcT", {type}), "DstT",
            kAllTypes | kComplexTypes);
        registrar.Add<ComplexKernel>(
            KernelDef(name).TypeConstraint("DstT", {type}), "SrcT", kAllTypes);
      } else if (name == "Complex") {
        registrar.Add<ComplexKernel>(KernelDef(name)
                                         .TypeConstraint("T", {part})
                                         .TypeConstraint("Tout", {type}));
      } else if (name == "Real" || name == "Imag" || name == "Angle" ||
                 name == "ComplexAbs") {
        registrar.Add<ComplexKernel>(KernelDef(name)
                                         .TypeConstraint("T", {type})
                                         .TypeConstraint("Tout", {part}));
      } else {
        registrar.Add<ComplexKernel>(
            KernelDef(name).TypeConstraint("T", {type}));
      }
    }
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_COMPLEX_H_
