// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SPECIAL_H_
#define TFPLUG_OP_KERNELS_SPECIAL_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <unsupported/Eigen/SpecialFunctions>
#include <vector>

#include "tfplug/ir/scalar_code.h"
#include "tfplug/op_kernels/elementwise.h"
#include "tfplug/op_kernels/host_task_kernel.h"
#include "tfplug/op_kernels/internal/eigen_version.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/special_integrals.h"

#pragma GCC visibility push(hidden)

// Functions whose series run until they converge, which an expression cannot
// do: they are computed on the host in double, most of them by Eigen, as on
// TensorFlow's CPU.
// This header needs Eigen and is therefore not in all.h.
namespace tfplug {
namespace op_kernels_internal {

struct SpecialFunction {
  const char* name;
  int arity;
  double (*function)(double a, double b, double c);
};

// Returns NaN outside [0, 1], unlike some versions of Eigen.
inline double InverseNormal(double x) {
  return x >= 0 && x <= 1 ? Eigen::numext::ndtri(x)
                          : std::numeric_limits<double>::quiet_NaN();
}

inline constexpr SpecialFunction kSpecialFunctions[] = {
    {"Digamma", 1,
     [](double x, double, double) { return Eigen::numext::digamma(x); }},
    {"Ndtri", 1, [](double x, double, double) { return InverseNormal(x); }},
    // ndtri((x + 1) / 2) / sqrt(2)
    {"Erfinv", 1,
     [](double x, double, double) {
       return InverseNormal((x + 1) / 2) * 0.70710678118654752440;
     }},
    {"BesselI0", 1,
     [](double x, double, double) { return Eigen::numext::bessel_i0(x); }},
    {"BesselI0e", 1,
     [](double x, double, double) { return Eigen::numext::bessel_i0e(x); }},
    {"BesselI1", 1,
     [](double x, double, double) { return Eigen::numext::bessel_i1(x); }},
    {"BesselI1e", 1,
     [](double x, double, double) { return Eigen::numext::bessel_i1e(x); }},
    {"BesselJ0", 1,
     [](double x, double, double) { return Eigen::numext::bessel_j0(x); }},
    {"BesselJ1", 1,
     [](double x, double, double) { return Eigen::numext::bessel_j1(x); }},
    {"BesselY0", 1,
     [](double x, double, double) { return Eigen::numext::bessel_y0(x); }},
    {"BesselY1", 1,
     [](double x, double, double) { return Eigen::numext::bessel_y1(x); }},
    {"BesselK0", 1,
     [](double x, double, double) { return Eigen::numext::bessel_k0(x); }},
    {"BesselK0e", 1,
     [](double x, double, double) { return Eigen::numext::bessel_k0e(x); }},
    {"BesselK1", 1,
     [](double x, double, double) { return Eigen::numext::bessel_k1(x); }},
    {"BesselK1e", 1,
     [](double x, double, double) { return Eigen::numext::bessel_k1e(x); }},
    {"Dawsn", 1, [](double x, double, double) { return Dawson(x); }},
    {"Expint", 1,
     [](double x, double, double) { return ExponentialIntegral(x); }},
    {"FresnelCos", 1,
     [](double x, double, double) {
       return static_cast<double>(Fresnel(x).real());
     }},
    {"FresnelSin", 1,
     [](double x, double, double) {
       return static_cast<double>(Fresnel(x).imag());
     }},
    {"Spence", 1, [](double x, double, double) { return SpenceIntegral(x); }},
    {"Igamma", 2,
     [](double a, double x, double) { return Eigen::numext::igamma(a, x); }},
    {"Igammac", 2,
     [](double a, double x, double) { return Eigen::numext::igammac(a, x); }},
    {"IgammaGradA", 2,
     [](double a, double x, double) {
       return Eigen::numext::igamma_der_a(a, x);
     }},
    {"RandomGammaGrad", 2,
     [](double a, double x, double) {
       return Eigen::numext::gamma_sample_der_alpha(a, x);
     }},
    {"Zeta", 2,
     [](double x, double q, double) {
       // Older releases of Eigen divide by a sum of 0.
       return q > 1 && x > 1 && std::pow(q, -x) == 0
                  ? 0
                  : Eigen::numext::zeta(x, q);
     }},
    {"Polygamma", 2,
     [](double n, double x, double) { return Eigen::numext::polygamma(n, x); }},
    {"Betainc", 3,
     [](double a, double b, double x) {
       return Eigen::numext::betainc(a, b, x);
     }},
};

class SpecialKernel final : public HostTaskKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string name, construction.GetOp());
    for (const SpecialFunction& function : kSpecialFunctions) {
      if (function.name == name) function_ = &function;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Shape>> ShapesOf(
      absl::Span<const Shape> inputs) const override {
    Shape shape = inputs[0];
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Shape& other = inputs[i];
      // Betainc broadcasts scalars only.
      if (inputs.size() == 3 && shape.rank() > 0 && other.rank() > 0 &&
          shape != other) {
        return absl::InvalidArgumentError(absl::StrCat(
            "Shapes of a and ", (i == 1 ? "b" : "x"), " are inconsistent: ",
            shape.ToString(), " vs. ", other.ToString()));
      }
      TFPLUG_RETURN_IF_ERROR(BroadcastShape(other, &shape));
    }
    return std::vector<Shape>{shape};
  }

  absl::Status Compute(absl::Span<const HostArray> inputs,
                       absl::Span<const HostArray> outputs) const override {
    switch (outputs[0].type) {
      case DataType::kDouble:
        ComputeAs<double>(inputs, outputs[0]);
        break;
      case DataType::kFloat:
        ComputeAs<float>(inputs, outputs[0]);
        break;
      default:
        ComputeAs<Half>(inputs, outputs[0]);
    }
    return absl::OkStatus();
  }

 private:
  template <class T>
  void ComputeAs(absl::Span<const HostArray> inputs,
                 const HostArray& output) const {
    const int rank = output.shape.rank();
    const int64_t n = output.shape.num_elements();
    for (int64_t i = 0; i < n; ++i) {
      double x[3] = {};
      for (size_t k = 0; k < inputs.size(); ++k) {
        const Shape& shape = inputs[k].shape;
        int64_t at = 0, stride = 1, rest = i;
        for (int d = rank - 1; d >= 0; --d) {
          const int64_t index = rest % output.shape.dim(d);
          rest /= output.shape.dim(d);
          const int own = d - (rank - shape.rank());
          if (own < 0) break;
          if (shape.dim(own) > 1) at += index * stride;
          stride *= shape.dim(own);
        }
        x[k] = ir::Convert<double>(inputs[k].as<T>()[at]);
      }
      output.as<T>()[i] = ir::Convert<T>(function_->function(x[0], x[1], x[2]));
    }
  }

  const SpecialFunction* function_ = nullptr;
};

}  // namespace op_kernels_internal

inline void SpecialOps(const Registrar& registrar) {
  for (const op_kernels_internal::SpecialFunction& op :
       op_kernels_internal::kSpecialFunctions) {
    registrar.Add<op_kernels_internal::SpecialKernel>(
        KernelDef(op.name), "T",
        kernel::SetOf(DataType::kFloat, DataType::kDouble, DataType::kHalf));
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SPECIAL_H_
