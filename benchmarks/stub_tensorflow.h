// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BENCHMARKS_STUB_TENSORFLOW_H_
#define TFPLUG_BENCHMARKS_STUB_TENSORFLOW_H_

#include <tfplug/abi/tf_buffer.h>
#include <tfplug/base/internal/tensorflow.h>
#include <tfplug/base/internal/wire.h>

#include <string>

// Returns a serialized OpDef with the attributes that rules look up: those of
// _FusedConv2D, or of _FusedMatMul for any other name.
inline std::string OpDefOf(const std::string& name) {
  using tfplug::internal::AppendField;
  std::string op, no;
  AppendField(op, 1, name);
  AppendField(no, 5, uint64_t{0});  // AttrValue.b
  const auto add = [&op](const char* attr, const std::string& default_value) {
    std::string text;
    AppendField(text, 1, attr);
    if (!default_value.empty()) AppendField(text, 3, default_value);
    AppendField(op, 4, text);
  };
  for (const char* attr : {"T", "num_args", "fused_ops"}) add(attr, "");
  add("epsilon", no);
  if (name == "_FusedConv2D") {
    for (const char* attr : {"strides", "padding", "data_format"}) {
      add(attr, "");
    }
  } else {
    for (const char* attr : {"transpose_a", "transpose_b"}) add(attr, no);
  }
  return op;
}

// Installs stubs of TensorFlow's op registry, which looks up ops with
// OpDefOf(), and of a grappler item without preserved nodes.
inline void InstallStubTensorFlow() {
  using namespace tfplug::capi;
  static std::string op_def;
  auto& tensorflow = tfplug::internal::tensorflow;
  tensorflow.TF_GetNodesToPreserveListSize =
      [](const TF_GrapplerItem*, int* count, size_t* bytes, TF_Status*) {
        *count = 0;
        *bytes = 0;
      };
  tensorflow.TF_GetNodesToPreserveList = [](const TF_GrapplerItem*, char**,
                                            size_t*, int, void*, size_t,
                                            TF_Status*) {};
  tensorflow.TF_NewFunctionLibraryDefinition = [](const TF_Buffer*,
                                                  TF_Status*) {
    return reinterpret_cast<TF_FunctionLibraryDefinition*>(&op_def);
  };
  tensorflow.TF_DeleteFunctionLibraryDefinition =
      [](TF_FunctionLibraryDefinition*) {};
  tensorflow.TF_LookUpOpDef = [](TF_FunctionLibraryDefinition*,
                                 const char* name, TF_Buffer* buffer,
                                 TF_Status*) {
    op_def = OpDefOf(name);
    buffer->data = op_def.data();
    buffer->length = op_def.size();
  };
}

#endif  // TFPLUG_BENCHMARKS_STUB_TENSORFLOW_H_
