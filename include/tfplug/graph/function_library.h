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
#include "tfplug/buffer.h"
#include "tfplug/capability.h"
#include "tfplug/graph/op_signature.h"
#include "tfplug/internal/core.h"
#include "tfplug/internal/wire.h"
#include "tfplug/status.h"

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
    void operator()(abi::TF_FunctionLibraryDefinition* library) const {
      internal::core.TF_DeleteFunctionLibraryDefinition(library);
    }
  };

  absl::StatusOr<OpSignature> Ask(const std::string& op) const {
    if (!status_.has_value()) {
      status_ = Make();
      if (!status_->ok()) library_.reset();
    }
    if (!status_->ok()) return *status_;
    if (auto s = Require(&CApi::TF_LookUpOpDef); !s.ok()) return s;
    auto op_def = Buffer::New();
    if (!op_def.ok()) return op_def.status();
    const OwnedStatus status;
    internal::core.TF_LookUpOpDef(library_.get(), op.c_str(), op_def->get(),
                                  status.get());
    if (!status.ok()) return status.ToStatus();
    return OpSignature::Parse(op_def->bytes());
  }

  // Core parses and copies what it is given, so it is given the library of the
  // graph without the nodes.
  absl::Status Make() const {
    const auto make = &CApi::TF_NewFunctionLibraryDefinition;
    if (auto s = Require(make); !s.ok()) return s;
    std::string library;
    for (internal::WireReader reader(graph_def_); reader.Next();) {
      if (reader.Is(2, internal::kBytesType)) {
        internal::AppendField(library, 2, reader.bytes());
      }
    }
    const abi::TF_Buffer buffer = {library.data(), library.size(), nullptr};
    const OwnedStatus status;
    library_.reset((internal::core.*make)(&buffer, status.get()));
    if (!status.ok()) return status.ToStatus();
    if (library_ == nullptr) {
      return absl::ResourceExhaustedError("core made no function library");
    }
    return absl::OkStatus();
  }

  const absl::string_view graph_def_;
  mutable std::optional<absl::Status> status_;  // set once it was tried
  mutable std::unique_ptr<abi::TF_FunctionLibraryDefinition, Deleter> library_;
  mutable std::map<std::string, absl::StatusOr<OpSignature>, std::less<>>
      found_;
};

}  // namespace tfplug

#endif  // TFPLUG_GRAPH_FUNCTION_LIBRARY_H_
