// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/status.h>
#include <tfplug/testing.h>

#include <cerrno>
#include <map>
#include <string>

#include "absl/strings/cord.h"

namespace tfplug::status_test {
namespace {

using testing::FakeOptions;
using testing::LiveStatusCount;
using testing::ScopedFakeTensorFlow;

absl::Status WithPayloads() {
  absl::Status status = absl::UnavailableError("link down");
  status.SetPayload("type.example/a", absl::Cord("alpha"));
  status.SetPayload("type.example/nul", absl::Cord(std::string("a\0b", 3)));
  status.SetPayload("type.example/empty", absl::Cord(""));
  return status;
}

TEST_CASE("SetStatus and ToStatus preserve every code and message") {
  ScopedFakeTensorFlow fake;
  for (int code = 0; code <= 16; ++code) {
    CAPTURE(code);
    const absl::Status in(static_cast<absl::StatusCode>(code), "text");
    capi::TF_Status c;
    SetStatus(&c, in);
    CHECK(static_cast<int>(c.code) == code);
    CHECK(c.message == (code == 0 ? "" : "text"));
    CHECK(ToStatus(&c) == in);
  }
}

TEST_CASE("SetStatus: OK removes an earlier error") {
  ScopedFakeTensorFlow fake;
  capi::TF_Status c;
  SetStatus(&c, WithPayloads());
  SetStatus(&c, absl::OkStatus());
  CHECK(c.code == capi::TF_OK);
  CHECK(c.message.empty());
  CHECK(c.payloads.empty());
}

TEST_CASE("SetStatus: an unknown code becomes UNKNOWN") {
  ScopedFakeTensorFlow fake;
  capi::TF_Status c;
  SetStatus(&c, absl::Status(static_cast<absl::StatusCode>(99), "odd"));
  CHECK(c.code == capi::TF_UNKNOWN);
  CHECK(c.message == "odd");
}

TEST_CASE("SetStatus: a message ends at its first NUL byte") {
  ScopedFakeTensorFlow fake;
  capi::TF_Status c;
  SetStatus(&c, absl::InternalError(absl::string_view("ab\0cd", 5)));
  CHECK(c.message == "ab");
}

TEST_CASE("payloads are copied, except those with a NUL byte") {
  ScopedFakeTensorFlow fake;
  capi::TF_Status c;
  SetStatus(&c, WithPayloads());
  CHECK(c.payloads ==
        std::map<std::string, std::string>{{"type.example/a", "alpha"},
                                           {"type.example/empty", ""}});
  const absl::Status out = ToStatus(&c);
  CHECK(out.message() == "link down");
  CHECK(out.GetPayload("type.example/a") == absl::Cord("alpha"));
  CHECK(out.GetPayload("type.example/empty") == absl::Cord(""));
  CHECK_FALSE(out.GetPayload("type.example/nul").has_value());
}

TEST_CASE("payloads are dropped where TensorFlow lacks the functions") {
  capi::TF_Status c;
  {
    FakeOptions options;
    options.release = {2, 6};  // neither TF_SetPayload nor TF_ForEachPayload
    ScopedFakeTensorFlow fake(options);
    SetStatus(&c, WithPayloads());
    CHECK(c.code == capi::TF_UNAVAILABLE);
    CHECK(c.payloads.empty());
  }
  {
    FakeOptions options;
    options.release = {2, 12};  // TF_SetPayload only
    ScopedFakeTensorFlow fake(options);
    SetStatus(&c, WithPayloads());
    CHECK(c.payloads.size() == 2);
    const absl::Status out = ToStatus(&c);
    CHECK(out.code() == absl::StatusCode::kUnavailable);
    CHECK_FALSE(out.GetPayload("type.example/a").has_value());
  }
}

TEST_CASE("OwnedStatus deletes its TF_Status") {
  ScopedFakeTensorFlow fake;
  const int64_t before = LiveStatusCount();
  {
    OwnedStatus status;
    CHECK(LiveStatusCount() == before + 1);
    CHECK(status.ok());
    SetStatus(status.get(), absl::AbortedError("unchanged"));
    CHECK_FALSE(status.ok());
    CHECK(status.ToStatus() == absl::AbortedError("unchanged"));
  }
  CHECK(LiveStatusCount() == before);
}

TEST_CASE("IoError has TensorFlow's code and message") {
  ScopedFakeTensorFlow fake;
  internal::tensorflow.TF_SetStatusFromIOError =
      [](capi::TF_Status* status, int error, const char* context) {
        CHECK(error == ENOENT);
        SetStatus(status,
                  absl::NotFoundError(std::string(context) + "; No such file"));
      };
  const int64_t before = LiveStatusCount();
  CHECK(IoError(ENOENT, "weights.bin") ==
        absl::NotFoundError("weights.bin; No such file"));
  CHECK(LiveStatusCount() == before);
}

}  // namespace
}  // namespace tfplug::status_test
