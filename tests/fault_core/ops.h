// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_FAULT_CORE_OPS_H_
#define TFPLUG_TESTS_FAULT_CORE_OPS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fault_core/tensor.h"
#include "tfplug/base/shape.h"

namespace tfplug::capi {

struct TF_OpDefinitionBuilder {
  TF_OpDefinitionBuilder() { ++live; }
  TF_OpDefinitionBuilder(const TF_OpDefinitionBuilder&) = delete;
  ~TF_OpDefinitionBuilder() { --live; }
  std::string name;
  std::vector<std::string> attrs, inputs, outputs, flags;
  void (*shape_fn)(TF_ShapeInferenceContext*, TF_Status*) = nullptr;
  static inline std::atomic<int64_t> live{0};
};
struct TF_ShapeHandle {
  explicit TF_ShapeHandle(PartialShape shape) : shape(std::move(shape)) {
    ++live;
  }
  TF_ShapeHandle(const TF_ShapeHandle&) = delete;
  ~TF_ShapeHandle() { --live; }
  PartialShape shape;
  static inline std::atomic<int64_t> live{0};
};
struct TF_DimensionHandle {
  TF_DimensionHandle() { ++live; }
  TF_DimensionHandle(const TF_DimensionHandle&) = delete;
  ~TF_DimensionHandle() { --live; }
  int64_t value = -1;
  static inline std::atomic<int64_t> live{0};
};
struct TF_ShapeInferenceContext {
  std::vector<PartialShape> inputs;
  std::vector<PartialShape> outputs;
  std::map<std::string, TF_DataType> types;
  // Older releases take no other index than 0.
  bool only_index_0 = false;
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_DimensionHandle;
using capi::TF_OpDefinitionBuilder;
using capi::TF_ShapeHandle;
using capi::TF_ShapeInferenceContext;

// The ops that core has taken, in order.
inline std::vector<std::unique_ptr<TF_OpDefinitionBuilder>>& RegisteredOps() {
  static std::vector<std::unique_ptr<TF_OpDefinitionBuilder>> ops;
  return ops;
}
inline int64_t LiveOpObjectCount() {
  return TF_OpDefinitionBuilder::live + TF_ShapeHandle::live +
         TF_DimensionHandle::live;
}

// ---- TF_OpDefinitionBuilder ------------------------------------------------

TFPLUG_TESTING_CORE_FUNCTION TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(
    const char* name) {
  if (Fault::Hits("TF_NewOpDefinitionBuilder")) return nullptr;
  auto* const builder = new TF_OpDefinitionBuilder;
  builder->name = name;
  return builder;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_DeleteOpDefinitionBuilder(
    TF_OpDefinitionBuilder* builder) {
  delete builder;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_RegisterOpDefinition(
    TF_OpDefinitionBuilder* builder, TF_Status* status) {
  std::unique_ptr<TF_OpDefinitionBuilder> owned(builder);
  if (Fault::Hits("TF_RegisterOpDefinition", status)) return;
  RegisteredOps().push_back(std::move(owned));
  TF_SetStatus(status, capi::TF_OK, "");
}
TFPLUG_TESTING_CORE_FUNCTION void TF_OpDefinitionBuilderAddAttr(
    TF_OpDefinitionBuilder* builder, const char* spec) {
  builder->attrs.emplace_back(spec);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_OpDefinitionBuilderAddInput(
    TF_OpDefinitionBuilder* builder, const char* spec) {
  builder->inputs.emplace_back(spec);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_OpDefinitionBuilderAddOutput(
    TF_OpDefinitionBuilder* builder, const char* spec) {
  builder->outputs.emplace_back(spec);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_OpDefinitionBuilderDeprecated(
    TF_OpDefinitionBuilder* builder, int version, const char* explanation) {
  builder->flags.push_back("deprecated since " + std::to_string(version) +
                           ": " + explanation);
}
// Core sets them whatever the argument is.
TFPLUG_TESTING_CORE_FUNCTION void TF_OpDefinitionBuilderSetIsCommutative(
    TF_OpDefinitionBuilder* builder, bool) {
  builder->flags.push_back("commutative");
}
TFPLUG_TESTING_CORE_FUNCTION void TF_OpDefinitionBuilderSetIsAggregate(
    TF_OpDefinitionBuilder* builder, bool) {
  builder->flags.push_back("aggregate");
}
TFPLUG_TESTING_CORE_FUNCTION void TF_OpDefinitionBuilderSetIsStateful(
    TF_OpDefinitionBuilder* builder, bool) {
  builder->flags.push_back("stateful");
}
TFPLUG_TESTING_CORE_FUNCTION void
TF_OpDefinitionBuilderSetAllowsUninitializedInput(
    TF_OpDefinitionBuilder* builder, bool) {
  builder->flags.push_back("allows uninitialized input");
}
TFPLUG_TESTING_CORE_FUNCTION void
TF_OpDefinitionBuilderSetShapeInferenceFunction(
    TF_OpDefinitionBuilder* builder,
    void (*function)(TF_ShapeInferenceContext*, TF_Status*)) {
  builder->shape_fn = function;
}
// Core's own ops: one, MatMul.
TFPLUG_TESTING_CORE_FUNCTION capi::TF_Buffer* TF_GetAllOpList() {
  return TF_NewBufferFromString("\x0a\x08\x0a\x06MatMul", 10);
}

// ---- TF_ShapeInferenceContext ----------------------------------------------

TFPLUG_TESTING_CORE_FUNCTION TF_ShapeHandle* TF_NewShapeHandle() {
  if (Fault::Hits("TF_NewShapeHandle")) return nullptr;
  return new TF_ShapeHandle(PartialShape());
}
TFPLUG_TESTING_CORE_FUNCTION void TF_DeleteShapeHandle(TF_ShapeHandle* handle) {
  delete handle;
}
TFPLUG_TESTING_CORE_FUNCTION TF_DimensionHandle* TF_NewDimensionHandle() {
  if (Fault::Hits("TF_NewDimensionHandle")) return nullptr;
  return new TF_DimensionHandle;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_DeleteDimensionHandle(
    TF_DimensionHandle* handle) {
  delete handle;
}
TFPLUG_TESTING_CORE_FUNCTION int TF_DimensionHandleValueKnown(
    TF_DimensionHandle* handle) {
  return handle->value >= 0;
}
TFPLUG_TESTING_CORE_FUNCTION int64_t
TF_DimensionHandleValue(TF_DimensionHandle* handle) {
  return handle->value;
}
TFPLUG_TESTING_CORE_FUNCTION int64_t
TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext* ctx) {
  return static_cast<int64_t>(ctx->inputs.size());
}
inline bool TakesIndex(TF_ShapeInferenceContext* ctx, int i, size_t size,
                       TF_Status* status) {
  const bool ok = ctx->only_index_0 ? i == 0 : i >= 0;
  if (ok && static_cast<size_t>(i) < size) {
    TF_SetStatus(status, capi::TF_OK, "");
    return true;
  }
  TF_SetStatus(status, capi::TF_INVALID_ARGUMENT, "index out of range");
  return false;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_ShapeInferenceContextGetInput(
    TF_ShapeInferenceContext* ctx, int i, TF_ShapeHandle* handle,
    TF_Status* status) {
  if (Fault::Hits("TF_ShapeInferenceContextGetInput", status)) return;
  if (TakesIndex(ctx, i, ctx->inputs.size(), status)) {
    handle->shape = ctx->inputs[static_cast<size_t>(i)];
  }
}
TFPLUG_TESTING_CORE_FUNCTION void TF_ShapeInferenceContextSetOutput(
    TF_ShapeInferenceContext* ctx, int i, TF_ShapeHandle* handle,
    TF_Status* status) {
  if (Fault::Hits("TF_ShapeInferenceContextSetOutput", status)) return;
  if (TakesIndex(ctx, i, ctx->outputs.size(), status)) {
    ctx->outputs[static_cast<size_t>(i)] = handle->shape;
  }
}
TFPLUG_TESTING_CORE_FUNCTION void TF_ShapeInferenceContextSetUnknownShape(
    TF_ShapeInferenceContext* ctx, TF_Status* status) {
  if (Fault::Hits("TF_ShapeInferenceContextSetUnknownShape", status)) return;
  for (PartialShape& output : ctx->outputs) output = PartialShape();
  TF_SetStatus(status, capi::TF_OK, "");
}
TFPLUG_TESTING_CORE_FUNCTION TF_ShapeHandle* TF_ShapeInferenceContextScalar(
    TF_ShapeInferenceContext*) {
  if (Fault::Hits("TF_ShapeInferenceContextScalar")) return nullptr;
  return new TF_ShapeHandle(Shape{});
}
TFPLUG_TESTING_CORE_FUNCTION TF_ShapeHandle*
TF_ShapeInferenceContextVectorFromSize(TF_ShapeInferenceContext*, size_t size) {
  if (Fault::Hits("TF_ShapeInferenceContextVectorFromSize")) return nullptr;
  return new TF_ShapeHandle(Shape{static_cast<int64_t>(size)});
}
TFPLUG_TESTING_CORE_FUNCTION int64_t TF_ShapeInferenceContextRank(
    TF_ShapeInferenceContext*, TF_ShapeHandle* handle) {
  return handle->shape.rank();
}
TFPLUG_TESTING_CORE_FUNCTION int TF_ShapeInferenceContextRankKnown(
    TF_ShapeInferenceContext*, TF_ShapeHandle* handle) {
  return handle->shape.has_rank();
}
TFPLUG_TESTING_CORE_FUNCTION void TF_ShapeInferenceContextDim(
    TF_ShapeInferenceContext*, TF_ShapeHandle* handle, int64_t i,
    TF_DimensionHandle* result) {
  const int64_t rank = handle->shape.rank();
  result->value = handle->shape.dim(static_cast<int>(i < 0 ? i + rank : i));
}
inline void CheckRank(const char* function, bool ok, TF_ShapeHandle* handle,
                      TF_ShapeHandle* result, TF_Status* status) {
  if (Fault::Hits(function, status)) return;
  if (handle->shape.has_rank() && !ok) {
    TF_SetStatus(status, capi::TF_INVALID_ARGUMENT, "Shape must have a rank");
    return;
  }
  result->shape = handle->shape;
  TF_SetStatus(status, capi::TF_OK, "");
}
TFPLUG_TESTING_CORE_FUNCTION void TF_ShapeInferenceContextWithRank(
    TF_ShapeInferenceContext*, TF_ShapeHandle* handle, int64_t rank,
    TF_ShapeHandle* result, TF_Status* status) {
  CheckRank("TF_ShapeInferenceContextWithRank", handle->shape.rank() == rank,
            handle, result, status);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_ShapeInferenceContextWithRankAtLeast(
    TF_ShapeInferenceContext*, TF_ShapeHandle* handle, int64_t rank,
    TF_ShapeHandle* result, TF_Status* status) {
  CheckRank("TF_ShapeInferenceContextWithRankAtLeast",
            handle->shape.rank() >= rank, handle, result, status);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_ShapeInferenceContextWithRankAtMost(
    TF_ShapeInferenceContext*, TF_ShapeHandle* handle, int64_t rank,
    TF_ShapeHandle* result, TF_Status* status) {
  CheckRank("TF_ShapeInferenceContextWithRankAtMost",
            handle->shape.rank() <= rank, handle, result, status);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_ShapeInferenceContextSubshape(
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
  TF_SetStatus(status, capi::TF_OK, "");
}
TFPLUG_TESTING_CORE_FUNCTION void TF_ShapeInferenceContextConcatenateShapes(
    TF_ShapeInferenceContext*, TF_ShapeHandle* first, TF_ShapeHandle* second,
    TF_ShapeHandle* result, TF_Status* status) {
  if (Fault::Hits("TF_ShapeInferenceContextConcatenateShapes", status)) return;
  if (first->shape.has_rank() && second->shape.has_rank()) {
    Shape shape = first->shape.shape();
    for (int64_t dim : second->shape.shape().dims()) shape.add_dim(dim);
    result->shape = shape;
  }
  TF_SetStatus(status, capi::TF_OK, "");
}
TFPLUG_TESTING_CORE_FUNCTION void TF_ShapeInferenceContext_GetAttrType(
    TF_ShapeInferenceContext* ctx, const char* name, capi::TF_DataType* value,
    TF_Status* status) {
  if (Fault::Hits("TF_ShapeInferenceContext_GetAttrType", status)) return;
  const auto found = ctx->types.find(name);
  if (found == ctx->types.end()) {
    TF_SetStatus(status, capi::TF_NOT_FOUND, "No attr named so");
    return;
  }
  *value = found->second;
  TF_SetStatus(status, capi::TF_OK, "");
}

inline void InstallOpFunctions(capi::Functions& core) {
#define TFPLUG_TESTING_INSTALL(name) core.name = &name
  TFPLUG_TESTING_INSTALL(TF_NewOpDefinitionBuilder);
  TFPLUG_TESTING_INSTALL(TF_DeleteOpDefinitionBuilder);
  TFPLUG_TESTING_INSTALL(TF_RegisterOpDefinition);
  TFPLUG_TESTING_INSTALL(TF_OpDefinitionBuilderAddAttr);
  TFPLUG_TESTING_INSTALL(TF_OpDefinitionBuilderAddInput);
  TFPLUG_TESTING_INSTALL(TF_OpDefinitionBuilderAddOutput);
  TFPLUG_TESTING_INSTALL(TF_OpDefinitionBuilderDeprecated);
  TFPLUG_TESTING_INSTALL(TF_OpDefinitionBuilderSetIsCommutative);
  TFPLUG_TESTING_INSTALL(TF_OpDefinitionBuilderSetIsAggregate);
  TFPLUG_TESTING_INSTALL(TF_OpDefinitionBuilderSetIsStateful);
  TFPLUG_TESTING_INSTALL(TF_OpDefinitionBuilderSetAllowsUninitializedInput);
  TFPLUG_TESTING_INSTALL(TF_OpDefinitionBuilderSetShapeInferenceFunction);
  TFPLUG_TESTING_INSTALL(TF_GetAllOpList);
  TFPLUG_TESTING_INSTALL(TF_NewShapeHandle);
  TFPLUG_TESTING_INSTALL(TF_DeleteShapeHandle);
  TFPLUG_TESTING_INSTALL(TF_NewDimensionHandle);
  TFPLUG_TESTING_INSTALL(TF_DeleteDimensionHandle);
  TFPLUG_TESTING_INSTALL(TF_DimensionHandleValueKnown);
  TFPLUG_TESTING_INSTALL(TF_DimensionHandleValue);
  TFPLUG_TESTING_INSTALL(TF_ShapeInferenceContextNumInputs);
  TFPLUG_TESTING_INSTALL(TF_ShapeInferenceContextGetInput);
  TFPLUG_TESTING_INSTALL(TF_ShapeInferenceContextSetOutput);
  TFPLUG_TESTING_INSTALL(TF_ShapeInferenceContextSetUnknownShape);
  TFPLUG_TESTING_INSTALL(TF_ShapeInferenceContextScalar);
  TFPLUG_TESTING_INSTALL(TF_ShapeInferenceContextVectorFromSize);
  TFPLUG_TESTING_INSTALL(TF_ShapeInferenceContextRank);
  TFPLUG_TESTING_INSTALL(TF_ShapeInferenceContextRankKnown);
  TFPLUG_TESTING_INSTALL(TF_ShapeInferenceContextDim);
  TFPLUG_TESTING_INSTALL(TF_ShapeInferenceContextWithRank);
  TFPLUG_TESTING_INSTALL(TF_ShapeInferenceContextWithRankAtLeast);
  TFPLUG_TESTING_INSTALL(TF_ShapeInferenceContextWithRankAtMost);
  TFPLUG_TESTING_INSTALL(TF_ShapeInferenceContextSubshape);
  TFPLUG_TESTING_INSTALL(TF_ShapeInferenceContextConcatenateShapes);
  TFPLUG_TESTING_INSTALL(TF_ShapeInferenceContext_GetAttrType);
#undef TFPLUG_TESTING_INSTALL
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTS_FAULT_CORE_OPS_H_
