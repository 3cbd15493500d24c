// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_STATUS_H_
#define TFPLUG_BASE_STATUS_H_

#include <memory>
#include <string>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/abseil_version.h"
#include "tfplug/base/internal/tensorflow.h"

#pragma GCC visibility push(hidden)

// Conversions between absl::Status and TF_Status. Both use the codes of
// google.rpc.Code, so that codes need no translation.
namespace tfplug {

// Writes `status` to `*to`: the code, the message and, where TF_SetPayload
// exists (since 2.7), the payloads. TensorFlow takes a payload as a C string,
// so a payload with a NUL byte is omitted.
inline void SetStatus(capi::TF_Status* to, const absl::Status& status) {
  const auto& tensorflow = internal::tensorflow;
  tensorflow.TF_SetStatus(to, static_cast<capi::TF_Code>(status.code()),
                          std::string(status.message()).c_str());
  if (status.ok() || tensorflow.TF_SetPayload == nullptr) return;
  status.ForEachPayload([&](absl::string_view key, const absl::Cord& value) {
    const std::string text(value);
    if (text.find('\0') != std::string::npos) return;
    tensorflow.TF_SetPayload(to, std::string(key).c_str(), text.c_str());
  });
}

namespace internal {

[[gnu::cold, gnu::noinline]] inline absl::Status ReadFailure(
    const capi::TF_Status* from, capi::TF_Code code) {
  absl::Status status(static_cast<absl::StatusCode>(code),
                      tensorflow.TF_Message(from));
  if (tensorflow.TF_ForEachPayload != nullptr) {
    tensorflow.TF_ForEachPayload(
        from,
        [](const char* key, const char* value, void* to) {
          static_cast<absl::Status*>(to)->SetPayload(key, absl::Cord(value));
        },
        &status);
  }
  return status;
}

}  // namespace internal

// Converts `*from`, including its payloads where TF_ForEachPayload exists
// (since 2.14).
inline absl::Status ToStatus(const capi::TF_Status* from) {
  const capi::TF_Code code = internal::tensorflow.TF_GetCode(from);
  if (ABSL_PREDICT_TRUE(code == capi::TF_OK)) return absl::OkStatus();
  return internal::ReadFailure(from, code);
}

// Owns a TF_Status, for calls into TensorFlow.
class OwnedStatus {
 public:
  OwnedStatus() : OwnedStatus(internal::tensorflow.TF_NewStatus()) {}
  explicit OwnedStatus(capi::TF_Status* status) : status_(status) {}
  OwnedStatus(const OwnedStatus&) = delete;
  OwnedStatus& operator=(const OwnedStatus&) = delete;
  ~OwnedStatus() { internal::tensorflow.TF_DeleteStatus(status_); }

  capi::TF_Status* get() const { return status_; }
  bool ok() const {
    return internal::tensorflow.TF_GetCode(status_) == capi::TF_OK;
  }
  absl::Status ToStatus() const { return tfplug::ToStatus(status_); }

 private:
  capi::TF_Status* const status_;
};

// Returns the status for `error`, a value of errno, with TensorFlow's code for
// it and `context` before the message: IoError(errno, "weights.bin"). Requires
// TensorFlow to be loaded.
inline absl::Status IoError(int error, const std::string& context) {
  OwnedStatus status;
  internal::tensorflow.TF_SetStatusFromIOError(status.get(), error,
                                               context.c_str());
  return status.ToStatus();
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_STATUS_H_
