// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_GRAPH_H_
#define TFPLUG_TESTING_FAKE_GRAPH_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tfplug/abi/tf_buffer.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/base/shape.h"
#include "tfplug/testing/fake_status.h"

namespace tfplug::testing {

// How many of core's objects for graphs exist in the process.
inline std::atomic<int64_t>& LiveGraphObjectCount() {
  static std::atomic<int64_t> count{0};
  return count;
}
struct CountedGraphObject {
  CountedGraphObject() { ++LiveGraphObjectCount(); }
  CountedGraphObject(const CountedGraphObject&) = delete;
  CountedGraphObject& operator=(const CountedGraphObject&) = delete;
  ~CountedGraphObject() { --LiveGraphObjectCount(); }
};

}  // namespace tfplug::testing

namespace tfplug::capi {

// What core's optimizer has besides the graph: a test fills it.
struct TF_GrapplerItem {
  // What inference finds out about one input or output of a node.
  struct Property {
    TF_DataType dtype;
    PartialShape shape;
    std::string value;  // a serialised TensorProto; "": not constant
  };
  using Properties = std::map<std::string, std::vector<Property>>;

  std::vector<std::string> nodes_to_preserve;
  std::vector<std::string> fetch_nodes;
  Properties inputs;
  Properties outputs;
  mutable int inferences = 0;  // counted by TF_InferStatically
};

struct TF_GraphProperties : testing::CountedGraphObject {
  explicit TF_GraphProperties(const TF_GrapplerItem* item) : item(item) {}
  const TF_GrapplerItem* const item;
  bool is_inferred = false;
  bool has_output_values = false;
};

struct TF_FunctionLibraryDefinition : testing::CountedGraphObject {
  std::map<std::string, std::string> op_defs;  // serialised, by name
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_Buffer;
using capi::TF_FunctionLibraryDefinition;
using capi::TF_GraphProperties;
using capi::TF_GrapplerItem;

// Asked before each of the functions below that can fail; true: it does, with
// what the hook has set, or by giving no object (`status` is null then).
using GraphFaultHook = std::function<bool(const char* function, TF_Status*)>;
inline GraphFaultHook& FailGraphCall() {
  static GraphFaultHook hook;
  return hook;
}
inline bool GraphCallFails(const char* function, TF_Status* status) {
  if (status != nullptr) TF_SetStatus(status, capi::TF_OK, "");
  return FailGraphCall() && FailGraphCall()(function, status);
}

// The ops that core knows: serialised OpDefs by name.
inline std::map<std::string, std::string>& KnownOpDefs() {
  static std::map<std::string, std::string> ops;
  return ops;
}

inline void FillBuffer(TF_Buffer* buffer, absl::string_view bytes) {
  void* const copy = std::malloc(bytes.size() + 1);
  if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  buffer->data = copy;
  buffer->length = bytes.size();
  buffer->data_deallocator = [](void* data, size_t) { std::free(data); };
}

// ---- Names, as core gives them: one behind the other in `storage` -----------

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

TFPLUG_TESTING_CORE_FUNCTION void TF_GetNodesToPreserveListSize(
    const TF_GrapplerItem* item, int* num_values, size_t* storage_size,
    TF_Status* status) {
  GetNamesSize("TF_GetNodesToPreserveListSize", item->nodes_to_preserve,
               num_values, storage_size, status);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_GetNodesToPreserveList(
    const TF_GrapplerItem* item, char** values, size_t* lengths, int num_values,
    void* storage, size_t storage_size, TF_Status* status) {
  GetNames("TF_GetNodesToPreserveList", item->nodes_to_preserve, values,
           lengths, num_values, storage, storage_size, status);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_GetFetchNodesListSize(
    const TF_GrapplerItem* item, int* num_values, size_t* storage_size,
    TF_Status* status) {
  GetNamesSize("TF_GetFetchNodesListSize", item->fetch_nodes, num_values,
               storage_size, status);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_GetFetchNodesList(
    const TF_GrapplerItem* item, char** values, size_t* lengths, int num_values,
    void* storage, size_t storage_size, TF_Status* status) {
  GetNames("TF_GetFetchNodesList", item->fetch_nodes, values, lengths,
           num_values, storage, storage_size, status);
}

// ---- Properties
// --------------------------------------------------------------

TFPLUG_TESTING_CORE_FUNCTION TF_GraphProperties* TF_NewGraphProperties(
    const TF_GrapplerItem* item) {
  if (GraphCallFails("TF_NewGraphProperties", nullptr)) return nullptr;
  return new TF_GraphProperties(item);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_DeleteGraphProperties(
    TF_GraphProperties* properties) {
  delete properties;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_InferStatically(
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
  std::string shape, out;
  if (!property.shape.has_rank()) {
    internal::AppendField(shape, 3, uint64_t{1});
  } else {
    for (int64_t size : property.shape.shape().dims()) {
      std::string dim;
      internal::AppendField(dim, 1, static_cast<uint64_t>(size));
      internal::AppendField(shape, 2, dim);
    }
  }
  internal::AppendField(out, 1, static_cast<uint64_t>(property.dtype));
  internal::AppendField(out, 2, shape);
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

TFPLUG_TESTING_CORE_FUNCTION void TF_GetInputPropertiesListSize(
    TF_GraphProperties* properties, const char* name, int* num_values,
    TF_Status* status) {
  if (GraphCallFails("TF_GetInputPropertiesListSize", status)) return;
  *num_values = static_cast<int>(
      PropertiesOf(properties, properties->item->inputs, name).size());
}
TFPLUG_TESTING_CORE_FUNCTION void TF_GetInputPropertiesList(
    TF_GraphProperties* properties, const char* name, TF_Buffer** buffers,
    int num_values, TF_Status* status) {
  GetProperties("TF_GetInputPropertiesList",
                PropertiesOf(properties, properties->item->inputs, name),
                /*with_values=*/false, buffers, num_values, status);
}
TFPLUG_TESTING_CORE_FUNCTION void TF_GetOutputPropertiesListSize(
    TF_GraphProperties* properties, const char* name, int* num_values,
    TF_Status* status) {
  if (GraphCallFails("TF_GetOutputPropertiesListSize", status)) return;
  *num_values = static_cast<int>(
      PropertiesOf(properties, properties->item->outputs, name).size());
}
TFPLUG_TESTING_CORE_FUNCTION void TF_GetOutputPropertiesList(
    TF_GraphProperties* properties, const char* name, TF_Buffer** buffers,
    int num_values, TF_Status* status) {
  GetProperties("TF_GetOutputPropertiesList",
                PropertiesOf(properties, properties->item->outputs, name),
                properties->has_output_values, buffers, num_values, status);
}

// ---- Ops and functions
// -------------------------------------------------------

TFPLUG_TESTING_CORE_FUNCTION TF_FunctionLibraryDefinition*
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
TFPLUG_TESTING_CORE_FUNCTION void TF_DeleteFunctionLibraryDefinition(
    TF_FunctionLibraryDefinition* library) {
  delete library;
}
TFPLUG_TESTING_CORE_FUNCTION void TF_LookUpOpDef(
    TF_FunctionLibraryDefinition* library, const char* name, TF_Buffer* buffer,
    TF_Status* status) {
  if (GraphCallFails("TF_LookUpOpDef", status)) return;
  for (const auto* ops : {&library->op_defs, &KnownOpDefs()}) {
    if (auto it = ops->find(name); it != ops->end()) {
      return FillBuffer(buffer, it->second);
    }
  }
  TF_SetStatus(status, capi::TF_NOT_FOUND,
               (std::string("Op type not registered '") + name + "'").c_str());
}

inline void InstallGraphFunctions(capi::Functions& core) {
#define TFPLUG_TESTING_INSTALL(name) core.name = &name
  TFPLUG_TESTING_INSTALL(TF_GetNodesToPreserveListSize);
  TFPLUG_TESTING_INSTALL(TF_GetNodesToPreserveList);
  TFPLUG_TESTING_INSTALL(TF_GetFetchNodesListSize);
  TFPLUG_TESTING_INSTALL(TF_GetFetchNodesList);
  TFPLUG_TESTING_INSTALL(TF_NewGraphProperties);
  TFPLUG_TESTING_INSTALL(TF_DeleteGraphProperties);
  TFPLUG_TESTING_INSTALL(TF_InferStatically);
  TFPLUG_TESTING_INSTALL(TF_GetInputPropertiesListSize);
  TFPLUG_TESTING_INSTALL(TF_GetInputPropertiesList);
  TFPLUG_TESTING_INSTALL(TF_GetOutputPropertiesListSize);
  TFPLUG_TESTING_INSTALL(TF_GetOutputPropertiesList);
  TFPLUG_TESTING_INSTALL(TF_NewFunctionLibraryDefinition);
  TFPLUG_TESTING_INSTALL(TF_DeleteFunctionLibraryDefinition);
  TFPLUG_TESTING_INSTALL(TF_LookUpOpDef);
#undef TFPLUG_TESTING_INSTALL
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTING_FAKE_GRAPH_H_
