// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/kernel/kernel_context.h>
#include <tfplug/kernel/rendezvous.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "leak_checked_fake.h"

namespace tfplug::rendezvous_test {
namespace {

using capi::TF_OpKernelContext;
using testing::FailEachCall;
using testing::FakeRendezvous;
using testing::LeakCheckedFake;
using testing::MakeTensor;

constexpr char kDevice[] = "/job:localhost/replica:0/task:0/device:TOY:0";

RendezvousKey Key(const char* edge = "edge") {
  return RendezvousKey::Make(kDevice, kDevice, edge).value();
}

// A run with its rendezvous.
struct Run {
  FakeRendezvous exchange;
  TF_OpKernelContext c;
  KernelContext context{&c};
  Rendezvous rendezvous;

  Run()
      : rendezvous(
            (c.rendezvous = &exchange, Rendezvous::Get(context)).value()) {}
};

Tensor Floats(const std::vector<float>& values) {
  return Tensor(new capi::TF_Tensor(
      MakeTensor<float>({static_cast<int64_t>(values.size())}, values)));
}

// The arguments of a callback, and the number of calls.
struct Seen {
  int calls = 0;
  absl::Status status;
  std::vector<float> values;
  bool has_tensor = false, is_dead = false;
};

auto Into(Seen& seen) {
  return
      [&seen](const absl::Status& status, const Tensor& tensor, bool is_dead) {
        ++seen.calls;
        seen.status = status;
        seen.has_tensor = static_cast<bool>(tensor);
        seen.is_dead = is_dead;
        if (!tensor) return;
        const auto values = tensor.flat<float>();
        seen.values.assign(values.begin(), values.end());
      };
}

TEST_CASE("a key has TensorFlow's format") {
  CHECK(Key().text() ==
        std::string(kDevice) + ";0000000000000000;" + kDevice + ";edge;0:0");
  CHECK(RendezvousKey::Make(kDevice, kDevice, "e", 7, 8, 0xabc)->text() ==
        std::string(kDevice) + ";0000000000000abc;" + kDevice + ";e;7:8");
}

TEST_CASE("a key on which TensorFlow would abort is an error") {
  for (const char* device :
       {"", "TOY", "/device:TOY:0", "/job:localhost/replica:0/task:0",
        "/job:localhost/replica:0/task:0/device:TOY",
        "/job:localhost/replica:0/task:0/device:TOY:",
        "/job:localhost/replica:0/task:0/device:TOY:0;",
        "/job:localhost/replica:x/task:0/device:TOY:0",
        "/job:localhost/replica:0/task:0/device:TOY:12345678901",
        "/job:9/replica:0/task:0/device:TOY:0"}) {
    CAPTURE(device);
    for (const auto& key : {RendezvousKey::Make(device, kDevice, "edge"),
                            RendezvousKey::Make(kDevice, device, "edge")}) {
      CHECK(absl::IsInvalidArgument(key.status()));
      CHECK(key.status().message().find("is not a full device name") !=
            absl::string_view::npos);
    }
  }
  for (const char* edge : {"", ";", "a;b"}) {
    CHECK(absl::IsInvalidArgument(
        RendezvousKey::Make(kDevice, kDevice, edge).status()));
  }
}

TEST_CASE("a receive can precede or follow the send") {
  LeakCheckedFake fake;
  // These outlive the run, whose destructor calls the waiting receivers.
  Seen first, second, other;
  Run run;
  CHECK(run.rendezvous.Send(Key(), Floats({1, 2})).ok());
  run.rendezvous.RecvAsync(Key("other"), Into(other));
  run.rendezvous.RecvAsync(Key(), Into(first));
  CHECK(first.calls == 1);
  CHECK(first.status.ok());
  CHECK(first.values == std::vector<float>{1, 2});
  CHECK_FALSE(first.is_dead);
  run.rendezvous.RecvAsync(Key(), Into(second));
  CHECK(second.calls == 0);
  CHECK(run.rendezvous.Send(Key(), Floats({3}), /*is_dead=*/true).ok());
  CHECK(second.calls == 1);
  CHECK(second.values == std::vector<float>{3});
  CHECK(second.is_dead);
  CHECK(other.calls == 0);
  CHECK(first.calls == 1);
}

TEST_CASE("the buffer is shared, and a received tensor can be kept") {
  LeakCheckedFake fake;
  Run run;
  const Tensor sent = Floats({4});
  std::optional<Tensor> kept;
  CHECK(run.rendezvous.Send(Key(), sent).ok());
  run.rendezvous.RecvAsync(
      Key(), [&](const absl::Status&, const Tensor& tensor, bool) {
        CHECK(tensor.data() == sent.data());
        kept = tensor.Reshape(tensor.shape()).value();
      });
  REQUIRE(kept.has_value());
  CHECK(kept->flat<float>()[0] == 4);
}

TEST_CASE("an abort fails pending and later receives, once each") {
  LeakCheckedFake fake;
  for (const absl::Status& status :
       {absl::Status(absl::UnavailableError("gone")), absl::OkStatus()}) {
    const absl::StatusCode code =
        status.ok() ? absl::StatusCode::kAborted : status.code();
    Seen waiting, late;
    Run run;
    run.rendezvous.RecvAsync(Key(), Into(waiting));
    run.rendezvous.StartAbort(status);
    CHECK(waiting.calls == 1);
    CHECK(waiting.status.code() == code);
    CHECK_FALSE(waiting.has_tensor);
    run.rendezvous.RecvAsync(Key(), Into(late));
    CHECK(late.calls == 1);
    CHECK(late.status.code() == code);
    CHECK(run.rendezvous.Send(Key(), Floats({1})).code() == code);
    CHECK(waiting.calls == 1);
  }
}

TEST_CASE("the end of the step fails pending receives") {
  LeakCheckedFake fake;
  Seen seen;
  { Run().rendezvous.RecvAsync(Key(), Into(seen)); }
  CHECK(seen.calls == 1);
  CHECK(absl::IsCancelled(seen.status));
}

TEST_CASE("an empty tensor cannot be sent") {
  LeakCheckedFake fake;
  Run run;
  CHECK(absl::IsInvalidArgument(run.rendezvous.Send(Key(), Tensor())));
}

#if defined(__cpp_exceptions)
TEST_CASE("an exception from a callback does not reach TensorFlow") {
  LeakCheckedFake fake;
  Run run;
  run.rendezvous.RecvAsync(
      Key(), [](const absl::Status&, const Tensor&, bool) -> void {
        throw std::runtime_error("thrown");
      });
  CHECK(run.rendezvous.Send(Key(), Floats({1})).ok());
  CHECK(run.exchange.waiting() == 0);
}
#endif

TEST_CASE("a failure of any C call is returned") {
  LeakCheckedFake fake;
  FailEachCall([] {
    Seen seen;
    Run run;
    absl::Status result = run.rendezvous.Send(Key(), Floats({1}));
    run.rendezvous.RecvAsync(Key(), Into(seen));
    if (result.ok()) {
      CHECK(seen.calls == 1);
      result = seen.status;
    }
    return result;
  });
}

TEST_CASE("a run without a rendezvous, and a release without one") {
  TF_OpKernelContext c;
  {
    LeakCheckedFake fake;
    KernelContext context(&c);
    CHECK(Rendezvous::Get(context).status() ==
          absl::FailedPreconditionError("this run has no rendezvous"));
  }
  testing::FakeOptions options;
  options.release = {2, 15};
  LeakCheckedFake fake(options);
  KernelContext context(&c);
  const absl::Status status = Rendezvous::Get(context).status();
  CHECK(absl::IsUnimplemented(status));
  CHECK(
      status.message() ==
      "this TensorFlow (2.15.0) lacks TF_GetRendezvous; releases from 2.16 on "
      "have it");
}

}  // namespace
}  // namespace tfplug::rendezvous_test
