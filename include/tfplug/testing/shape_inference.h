// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_SHAPE_INFERENCE_H_
#define TFPLUG_TESTING_SHAPE_INFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/data_type.h"
#include "tfplug/base/shape.h"
#include "tfplug/testing/fault.h"
#include "tfplug/testing/op_registry.h"

#pragma GCC visibility push(hidden)

namespace tfplug::capi {

struct TF_ShapeHandle : testing::Counted<TF_ShapeHandle> {
  explicit TF_ShapeHandle(PartialShape shape) : shape(std::move(shape)) {}
  PartialShape shape;
};
struct TF_DimensionHandle : testing::Counted<TF_DimensionHandle> {
  int64_t value = -1;
};

// One call of an op's shape function. A test sets all fields and reads
// `outputs` afterwards; the size of `outputs` is the number of outputs.
struct TF_ShapeInferenceContext {
  std::vector<PartialShape> inputs;
  std::vector<PartialShape> outputs;
  std::map<std::string, TF_DataType> type_attrs;
  // If true, rejects every index but 0, as old releases do.
  bool only_first_index = false;
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_DataType;
using capi::TF_DimensionHandle;
using capi::TF_ShapeHandle;
using capi::TF_ShapeInferenceContext;

TFPLUG_FAKE_FUNCTION TF_ShapeHandle* TF_NewShapeHandle() {
  if (Fault::Hits("TF_NewShapeHandle")) return nullptr;
  return new TF_ShapeHandle(PartialShape());
}
TFPLUG_FAKE_FUNCTION void TF_DeleteShapeHandle(TF_ShapeHandle* handle) {
  delete handle;
}
TFPLUG_FAKE_FUNCTION TF_DimensionHandle* TF_NewDimensionHandle() {
  if (Fault::Hits("TF_NewDimensionHandle")) return nullptr;
  return new TF_DimensionHandle;
}
TFPLUG_FAKE_FUNCTION void TF_DeleteDimensionHandle(TF_DimensionHandle* handle) {
  delete handle;
}
TFPLUG_FAKE_FUNCTION int TF_DimensionHandleValueKnown(
    TF_DimensionHandle* handle) {
  return handle->value >= 0;
}
TFPLUG_FAKE_FUNCTION int64_t
TF_DimensionHandleValue(TF_DimensionHandle* handle) {
  return handle->value;
}
TFPLUG_FAKE_FUNCTION int64_t
TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext* context) {
  return static_cast<int64_t>(context->inputs.size());
}
inline bool CheckIndex(TF_ShapeInferenceContext* context, int i, size_t size,
                       TF_Status* status) {
  const bool ok = context->only_first_index ? i == 0 : i >= 0;
  if (ok && static_cast<size_t>(i) < size) {
    SetOk(status);
    return true;
  }
  TF_SetStatus(status, capi::TF_INVALID_ARGUMENT, "index out of range");
  return false;
}
TFPLUG_FAKE_FUNCTION void TF_ShapeInferenceContextGetInput(
    TF_ShapeInferenceContext* context, int i, TF_ShapeHandle* handle,
    TF_Status* status) {
  if (Fault::Hits("TF_ShapeInferenceContextGetInput", status)) return;
  if (CheckIndex(context, i, context->inputs.size(), status)) {
    handle->shape = context->inputs[static_cast<size_t>(i)];
  }
}
TFPLUG_FAKE_FUNCTION void TF_ShapeInferenceContextSetOutput(
    TF_ShapeInferenceContext* context, int i, TF_ShapeHandle* handle,
    TF_Status* status) {
  if (Fault::Hits("TF_ShapeInferenceContextSetOutput", status)) return;
  if (CheckIndex(context, i, context->outputs.size(), status)) {
    context->outputs[static_cast<size_t>(i)] = handle->shape;
  }
}
TFPLUG_FAKE_FUNCTION void TF_ShapeInferenceContextSetUnknownShape(
    TF_ShapeInferenceContext* context, TF_Status* status) {
  if (Fault::Hits("TF_ShapeInferenceContextSetUnknownShape", status)) return;
  for (PartialShape& output : context->outputs) output = PartialShape();
  SetOk(status);
}
TFPLUG_FAKE_FUNCTION TF_ShapeHandle* TF_ShapeInferenceContextScalar(
    TF_ShapeInferenceContext*) {
  if (Fault::Hits("TF_ShapeInferenceContextScalar")) return nullptr;
  return new TF_ShapeHandle(Shape{});
}
TFPLUG_FAKE_FUNCTION TF_ShapeHandle* TF_ShapeInferenceContextVectorFromSize(
    TF_ShapeInferenceContext*, size_t size) {
  if (Fault::Hits("TF_ShapeInferenceContextVectorFromSize")) return nullptr;
  return new TF_ShapeHandle(Shape{static_cast<int64_t>(size)});
}
TFPLUG_FAKE_FUNCTION int64_t TF_ShapeInferenceContextRank(
    TF_ShapeInferenceContext*, TF_ShapeHandle* handle) {
  return handle->shape.rank();
}
TFPLUG_FAKE_FUNCTION int TF_ShapeInferenceContextRankKnown(
    TF_ShapeInferenceContext*, TF_ShapeHandle* handle) {
  return handle->shape.has_rank();
}
TFPLUG_FAKE_FUNCTION void TF_ShapeInferenceContextDim(
    TF_ShapeInferenceContext*, TF_ShapeHandle* handle, int64_t i,
    TF_DimensionHandle* result) {
  const int64_t rank = handle->shape.rank();
  result->value = handle->shape.dim(static_cast<int>(i < 0 ? i + rank : i));
}
inline void CheckRank(const char* function, bool ok, TF_ShapeHandle* handle,
                      TF_ShapeHandle* result, TF_Status* status) {
  if (Fault::Hits(function, status)) return;
  if (handle->shape.has_rank() && !ok) {
    TF_SetStatus(status, capi::TF_INVALID_ARGUMENT, "Shape has the wrong rank");
    return;
  }
  result->shape = handle->shape;
  SetOk(status);
}
TFPLUG_FAKE_FUNCTION void TF_ShapeInferenceContextWithRank(
    TF_ShapeInferenceContext*, TF_ShapeHandle* handle, int64_t rank,
    TF_ShapeHandle* result, TF_Status* status) {
  CheckRank("TF_ShapeInferenceContextWithRank", handle->shape.rank() == rank,
            handle, result, status);
}
TFPLUG_FAKE_FUNCTION void TF_ShapeInferenceContextWithRankAtLeast(
    TF_ShapeInferenceContext*, TF_ShapeHandle* handle, int64_t rank,
    TF_ShapeHandle* result, TF_Status* status) {
  CheckRank("TF_ShapeInferenceContextWithRankAtLeast",
            handle->shape.rank() >= rank, handle, result, status);
}
TFPLUG_FAKE_FUNCTION void TF_ShapeInferenceContextWithRankAtMost(
    TF_ShapeInferenceContext*, TF_ShapeHandle* handle, int64_t rank,
    TF_ShapeHandle* result, TF_Status* status) {
  CheckRank("TF_ShapeInferenceContextWithRankAtMost",
            handle->shape.rank() <= rank, handle, result, status);
}
TFPLUG_FAKE_FUNCTION void TF_ShapeInferenceContextSubshape(
    TF_ShapeInferenceContext*, TF_ShapeHandle* handle, int64_t start,
    int64_t end, TF_ShapeHandle* result, TF_Status* status) {
  if (Fault::Hits("TF_ShapeInferenceContextSubshape", status)) return;
  const int64_t rank = handle->shape.rank();
  if (start < 0) start += rank;
  if (end < 0) end += rank;
  Shape shape;
  for (int64_t i = start; i < end && i < rank; ++i) {
    shape.add_dim(handle->shape.dim(static_cast<int>(i)));
  }
  result->shape = shape;
  SetOk(status);
}
TFPLUG_FAKE_FUNCTION void TF_ShapeInferenceContextConcatenateShapes(
    TF_ShapeInferenceContext*, TF_ShapeHandle* first, TF_ShapeHandle* second,
    TF_ShapeHandle* result, TF_Status* status) {
  if (Fault::Hits("TF_ShapeInferenceContextConcatenateShapes", status)) return;
  if (first->shape.has_rank() && second->shape.has_rank()) {
    Shape shape = first->shape.shape();
    for (int64_t dim : second->shape.shape().dims()) shape.add_dim(dim);
    result->shape = shape;
  }
  SetOk(status);
}
TFPLUG_FAKE_FUNCTION void TF_ShapeInferenceContext_GetAttrType(
    TF_ShapeInferenceContext* context, const char* name, TF_DataType* value,
    TF_Status* status) {
  if (Fault::Hits("TF_ShapeInferenceContext_GetAttrType", status)) return;
  const auto found = context->type_attrs.find(name);
  if (found == context->type_attrs.end()) {
    TF_SetStatus(status, capi::TF_NOT_FOUND,
                 ("No attr named '" + std::string(name) + "'").c_str());
    return;
  }
  *value = found->second;
  SetOk(status);
}

inline void InstallShapeInferenceFunctions(capi::Functions& functions) {
  TFPLUG_FAKE_INSTALL(TF_NewShapeHandle);
  TFPLUG_FAKE_INSTALL(TF_DeleteShapeHandle);
  TFPLUG_FAKE_INSTALL(TF_NewDimensionHandle);
  TFPLUG_FAKE_INSTALL(TF_DeleteDimensionHandle);
  TFPLUG_FAKE_INSTALL(TF_DimensionHandleValueKnown);
  TFPLUG_FAKE_INSTALL(TF_DimensionHandleValue);
  TFPLUG_FAKE_INSTALL(TF_ShapeInferenceContextNumInputs);
  TFPLUG_FAKE_INSTALL(TF_ShapeInferenceContextGetInput);
  TFPLUG_FAKE_INSTALL(TF_ShapeInferenceContextSetOutput);
  TFPLUG_FAKE_INSTALL(TF_ShapeInferenceContextSetUnknownShape);
  TFPLUG_FAKE_INSTALL(TF_ShapeInferenceContextScalar);
  TFPLUG_FAKE_INSTALL(TF_ShapeInferenceContextVectorFromSize);
  TFPLUG_FAKE_INSTALL(TF_ShapeInferenceContextRank);
  TFPLUG_FAKE_INSTALL(TF_ShapeInferenceContextRankKnown);
  TFPLUG_FAKE_INSTALL(TF_ShapeInferenceContextDim);
  TFPLUG_FAKE_INSTALL(TF_ShapeInferenceContextWithRank);
  TFPLUG_FAKE_INSTALL(TF_ShapeInferenceContextWithRankAtLeast);
  TFPLUG_FAKE_INSTALL(TF_ShapeInferenceContextWithRankAtMost);
  TFPLUG_FAKE_INSTALL(TF_ShapeInferenceContextSubshape);
  TFPLUG_FAKE_INSTALL(TF_ShapeInferenceContextConcatenateShapes);
  TFPLUG_FAKE_INSTALL(TF_ShapeInferenceContext_GetAttrType);
}

// Calls the shape function of an op that a plug-in has registered, and returns the
// shapes of the outputs, of which a list counts as one. NOT_FOUND, if there is no
// such op; the shape function's error.
inline absl::StatusOr<std::vector<PartialShape>> InferShapes(
    const std::string& op, std::vector<PartialShape> inputs,
    const std::map<std::string, DataType>& type_attrs = {}) {
  const auto* const defined = FindRegisteredOp(op);
  if (defined == nullptr) {
    return absl::NotFoundError(
        "no plug-in has registered op '" + op +
        "'; call KernelRegistry::Get().Refill(&TF_InitKernel) first");
  }
  TF_ShapeInferenceContext context;
  context.inputs = std::move(inputs);
  context.outputs.resize(defined->outputs.size());
  for (const auto& [attr, type] : type_attrs) {
    context.type_attrs[attr] = static_cast<TF_DataType>(type);
  }
  const absl::Status status = CallWithStatus(defined->shape_function, &context);
  if (!status.ok()) return status;
  return std::move(context.outputs);
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_SHAPE_INFERENCE_H_
