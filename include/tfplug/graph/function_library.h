// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_FUNCTION_LIBRARY_H_
#define TFPLUG_GRAPH_FUNCTION_LIBRARY_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/abi/tf_buffer.h"
#include "tfplug/base/buffer.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/internal/wire.h"
#include "tfplug/base/status.h"
#include "tfplug/graph/op_signature.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The ops of TensorFlow's registry and the functions of a graph's library,
// whose signatures TensorFlow passes with the graph. Each signature is read
// once and cached. Not thread-safe.
class FunctionLibrary {
 public:
  // `graph_def` is a serialized GraphDef, which must outlive this object.
  explicit FunctionLibrary(absl::string_view graph_def)
      : graph_def_(graph_def) {}

  // Returns the signature of an op or function, which lives as long as this
  // object. NOT_FOUND if no op or function has this name; UNIMPLEMENTED if the
  // running TensorFlow lacks the C functions.
  absl::StatusOr<const OpSignature*> GetSignature(absl::string_view op) const {
    auto it = signatures_.find(op);
    if (it == signatures_.end()) {
      std::string name(op);
      absl::StatusOr<OpSignature> signature = Read(name);
      it = signatures_.emplace(std::move(name), std::move(signature)).first;
    }
    if (!it->second.ok()) return it->second.status();
    return &*it->second;
  }

 private:
  struct Deleter {
    void operator()(capi::TF_FunctionLibraryDefinition* library) const {
      internal::tensorflow.TF_DeleteFunctionLibraryDefinition(library);
    }
  };

  // TensorFlow's table of ops, with or without the graph's functions.
  struct Table {
    std::optional<absl::Status> status;  // Construct()'s result, once called.
    std::unique_ptr<capi::TF_FunctionLibraryDefinition, Deleter> definitions;
  };

  // No function has the name of an op, so ops are looked up first in a table
  // without functions: finding the functions takes a pass over the GraphDef,
  // and TensorFlow copies them.
  absl::StatusOr<OpSignature> Read(const std::string& op) const {
    absl::StatusOr<OpSignature> signature = ReadFrom(ops_, op, false);
    if (!absl::IsNotFound(signature.status())) return signature;
    return ReadFrom(functions_, op, true);
  }
  absl::StatusOr<OpSignature> ReadFrom(Table& table, const std::string& op,
                                       bool with_functions) const {
    if (!table.status.has_value()) {
      table.status = Construct(table, with_functions);
      if (!table.status->ok()) table.definitions.reset();
    }
    if (!table.status->ok()) return *table.status;
    if (auto s = Require(&CApi::TF_LookUpOpDef); !s.ok()) return s;
    auto op_def = Buffer::New();
    if (!op_def.ok()) return op_def.status();
    const OwnedStatus status;
    internal::tensorflow.TF_LookUpOpDef(table.definitions.get(), op.c_str(),
                                        op_def->get(), status.get());
    if (!status.ok()) return status.ToStatus();
    return OpSignature::Parse(op_def->bytes());
  }

  // Passes TensorFlow a GraphDef with the graph's library but without its
  // nodes, because TensorFlow parses the whole GraphDef.
  absl::Status Construct(Table& table, bool with_functions) const {
    const auto make = &CApi::TF_NewFunctionLibraryDefinition;
    if (auto s = Require(make); !s.ok()) return s;
    std::string library;
    if (with_functions) {
      for (internal::WireReader reader(graph_def_); reader.Next();) {
        if (reader.Is(2, internal::kBytesType)) {
          internal::AppendField(library, 2, reader.bytes());
        }
      }
    }
    const capi::TF_Buffer buffer = {library.data(), library.size(), nullptr};
    const OwnedStatus status;
    table.definitions.reset(
        (internal::tensorflow.*make)(&buffer, status.get()));
    if (!status.ok()) return status.ToStatus();
    if (table.definitions == nullptr) {
      return absl::ResourceExhaustedError(
          "out of memory: TF_NewFunctionLibraryDefinition returned null");
    }
    return absl::OkStatus();
  }

  const absl::string_view graph_def_;
  mutable Table ops_, functions_;
  mutable std::map<std::string, absl::StatusOr<OpSignature>, std::less<>>
      signatures_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_FUNCTION_LIBRARY_H_
