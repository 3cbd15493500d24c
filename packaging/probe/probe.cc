// SPDX-License-Identifier: Apache-2.0
// Links only with a static, position-independent Abseil that is new enough.
#ifdef NO_STATIC_ABSEIL
#error "No static Abseil was found."
#endif

#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

#ifdef HAS_COMPILED_LIBRARY
extern "C" void TF_InitKernel() {}  // A file of the plug-in itself has it.
#endif

extern "C" __attribute__((visibility("default"))) bool SE_InitPlugin(int i) {
  absl::Status status = absl::InternalError(absl::StrCat(i));
  status.SetPayload("key", absl::Cord("value"));
  return absl::StatusOr<int>(status).ok();
}
