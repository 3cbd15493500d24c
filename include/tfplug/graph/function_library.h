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

namespace tfplug {

// The ops that a graph may use: those of TensorFlow's registry, and the
// functions of the graph's library, whose signatures core hands over with it.
// Each is looked up once and kept. For one thread.
class FunctionLibrary {
 public:
  // Of a serialised GraphDef, which must outlive this object.
  explicit FunctionLibrary(absl::string_view graph_def)
      : graph_def_(graph_def) {}

  // NOT_FOUND for what is neither an op nor a function. Valid as long as this
  // object.
  absl::StatusOr<const OpSignature*> LookUp(absl::string_view op) const {
    auto it = found_.find(op);
    if (it == found_.end()) {
      std::string name(op);
      absl::StatusOr<OpSignature> signature = Ask(name);
      it = found_.emplace(std::move(name), std::move(signature)).first;
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

  // Core's, of ops with functions or without.
  struct Table {
    std::optional<absl::Status> status;  // set once it was tried
    std::unique_ptr<capi::TF_FunctionLibraryDefinition, Deleter> definitions;
  };

  // No function has the name of an op, so ops are asked for without functions:
  // these would have to be found behind all nodes, and core copies each.
  absl::StatusOr<OpSignature> Ask(const std::string& op) const {
    absl::StatusOr<OpSignature> signature = AskIn(ops_, op, false);
    if (!absl::IsNotFound(signature.status())) return signature;
    return AskIn(functions_, op, true);
  }
  absl::StatusOr<OpSignature> AskIn(Table& table, const std::string& op,
                                    bool with_functions) const {
    if (!table.status.has_value()) {
      table.status = Make(table, with_functions);
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

  // Core parses what it is given, so it is given the library of the graph
  // without the nodes.
  absl::Status Make(Table& table, bool with_functions) const {
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
      return absl::ResourceExhaustedError("core made no function library");
    }
    return absl::OkStatus();
  }

  const absl::string_view graph_def_;
  mutable Table ops_, functions_;
  mutable std::map<std::string, absl::StatusOr<OpSignature>, std::less<>>
      found_;
};

}  // namespace tfplug

#endif  // TFPLUG_GRAPH_FUNCTION_LIBRARY_H_
