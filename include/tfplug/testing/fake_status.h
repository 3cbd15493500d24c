// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_STATUS_H_
#define TFPLUG_TESTING_FAKE_STATUS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "tfplug/abi/functions.h"

// Core's functions in this directory bear their C names and have C linkage, so
// one definition serves linked tests, which take its address, and plug-ins
// loaded with dlopen, which look the name up. They are visible to the latter
// only in a program that is compiled with TFPLUG_TESTING_EXPORT_C_API defined
// (in every file) and linked with -rdynamic.
#ifdef TFPLUG_TESTING_EXPORT_C_API
#define TFPLUG_TESTING_CORE_FUNCTION \
  extern "C" __attribute__((visibility("default"))) inline
#else
#define TFPLUG_TESTING_CORE_FUNCTION \
  extern "C" __attribute__((visibility("hidden"))) inline
#endif

namespace tfplug::capi {

// The stand-in's TF_Status. It counts itself, so that tests see leaks.
struct TF_Status {
  TF_Status() { ++live; }
  TF_Status(const TF_Status&) = delete;
  TF_Status& operator=(const TF_Status&) = delete;
  ~TF_Status() { --live; }

  TF_Code code = TF_OK;
  std::string message;
  std::map<std::string, std::string> payloads;

  static inline std::atomic<int64_t> live{0};
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_Code;
using capi::TF_Status;

// How many TF_Status exist in the process: the same before and after a test.
inline int64_t LiveStatusCount() { return TF_Status::live; }

TFPLUG_TESTING_CORE_FUNCTION TF_Status* TF_NewStatus() { return new TF_Status; }

TFPLUG_TESTING_CORE_FUNCTION void TF_DeleteStatus(TF_Status* status) {
  delete status;
}

// As core does: setting drops message and payloads of before, OK has neither,
// and a code that core does not know becomes UNKNOWN.
TFPLUG_TESTING_CORE_FUNCTION void TF_SetStatus(TF_Status* status, TF_Code code,
                                               const char* message) {
  const int number = static_cast<int>(code);
  status->code = number < 0 || number > 16 ? capi::TF_UNKNOWN : code;
  status->message = code == capi::TF_OK ? "" : message;
  status->payloads.clear();
}

TFPLUG_TESTING_CORE_FUNCTION TF_Code TF_GetCode(const TF_Status* status) {
  return status->code;
}

TFPLUG_TESTING_CORE_FUNCTION const char* TF_Message(const TF_Status* status) {
  return status->message.c_str();
}

TFPLUG_TESTING_CORE_FUNCTION void TF_SetPayload(TF_Status* status,
                                                const char* key,
                                                const char* value) {
  if (status->code != capi::TF_OK) status->payloads[key] = value;
}

TFPLUG_TESTING_CORE_FUNCTION void TF_ForEachPayload(
    const TF_Status* status, capi::TF_PayloadVisitor visitor, void* capture) {
  for (const auto& [key, value] : status->payloads) {
    visitor(key.c_str(), value.c_str(), capture);
  }
}

inline void InstallStatusFunctions(capi::Functions& core) {
  core.TF_NewStatus = &TF_NewStatus;
  core.TF_DeleteStatus = &TF_DeleteStatus;
  core.TF_SetStatus = &TF_SetStatus;
  core.TF_GetCode = &TF_GetCode;
  core.TF_Message = &TF_Message;
  core.TF_SetPayload = &TF_SetPayload;
  core.TF_ForEachPayload = &TF_ForEachPayload;
}

// What the stand-in itself reads and writes, whatever functions the core that
// it plays has.
inline absl::Status FromCore(const TF_Status& status) {
  absl::Status result(static_cast<absl::StatusCode>(status.code),
                      status.message);
  for (const auto& [key, value] : status.payloads) {
    result.SetPayload(key, absl::Cord(value));
  }
  return result;
}

inline void ToCore(const absl::Status& from, TF_Status* to) {
  TF_SetStatus(to, static_cast<TF_Code>(from.code()),
               std::string(from.message()).c_str());
  from.ForEachPayload([&](absl::string_view key, const absl::Cord& value) {
    TF_SetPayload(to, std::string(key).c_str(), std::string(value).c_str());
  });
}

// Calls `function` with a new TF_Status as its last argument, and returns what
// it has become.
template <class Function, class... Arguments>
absl::Status CallWithStatus(Function function, Arguments&&... arguments) {
  TF_Status status;
  function(std::forward<Arguments>(arguments)..., &status);
  return FromCore(status);
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTING_FAKE_STATUS_H_
