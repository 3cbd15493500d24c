// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_GRAPH_FUNCTIONS_H_
#define TFPLUG_TESTING_INTERNAL_GRAPH_FUNCTIONS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/testing/grappler_item.h"
#include "tfplug/testing/internal/buffer_functions.h"
#include "tfplug/testing/node.h"
#include "tfplug/testing/op_spec.h"

#pragma GCC visibility push(hidden)

namespace tfplug::capi {

struct TF_GraphProperties : testing::Counted<TF_GraphProperties> {
  explicit TF_GraphProperties(const TF_GrapplerItem* item) : item(item) {}
  const TF_GrapplerItem* const item;
  bool is_inferred = false;
  bool has_output_values = false;
};

struct TF_FunctionLibraryDefinition
    : testing::Counted<TF_FunctionLibraryDefinition> {
  std::map<std::string, std::string> op_defs;  // serialized, by name
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_FunctionLibraryDefinition;
using capi::TF_GraphProperties;

// Sets the status to OK, or to an error if a Fault hits this call. Returns
// whether the call fails.
inline bool GraphCallFails(const char* function, TF_Status* status) {
  SetOk(status);
  return Fault::Hits(function, status);
}

// Returns the item, in 2.5 only. Not exported: plug-ins tell 2.5 by it.
inline const TF_GrapplerItem* TF_GetGrapplerItem(TF_Buffer* graph,
                                                 TF_Status* status) {
  if (GraphCallFails("TF_GetGrapplerItem", status)) return nullptr;
  if (graph == CurrentGraph().buffer) return CurrentGraph().item;
  TF_SetStatus(status, capi::TF_NOT_FOUND, "GrapplerItem is not found");
  return nullptr;
}

// ---- Names, one after the other in `storage` -------------------------------

inline void GetNamesSize(const char* function,
                         const std::vector<std::string>& names, int* num_values,
                         size_t* storage_size, TF_Status* status) {
  if (GraphCallFails(function, status)) return;
  *num_values = static_cast<int>(names.size());
  *storage_size = 0;
  for (const std::string& name : names) *storage_size += name.size();
}
inline void GetNames(const char* function,
                     const std::vector<std::string>& names, char** values,
                     size_t* lengths, int num_values, void* storage,
                     size_t storage_size, TF_Status* status) {
  if (GraphCallFails(function, status)) return;
  char* to = static_cast<char*>(storage);
  char* const end = to + storage_size;
  const auto count = std::min(static_cast<size_t>(num_values), names.size());
  for (size_t i = 0; i < count; ++i) {
    values[i] = to;
    lengths[i] = names[i].size();
    if (names[i].size() > static_cast<size_t>(end - to)) {
      TF_SetStatus(status, capi::TF_INVALID_ARGUMENT, "Not enough storage");
      return;
    }
    std::copy(names[i].begin(), names[i].end(), to);
    to += names[i].size();
  }
}

TFPLUG_FAKE_FUNCTION void TF_GetNodesToPreserveListSize(
    const TF_GrapplerItem* item, int* num_values, size_t* storage_size,
    TF_Status* status) {
  GetNamesSize("TF_GetNodesToPreserveListSize", item->nodes_to_preserve,
               num_values, storage_size, status);
}
TFPLUG_FAKE_FUNCTION void TF_GetNodesToPreserveList(
    const TF_GrapplerItem* item, char** values, size_t* lengths, int num_values,
    void* storage, size_t storage_size, TF_Status* status) {
  GetNames("TF_GetNodesToPreserveList", item->nodes_to_preserve, values,
           lengths, num_values, storage, storage_size, status);
}
TFPLUG_FAKE_FUNCTION void TF_GetFetchNodesListSize(const TF_GrapplerItem* item,
                                                   int* num_values,
                                                   size_t* storage_size,
                                                   TF_Status* status) {
  GetNamesSize("TF_GetFetchNodesListSize", item->fetch_nodes, num_values,
               storage_size, status);
}
TFPLUG_FAKE_FUNCTION void TF_GetFetchNodesList(const TF_GrapplerItem* item,
                                               char** values, size_t* lengths,
                                               int num_values, void* storage,
                                               size_t storage_size,
                                               TF_Status* status) {
  GetNames("TF_GetFetchNodesList", item->fetch_nodes, values, lengths,
           num_values, storage, storage_size, status);
}

// ---- Properties ------------------------------------------------------------

TFPLUG_FAKE_FUNCTION TF_GraphProperties* TF_NewGraphProperties(
    const TF_GrapplerItem* item) {
  if (Fault::Hits("TF_NewGraphProperties")) return nullptr;
  return new TF_GraphProperties(item);
}
TFPLUG_FAKE_FUNCTION void TF_DeleteGraphProperties(
    TF_GraphProperties* properties) {
  delete properties;
}
TFPLUG_FAKE_FUNCTION void TF_InferStatically(
    TF_GraphProperties* properties, capi::TF_Bool /*assume_valid_feeds*/,
    capi::TF_Bool /*aggressive*/, capi::TF_Bool /*include_input_values*/,
    capi::TF_Bool include_output_values, TF_Status* status) {
  if (GraphCallFails("TF_InferStatically", status)) return;
  ++properties->item->inferences;
  properties->is_inferred = true;
  properties->has_output_values = include_output_values != 0;
}

inline const std::vector<TF_GrapplerItem::Property>& PropertiesOf(
    const TF_GraphProperties* properties,
    const TF_GrapplerItem::Properties& side, const char* name) {
  static const auto* const none = new std::vector<TF_GrapplerItem::Property>;
  const auto it = side.find(name);
  return properties->is_inferred && it != side.end() ? it->second : *none;
}
inline std::string SerializeProperty(const TF_GrapplerItem::Property& property,
                                     bool with_value) {
  std::string out;
  internal::AppendField(out, 1, static_cast<uint64_t>(property.dtype));
  internal::AppendField(out, 2, SerializeShape(property.shape));
  if (with_value && !property.value.empty()) {
    internal::AppendField(out, 3, property.value);
  }
  return out;
}
inline void GetProperties(
    const char* function,
    const std::vector<TF_GrapplerItem::Property>& properties, bool with_values,
    TF_Buffer** buffers, int num_values, TF_Status* status) {
  if (GraphCallFails(function, status)) return;
  const auto count =
      std::min(static_cast<size_t>(num_values), properties.size());
  for (size_t i = 0; i < count; ++i) {
    FillBuffer(buffers[i], SerializeProperty(properties[i], with_values));
  }
}

TFPLUG_FAKE_FUNCTION void TF_GetInputPropertiesListSize(
    TF_GraphProperties* properties, const char* name, int* num_values,
    TF_Status* status) {
  if (GraphCallFails("TF_GetInputPropertiesListSize", status)) return;
  *num_values = static_cast<int>(
      PropertiesOf(properties, properties->item->inputs, name).size());
}
TFPLUG_FAKE_FUNCTION void TF_GetInputPropertiesList(
    TF_GraphProperties* properties, const char* name, TF_Buffer** buffers,
    int num_values, TF_Status* status) {
  GetProperties("TF_GetInputPropertiesList",
                PropertiesOf(properties, properties->item->inputs, name),
                /*with_values=*/false, buffers, num_values, status);
}
TFPLUG_FAKE_FUNCTION void TF_GetOutputPropertiesListSize(
    TF_GraphProperties* properties, const char* name, int* num_values,
    TF_Status* status) {
  if (GraphCallFails("TF_GetOutputPropertiesListSize", status)) return;
  *num_values = static_cast<int>(
      PropertiesOf(properties, properties->item->outputs, name).size());
}
TFPLUG_FAKE_FUNCTION void TF_GetOutputPropertiesList(
    TF_GraphProperties* properties, const char* name, TF_Buffer** buffers,
    int num_values, TF_Status* status) {
  GetProperties("TF_GetOutputPropertiesList",
                PropertiesOf(properties, properties->item->outputs, name),
                properties->has_output_values, buffers, num_values, status);
}

// ---- Ops and functions -----------------------------------------------------

TFPLUG_FAKE_FUNCTION TF_FunctionLibraryDefinition*
TF_NewFunctionLibraryDefinition(const TF_Buffer* graph, TF_Status* status) {
  if (GraphCallFails("TF_NewFunctionLibraryDefinition", status)) return nullptr;
  auto* const library = new TF_FunctionLibraryDefinition;
  const absl::string_view bytes(static_cast<const char*>(graph->data),
                                graph->length);
  for (internal::WireReader field(bytes); field.Next();) {
    if (field.number() != 2) continue;  // GraphDef.library
    for (internal::WireReader lib(field.bytes()); lib.Next();) {
      if (lib.number() != 1) continue;  // .function
      for (internal::WireReader function(lib.bytes()); function.Next();) {
        if (function.number() != 1) continue;  // .signature
        for (internal::WireReader op(function.bytes()); op.Next();) {
          if (op.number() != 1) continue;
          library->op_defs[std::string(op.bytes())] =
              std::string(function.bytes());
        }
      }
    }
  }
  return library;
}
TFPLUG_FAKE_FUNCTION void TF_DeleteFunctionLibraryDefinition(
    TF_FunctionLibraryDefinition* library) {
  delete library;
}
TFPLUG_FAKE_FUNCTION void TF_LookUpOpDef(TF_FunctionLibraryDefinition* library,
                                         const char* name, TF_Buffer* buffer,
                                         TF_Status* status) {
  if (GraphCallFails("TF_LookUpOpDef", status)) return;
  if (auto it = library->op_defs.find(name); it != library->op_defs.end()) {
    return FillBuffer(buffer, it->second);
  }
  const absl::StatusOr<std::string> def = FindOpDef(name);
  if (def.ok()) return FillBuffer(buffer, *def);
  TF_SetStatus(
      status, static_cast<TF_Code>(def.status().code()),
      absl::IsNotFound(def.status())
          ? absl::StrCat("Op type not registered '", name,
                         "'; a test adds the ops of TensorFlow that it "
                         "needs to testing::KnownOpDefs(), and those "
                         "of a plug-in are known once its "
                         "TF_InitKernel has run")
                .c_str()
          : std::string(def.status().message()).c_str());
}

inline void InstallGraphFunctions(capi::Functions& functions) {
  TFPLUG_FAKE_INSTALL(TF_GetGrapplerItem);
  TFPLUG_FAKE_INSTALL(TF_GetNodesToPreserveListSize);
  TFPLUG_FAKE_INSTALL(TF_GetNodesToPreserveList);
  TFPLUG_FAKE_INSTALL(TF_GetFetchNodesListSize);
  TFPLUG_FAKE_INSTALL(TF_GetFetchNodesList);
  TFPLUG_FAKE_INSTALL(TF_NewGraphProperties);
  TFPLUG_FAKE_INSTALL(TF_DeleteGraphProperties);
  TFPLUG_FAKE_INSTALL(TF_InferStatically);
  TFPLUG_FAKE_INSTALL(TF_GetInputPropertiesListSize);
  TFPLUG_FAKE_INSTALL(TF_GetInputPropertiesList);
  TFPLUG_FAKE_INSTALL(TF_GetOutputPropertiesListSize);
  TFPLUG_FAKE_INSTALL(TF_GetOutputPropertiesList);
  TFPLUG_FAKE_INSTALL(TF_NewFunctionLibraryDefinition);
  TFPLUG_FAKE_INSTALL(TF_DeleteFunctionLibraryDefinition);
  TFPLUG_FAKE_INSTALL(TF_LookUpOpDef);
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_GRAPH_FUNCTIONS_H_
