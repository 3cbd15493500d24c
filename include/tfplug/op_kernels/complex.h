// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_COMPLEX_H_
#define TFPLUG_OP_KERNELS_COMPLEX_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tfplug/op_kernels/complex_functions.h"
#include "tfplug/op_kernels/complex_product.h"
#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Element-wise ops on complex numbers. Expressions compute with real numbers,
// so the real and the imaginary parts of a tensor are two views of it.
namespace tfplug {
namespace op_kernels_internal {

using ComplexValues = std::vector<ComplexValue>;

// An op with complex numbers. If an input or the output is real or bool, it is
// `re`.
struct ComplexOp {
  const char* name;
  int arity;  // 0: the attribute N
  ComplexValue (*formula)(const ComplexValues& x);
};

inline ComplexValue ReciprocalGradOf(const ComplexValues& x) {
  const ComplexValue y = ConjOf(x[0]);
  return NegOf(y * x[1] * y);
}

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
      {"Neg", 1, [](const Cs& x) { return NegOf(x[0]); }},
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
      {"Expm1", 1, [](const Cs& x) { return Expm1Of(x[0]); }},
      {"Log", 1, [](const Cs& x) { return LogOf(x[0]); }},
      {"Log1p", 1, [](const Cs& x) { return Log1pOf(x[0]); }},
      {"Sqrt", 1, [](const Cs& x) { return SqrtOf(x[0]); }},
      {"Rsqrt", 1, [](const Cs& x) { return RsqrtOf(x[0]); }},
      {"Tan", 1, [](const Cs& x) { return TanOf(x[0]); }},
      {"Tanh", 1, [](const Cs& x) { return TanhOf(x[0]); }},
      {"Sigmoid", 1, [](const Cs& x) { return SigmoidOf(x[0]); }},
      {"Asin", 1, [](const Cs& x) { return AsinOf(x[0]); }},
      {"Acos", 1, [](const Cs& x) { return AcosOf(x[0]); }},
      {"Atan", 1, [](const Cs& x) { return AtanOf(x[0]); }},
      {"Asinh", 1, [](const Cs& x) { return AsinhOf(x[0]); }},
      {"Acosh", 1, [](const Cs& x) { return AcoshOf(x[0]); }},
      {"Atanh", 1, [](const Cs& x) { return AtanhOf(x[0]); }},
      {"Pow", 2, [](const Cs& x) { return PowOf(x[0], x[1]); }},
      {"SquaredDifference", 2,
       [](const Cs& x) {
         const C difference = x[0] - x[1];
         return difference * ConjOf(difference);
       }},
      {"Xlogy", 2,
       [](const Cs& x) {
         return SelectComplex(IsZero(x[0]), x[0], x[0] * LogOf(x[1]));
       }},
      {"Xlog1py", 2,
       [](const Cs& x) {
         return SelectComplex(IsZero(x[0]), x[0], x[0] * Log1pOf(x[1]));
       }},
      // The gradients of functions, from their results y and the gradient of
      // y. TensorFlow's Python code conjugates y for two of them.
      {"InvGrad", 2, ReciprocalGradOf},
      {"ReciprocalGrad", 2, ReciprocalGradOf},
      {"RsqrtGrad", 2,
       [](const Cs& x) {
         const C y = ConjOf(x[0]);
         return (x[1] * y) * (y * y) * x[1].re.Like(-0.5);
       }},
      {"SigmoidGrad", 2,
       [](const Cs& x) { return x[1] * x[0] * (OneLike(x[0]) - x[0]); }},
      {"SqrtGrad", 2,
       [](const Cs& x) {
         const C gradient = x[1] * x[1].re.Like(0.5) / ConjOf(x[0]);
         return SelectComplex(IsZero(x[1]), x[1], gradient);
       }},
      {"TanhGrad", 2,
       [](const Cs& x) { return x[1] * (OneLike(x[0]) - x[0] * x[0]); }},
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
      {"Conj", 1, [](const Cs& x) { return ConjOf(x[0]); }},
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
      if (is_gradient_) {
        if (x.num_elements() != shape.num_elements()) {
          return absl::InvalidArgumentError(
              "The two arguments to a cwise op must have same number of "
              "elements, got " +
              shape.ToString() + " and " + ShapeOf(x).ToString());
        }
        views[i] = Operand::Dense(x.data, x.type, shape.dims());
        continue;
      }
      if (auto s = BroadcastShape(ShapeOf(x), &shape); !s.ok()) {
        return default_ ? SetResult(run, *default_) : s;
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
    TFPLUG_RETURN_IF_ERROR(GetResultOfUnfit(construction, op.name, default_));
    int64_t arity = op.arity;
    is_sum_ = arity == 0;
    is_gradient_ = absl::EndsWith(op.name, "Grad");
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

  bool is_sum_ = false, is_gradient_ = false;
  std::optional<bool> default_;
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
  registrar.Add<op_kernels_internal::ComplexProductKernel>(
      KernelDef("Prod").HostMemory("reduction_indices"), "T", kComplexTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_COMPLEX_H_
