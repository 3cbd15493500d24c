// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_OP_DEF_H_
#define TFPLUG_KERNEL_OP_DEF_H_

#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/kernel/shape_inference.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

namespace kernel_internal {

// shape_inference_func: calls shape_fn(ShapeInference&), which returns
// absl::Status. A failure that is due to this release's limits (see
// ShapeInference::GetInput) leaves all outputs unknown instead.
template <class F>
void InferShapes(const F& shape_fn, int declared_outputs,
                 capi::TF_ShapeInferenceContext* c_context,
                 capi::TF_Status* status) {
  internal::Guard(status, "shape function", [&]() -> absl::Status {
    ShapeInference inference(c_context, declared_outputs);
    absl::Status result = shape_fn(inference);
    if (!result.ok() && internal::Access::hit_index_limit(inference)) {
      return inference.SetUnknownShape();
    }
    return result;
  });
}

// The shape function of type Lambda. The C API passes no user data to shape
// functions, so the type must identify the lambda.
// Hidden by attributes, because g++ does not apply the pragma to variable
// templates.
template <class Lambda>
__attribute__((visibility("hidden"))) inline const Lambda* shape_lambda =
    nullptr;

// The largest number of outputs of the registered ops with this shape function.
// Function is a lambda's type or an integral_constant.
template <class Function>
__attribute__((visibility("hidden"))) inline int declared_outputs =
    std::numeric_limits<int>::max();

}  // namespace kernel_internal

// Defines an op that the plug-in adds: its name, arguments, attributes and
// shapes.
//
//   TFPLUG_REGISTER_OP(
//       tfplug::OpDef("MyScale")
//           .Attr("T: {float, half}")
//           .Input("x: T")
//           .Input("factor: float")
//           .Output("y: T")
//           .SetShapeFn([](tfplug::ShapeInference& s) -> absl::Status { ...
//           }));
//
// The functions and specs are the same as in TensorFlow's REGISTER_OP. An op
// with a spec that TensorFlow cannot parse, or with a name that is taken, is
// skipped and logged when the library is loaded; TensorFlow itself would abort.
class OpDef {
 public:
  using ShapeFunction = void (*)(capi::TF_ShapeInferenceContext*,
                                 capi::TF_Status*);

  explicit OpDef(std::string name) : name_(std::move(name)) {}

  // "T: {float, half} = DT_FLOAT", "n: int >= 1", "names: list(string)".
  OpDef Attr(std::string spec) && {
    attrs_.push_back(std::move(spec));
    return std::move(*this);
  }
  // "x: float", "x: T", "x: N * T", "x: list_of_types".
  OpDef Input(std::string spec) && {
    inputs_.push_back(std::move(spec));
    return std::move(*this);
  }
  OpDef Output(std::string spec) && {
    outputs_.push_back(std::move(spec));
    return std::move(*this);
  }

  OpDef SetIsCommutative() && {
    is_commutative_ = true;
    return std::move(*this);
  }
  // Marks an op that sums N inputs of one type into an output of that type:
  // TensorFlow may then sum in any order and on any device.
  OpDef SetIsAggregate() && {
    is_aggregate_ = true;
    return std::move(*this);
  }
  // Marks an op with side effects or state: TensorFlow then never merges, folds
  // or removes its nodes.
  OpDef SetIsStateful() && {
    is_stateful_ = true;
    return std::move(*this);
  }
  // Lets several plug-ins define the same op: if TensorFlow already has an op
  // of this name, the definition is skipped silently.
  OpDef AllowExisting() && {
    allows_existing_ = true;
    return std::move(*this);
  }
  OpDef SetAllowsUninitializedInput() && {
    allows_uninitialized_input_ = true;
    return std::move(*this);
  }
  // Deprecates the op from version `version` of GraphDef on.
  OpDef Deprecated(int version, std::string explanation) && {
    deprecated_since_ = version;
    deprecation_ = std::move(explanation);
    return std::move(*this);
  }

  // Sets the shape function, which TensorFlow calls on any thread whenever it
  // infers shapes. Without one, the shapes of all outputs are unknown.
  template <class Lambda>
  OpDef SetShapeFn(Lambda lambda) && {
    static_assert(std::is_empty_v<Lambda>,
                  "tfplug: a shape function must be a lambda without captures; "
                  "for a function write SetShapeFn<&Function>()");
    kernel_internal::shape_lambda<Lambda> = new Lambda(std::move(lambda));
    declared_outputs_ = &kernel_internal::declared_outputs<Lambda>;
    shape_fn_ = [](capi::TF_ShapeInferenceContext* context,
                   capi::TF_Status* status) {
      kernel_internal::InferShapes(*kernel_internal::shape_lambda<Lambda>,
                                   kernel_internal::declared_outputs<Lambda>,
                                   context, status);
    };
    return std::move(*this);
  }
  template <absl::Status (*function)(ShapeInference&)>
  OpDef SetShapeFn() && {
    using Function = std::integral_constant<decltype(function), function>;
    declared_outputs_ = &kernel_internal::declared_outputs<Function>;
    shape_fn_ = [](capi::TF_ShapeInferenceContext* context,
                   capi::TF_Status* status) {
      kernel_internal::InferShapes(function,
                                   kernel_internal::declared_outputs<Function>,
                                   context, status);
    };
    return std::move(*this);
  }

  const std::string& name() const { return name_; }
  const std::vector<std::string>& attrs() const { return attrs_; }
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  bool is_commutative() const { return is_commutative_; }
  bool is_aggregate() const { return is_aggregate_; }
  bool is_stateful() const { return is_stateful_; }
  bool allows_uninitialized_input() const {
    return allows_uninitialized_input_;
  }
  bool allows_existing() const { return allows_existing_; }
  int deprecated_since() const { return deprecated_since_; }
  const std::string& deprecation() const { return deprecation_; }
  ShapeFunction shape_fn() const { return shape_fn_; }

 private:
  friend struct internal::Access;

  std::string name_;
  std::vector<std::string> attrs_, inputs_, outputs_;
  bool is_commutative_ = false;
  bool is_aggregate_ = false;
  bool is_stateful_ = false;
  bool allows_uninitialized_input_ = false;
  bool allows_existing_ = false;
  int deprecated_since_ = 0;
  std::string deprecation_;
  ShapeFunction shape_fn_ = nullptr;
  int* declared_outputs_ = nullptr;  // for shape_fn_
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_OP_DEF_H_
