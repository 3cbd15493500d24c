// SPDX-License-Identifier: Apache-2.0
// SmallOuter computes the outer product of two vectors, times a factor. Its
// shape function lets TensorFlow infer the result's shape before anything runs.
#include <cstdint>

#include "small_device.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/register_op.h"

namespace small {
namespace {

TFPLUG_REGISTER_OP(
    tfplug::OpDef("SmallOuter")
        .Attr("T: {float, double}")
        .Attr("factor: float = 1.0")
        .Input("x: T")
        .Input("y: T")
        .Output("product: T")
        .SetShapeFn([](tfplug::ShapeInference& s) -> absl::Status {
          TFPLUG_ASSIGN_OR_RETURN(auto x, s.GetInput(0));
          TFPLUG_ASSIGN_OR_RETURN(x, s.WithRank(x, 1));
          TFPLUG_ASSIGN_OR_RETURN(auto y, s.GetInput(1));
          TFPLUG_ASSIGN_OR_RETURN(y, s.WithRank(y, 1));
          TFPLUG_ASSIGN_OR_RETURN(const auto product, s.Concatenate(x, y));
          return s.SetOutput(0, product);
        }));

template <class T>
class Outer : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(factor_, construction.GetAttr<float>("factor"));
    if (factor_ == 0) return absl::InvalidArgumentError("the factor is zero");
    return absl::OkStatus();
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor x, context.GetInput("x"));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor y, context.GetInput("y"));
    if (x.shape().rank() != 1 || y.shape().rank() != 1) {
      return absl::InvalidArgumentError("x and y must be vectors");
    }
    const int64_t rows = x.shape().dim(0), columns = y.shape().dim(0);
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor product,
                            context.AllocateOutput(0, {rows, columns}));
    const T* a = OnDevice(x.flat<T>().data());
    const T* b = OnDevice(y.flat<T>().data());
    T* to = OnDevice(product.flat<T>().data());
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        *to++ = static_cast<T>(factor_) * a[i] * b[j];
      }
    }
    return absl::OkStatus();
  }

 private:
  float factor_ = 1;
};
TFPLUG_REGISTER_KERNEL(
    Outer<float>, tfplug::KernelDef("SmallOuter").TypeConstraint<float>("T"));
TFPLUG_REGISTER_KERNEL(
    Outer<double>, tfplug::KernelDef("SmallOuter").TypeConstraint<double>("T"));

}  // namespace
}  // namespace small
