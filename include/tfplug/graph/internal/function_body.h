// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_FUNCTION_BODY_H_
#define TFPLUG_GRAPH_INTERNAL_FUNCTION_BODY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/graph/internal/graph_state.h"
#include "tfplug/graph/internal/node_names.h"
#include "tfplug/graph/internal/overlay.h"

#pragma GCC visibility push(hidden)

// Parses the body of a function as a graph. Arguments become nodes of op _Arg;
// results become nodes of op _Retval with one input; nodes that must run for
// their side effects become inputs of nodes of op _ControlRetval. These nodes
// follow the body's own nodes and are not written as nodes.
namespace tfplug::graph_internal {

// Numbers of fields in FunctionDefLibrary, FunctionDef, OpDef and ArgDef.
inline constexpr uint32_t kLibraryField = 2;
inline constexpr uint32_t kFunctionInLibrary = 1;
inline constexpr uint32_t kSignatureField = 1;
inline constexpr uint32_t kResultField = 4;
inline constexpr uint32_t kControlResultField = 6;
inline constexpr uint32_t kOpDefName = 1;
inline constexpr uint32_t kOpDefInput = 2;
inline constexpr uint32_t kArgName = 1;

// Returns the last occurrence of a string field.
inline absl::string_view StringField(absl::string_view message,
                                     uint32_t number) {
  absl::string_view value;
  for (internal::WireReader field(message); field.Next();) {
    if (field.Is(number, internal::kBytesType)) value = field.bytes();
  }
  return value;
}

inline absl::string_view FunctionDefName(absl::string_view function_def) {
  absl::string_view name;
  for (internal::WireReader field(function_def); field.Next();) {
    if (!field.Is(kSignatureField, internal::kBytesType)) continue;
    const absl::string_view part = StringField(field.bytes(), kOpDefName);
    if (part.data() != nullptr) name = part;
  }
  return name;
}

inline void GraphState::AddBoundary(absl::string_view name, const char* op) {
  const uint32_t op_id = OpId(op);
  ++op_table().count(op_id);
  index_.names.PushBack(name);
  index_.ops.PushBack(op_id);
  ++num_boundary_;
}

inline void GraphState::AddResult(absl::string_view entry, ByteRange field,
                                  bool is_control) {
  absl::string_view text = StringField(entry, 2);
  if (is_control) text = CopyToArena(absl::StrCat("^", text));
  if (text.data() == nullptr) text = absl::string_view("", 0);
  results_.PushBack({size(), field});
  AddBoundary(StringField(entry, 1), is_control ? "_ControlRetval" : "_Retval");
  NodeEdit& edit = overlay_.Add(size() - 1, size());
  edit.own_inputs = true;
  (is_control ? edit.controls : edit.inputs)
      .PushBack(overlay_.arena(), {0, text});
}

inline absl::Status GraphState::ParseFunction(absl::string_view function_def) {
  Clear();
  is_function_ = true;
  ports_.Clear();
  absl::Status status = Index(function_def);
  if (!status.ok()) return status;
  for (internal::WireReader field(function_def); field.Next();) {
    if (!field.Is(kSignatureField, internal::kBytesType)) continue;
    for (internal::WireReader part(field.bytes()); part.Next();) {
      if (!part.Is(kOpDefInput, internal::kBytesType)) continue;
      AddBoundary(StringField(part.bytes(), kArgName), "_Arg");
    }
  }
  for (internal::WireReader field(function_def); field.Next();) {
    const bool is_control = field.Is(kControlResultField, internal::kBytesType);
    if (!is_control && !field.Is(kResultField, internal::kBytesType)) continue;
    const auto begin = field.field().data() - function_def.data();
    AddResult(field.bytes(),
              {static_cast<uint32_t>(begin),
               static_cast<uint32_t>(field.field().size())},
              is_control);
  }
  return absl::OkStatus();
}

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_FUNCTION_BODY_H_
