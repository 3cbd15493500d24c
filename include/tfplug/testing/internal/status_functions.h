// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_STATUS_FUNCTIONS_H_
#define TFPLUG_TESTING_INTERNAL_STATUS_FUNCTIONS_H_

#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "tfplug/testing/internal/fake_function.h"

#pragma GCC visibility push(hidden)

namespace tfplug::capi {

struct TF_Status : testing::Counted<TF_Status> {
  TF_Status() = default;
  TF_Status(const TF_Status&) = delete;
  TF_Status& operator=(const TF_Status&) = delete;

  TF_Code code = TF_OK;
  std::string message;
  std::map<std::string, std::string> payloads;
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_Code;
using capi::TF_Status;

TFPLUG_FAKE_FUNCTION TF_Status* TF_NewStatus() { return new TF_Status; }
TFPLUG_FAKE_FUNCTION void TF_DeleteStatus(TF_Status* status) { delete status; }

// Discards the previous message and payloads. OK has neither, and a code that
// TensorFlow does not have becomes UNKNOWN.
TFPLUG_FAKE_FUNCTION void TF_SetStatus(TF_Status* status, TF_Code code,
                                       const char* message) {
  const int value = static_cast<int>(code);
  status->code = value < 0 || value > 16 ? capi::TF_UNKNOWN : code;
  status->message = code == capi::TF_OK ? "" : message;
  status->payloads.clear();
}
TFPLUG_FAKE_FUNCTION TF_Code TF_GetCode(const TF_Status* status) {
  return status->code;
}
TFPLUG_FAKE_FUNCTION const char* TF_Message(const TF_Status* status) {
  return status->message.c_str();
}
TFPLUG_FAKE_FUNCTION void TF_SetPayload(TF_Status* status, const char* key,
                                        const char* value) {
  if (status->code != capi::TF_OK) status->payloads[key] = value;
}
TFPLUG_FAKE_FUNCTION void TF_ForEachPayload(const TF_Status* status,
                                            capi::TF_PayloadVisitor visitor,
                                            void* capture) {
  for (const auto& [key, value] : status->payloads) {
    visitor(key.c_str(), value.c_str(), capture);
  }
}

inline void InstallStatusFunctions(capi::Functions& functions) {
  TFPLUG_FAKE_INSTALL(TF_NewStatus);
  TFPLUG_FAKE_INSTALL(TF_DeleteStatus);
  TFPLUG_FAKE_INSTALL(TF_SetStatus);
  TFPLUG_FAKE_INSTALL(TF_GetCode);
  TFPLUG_FAKE_INSTALL(TF_Message);
  TFPLUG_FAKE_INSTALL(TF_SetPayload);
  TFPLUG_FAKE_INSTALL(TF_ForEachPayload);
}

inline void SetOk(TF_Status* status) { TF_SetStatus(status, capi::TF_OK, ""); }

// Convert statuses inside the fake, with all payloads, even if the imitated
// release has no payloads.
inline absl::Status ReadStatus(const TF_Status& status) {
  absl::Status result(static_cast<absl::StatusCode>(status.code),
                      status.message);
  for (const auto& [key, value] : status.payloads) {
    result.SetPayload(key, absl::Cord(value));
  }
  return result;
}
inline void WriteStatus(const absl::Status& from, TF_Status* to) {
  TF_SetStatus(to, static_cast<TF_Code>(from.code()),
               std::string(from.message()).c_str());
  from.ForEachPayload([&](absl::string_view key, const absl::Cord& value) {
    TF_SetPayload(to, std::string(key).c_str(), std::string(value).c_str());
  });
}

// Calls `function` with a new TF_Status as its last argument and returns the
// result.
template <class Function, class... Arguments>
absl::Status CallWithStatus(Function function, Arguments&&... arguments) {
  TF_Status status;
  function(std::forward<Arguments>(arguments)..., &status);
  return ReadStatus(status);
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_STATUS_FUNCTIONS_H_
