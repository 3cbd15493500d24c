// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/io_error.h>

#include <cerrno>

namespace {

TEST_CASE("an errno is what core makes of it") {
  using tfplug::capi::TF_Status;
  static TF_Status* const kStatus = reinterpret_cast<TF_Status*>(&errno);
  auto& core = tfplug::internal::tensorflow;
  const auto before = core;
  static bool deleted;
  deleted = false;
  core.TF_NewStatus = [] { return kStatus; };
  core.TF_DeleteStatus = [](TF_Status*) { deleted = true; };
  core.TF_GetCode = [](const TF_Status*) { return tfplug::capi::TF_NOT_FOUND; };
  core.TF_Message = [](const TF_Status*) {
    return "weights.bin; No such file";
  };
  core.TF_ForEachPayload = nullptr;
  core.TF_SetStatusFromIOError = [](TF_Status* status, int error,
                                    const char* context) {
    CHECK(status == kStatus);
    CHECK(error == ENOENT);
    CHECK(context == std::string("weights.bin"));
  };
  CHECK(tfplug::IoError(ENOENT, "weights.bin") ==
        absl::NotFoundError("weights.bin; No such file"));
  CHECK(deleted);
  core = before;
}

}  // namespace
