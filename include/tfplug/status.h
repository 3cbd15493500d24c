// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_STATUS_H_
#define TFPLUG_STATUS_H_

#include <memory>
#include <string>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "tfplug/internal/core.h"

// absl::Status <-> TF_Status. The code numbers of both are those of
// google.rpc.Code, so a code crosses as it is.
namespace tfplug {

// Writes `status` into `*to`: code, message and, where this core has
// TF_SetPayload (since 2.7), payloads. TensorFlow takes a payload as a C
// string, so one that holds a NUL byte cannot cross and is left out.
inline void SetStatus(abi::TF_Status* to, const absl::Status& status) {
  const auto& core = internal::core;
  core.TF_SetStatus(to, static_cast<abi::TF_Code>(status.code()),
                    std::string(status.message()).c_str());
  if (status.ok() || core.TF_SetPayload == nullptr) return;
  status.ForEachPayload([&](absl::string_view key, const absl::Cord& value) {
    const std::string text(value);
    if (text.find('\0') != std::string::npos) return;
    core.TF_SetPayload(to, std::string(key).c_str(), text.c_str());
  });
}

namespace internal {

[[gnu::cold, gnu::noinline]] inline absl::Status ReadFailure(
    const abi::TF_Status* from, abi::TF_Code code) {
  absl::Status status(static_cast<absl::StatusCode>(code),
                      core.TF_Message(from));
  if (core.TF_ForEachPayload != nullptr) {
    core.TF_ForEachPayload(
        from,
        [](const char* key, const char* value, void* to) {
          static_cast<absl::Status*>(to)->SetPayload(key, absl::Cord(value));
        },
        &status);
  }
  return status;
}

}  // namespace internal

// Reads `*from`, with payloads where this core has TF_ForEachPayload (2.14).
inline absl::Status ToStatus(const abi::TF_Status* from) {
  const abi::TF_Code code = internal::core.TF_GetCode(from);
  if (ABSL_PREDICT_TRUE(code == abi::TF_OK)) return absl::OkStatus();
  return internal::ReadFailure(from, code);
}

// A TF_Status of our own, for calls into core.
class OwnedStatus {
 public:
  OwnedStatus() : OwnedStatus(internal::core.TF_NewStatus()) {}
  explicit OwnedStatus(abi::TF_Status* status) : status_(status) {}
  OwnedStatus(const OwnedStatus&) = delete;
  OwnedStatus& operator=(const OwnedStatus&) = delete;
  ~OwnedStatus() { internal::core.TF_DeleteStatus(status_); }

  abi::TF_Status* get() const { return status_; }
  bool ok() const { return internal::core.TF_GetCode(status_) == abi::TF_OK; }
  absl::Status ToStatus() const { return tfplug::ToStatus(status_); }

 private:
  abi::TF_Status* const status_;
};

}  // namespace tfplug

#endif  // TFPLUG_STATUS_H_
