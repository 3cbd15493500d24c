// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/kernel/async_kernel.h>
#include <tfplug/kernel/register_kernel.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "leak_checked_fake.h"

namespace tfplug::async_kernel_test {
namespace {

using capi::TF_OpKernelContext;
using testing::LeakCheckedFake;

std::function<absl::Status(AsyncRun&)> on_compute;
int open_launches = 0;  // of the profile

class Scripted : public AsyncKernel {
 public:
  absl::Status ComputeAsync(AsyncRun& run) override { return on_compute(run); }
};
using Table = Scripted::TableOf<Scripted>;

// The result of one run, as TensorFlow receives it.
struct Seen {
  absl::Status status;
  int done_calls = 0;
  // At the time of the done callback:
  int deferred_ops = -1;
  int open_launches = -1;
};

// Runs the kernel as TensorFlow does. `after` is called next, before the result
// is read.
Seen Run(
    std::function<absl::Status(AsyncRun&)> compute,
    std::function<void()> after = [] {}) {
  on_compute = std::move(compute);
  capi::TF_OpKernelConstruction node = {};
  void* const kernel = Table::create_func(&node);
  auto context = std::make_unique<TF_OpKernelContext>();
  Seen seen;
  std::atomic<int> calls{0};
  testing::CallAsync(
      [&] {
        ++calls;
        seen.status = context->failure;
        seen.deferred_ops = context->deferred_ops;
        seen.open_launches = open_launches;
        context.reset();  // TensorFlow may destroy it in the callback
      },
      [&](capi::TF_AsyncOpKernelDoneCallback* done) {
        Table::compute_async_func(kernel, context.get(), done);
      });
  after();
  seen.done_calls = calls;
  Table::delete_func(kernel);
  return seen;
}

TEST_CASE("a run is finished when ComputeAsync returns") {
  LeakCheckedFake fake;
  Seen seen = Run([](AsyncRun&) { return absl::OkStatus(); });
  CHECK(seen.done_calls == 1);
  CHECK(seen.status == absl::OkStatus());
  seen = Run([](AsyncRun&) { return absl::AbortedError("no"); });
  CHECK(seen.done_calls == 1);
  CHECK(seen.status == absl::AbortedError("node 'node': no"));
  seen = Run([](AsyncRun& run) {
    run.Finish(absl::UnavailableError("inside"));
    CHECK(!run);
    run.Finish(absl::OkStatus());
    return absl::OkStatus();
  });
  CHECK(seen.done_calls == 1);
  CHECK(absl::IsUnavailable(seen.status));
}

TEST_CASE("a profile's launch ends before TensorFlow's done callback") {
  LeakCheckedFake fake;
  internal::ProfilingFunctions recorder = {};
  recorder.begin_launch = [](internal::LaunchRecord&) { ++open_launches; };
  recorder.end_launch = [](internal::LaunchRecord&, const char*,
                           absl::string_view, int64_t) { --open_launches; };
  internal::profiling = {~uintptr_t{0}, &recorder};
  const Seen seen = Run([](AsyncRun& run) {
    CHECK(open_launches == 1);
    run.Finish(absl::OkStatus());
    return absl::OkStatus();
  });
  internal::profiling = {};
  CHECK(seen.done_calls == 1);
  CHECK(seen.open_launches == 0);
}

TEST_CASE("a run of a kernel that was not constructed fails, once") {
  LeakCheckedFake fake;
  TF_OpKernelContext context;
  int calls = 0;
  testing::CallAsync([&] { ++calls; },
                     [&](capi::TF_AsyncOpKernelDoneCallback* done) {
                       Table::compute_async_func(nullptr, &context, done);
                     });
  CHECK(calls == 1);
  CHECK(context.failure.message().find("construct") != std::string::npos);
  TF_OpKernelContext blocking;
  Table::compute_func(nullptr, &blocking);
  CHECK(blocking.failure == context.failure);
}

#if defined(__cpp_exceptions)
TEST_CASE("an exception fails the run, once") {
  LeakCheckedFake fake;
  Seen seen = Run(
      [](AsyncRun&) -> absl::Status { throw std::runtime_error("thrown"); });
  CHECK(seen.done_calls == 1);
  CHECK(seen.status ==
        absl::InternalError("node 'node': C++ exception: thrown"));
  seen = Run([](AsyncRun& run) -> absl::Status {
    const AsyncRun mine = std::move(run);
    throw std::runtime_error("thrown");
  });
  CHECK(seen.done_calls == 1);
  CHECK(absl::IsInternal(seen.status));
}
#endif

TEST_CASE("a run is finished later, on another thread") {
  testing::Release release = {2, 21};
  SUBCASE("2.21 destroys its callback") {}
  SUBCASE("2.22 leaves its callback to the run") { release = {2, 22}; }
  LeakCheckedFake fake({release, {}});
  for (const absl::Status& result :
       {absl::OkStatus(), absl::AbortedError("later")}) {
    std::unique_ptr<AsyncRun> kept;
    const Seen seen = Run(
        [&](AsyncRun& run) {
          kept = std::make_unique<AsyncRun>(std::move(run));
          return absl::OkStatus();
        },
        [&] {
          std::thread([&] {
            CHECK(kept->context().num_inputs() == 0);
            kept->Finish(result);
            kept->Finish(absl::InternalError("twice"));
          }).join();
        });
    CHECK(seen.done_calls == 1);
    CHECK(seen.status.code() == result.code());
  }
}

TEST_CASE("a run is passed to a callback as a void pointer") {
  LeakCheckedFake fake;
  void* released = nullptr;
  const Seen seen = Run(
      [&](AsyncRun& run) {
        released = run.Release();
        CHECK(!run);
        return absl::OkStatus();
      },
      [&] { AsyncRun::Adopt(released).Finish(absl::AbortedError("later")); });
  CHECK(seen.done_calls == 1);
  CHECK(seen.status == absl::AbortedError("node 'node': later"));
}

TEST_CASE("a destroyed run fails, before and after the hook returns") {
  LeakCheckedFake fake;
  Seen seen = Run([](AsyncRun& run) {
    const AsyncRun dropped = std::move(run);
    return absl::OkStatus();
  });
  CHECK(seen.done_calls == 1);
  CHECK(absl::IsInternal(seen.status));
  std::unique_ptr<AsyncRun> kept;
  seen = Run(
      [&](AsyncRun& run) {
        kept = std::make_unique<AsyncRun>(std::move(run));
        return absl::OkStatus();
      },
      [&] { kept.reset(); });
  CHECK(seen.done_calls == 1);
  CHECK(seen.status.message().find("without calling Finish") !=
        absl::string_view::npos);
}

TEST_CASE("the context is destroyed before TensorFlow is notified") {
  LeakCheckedFake fake;
  std::unique_ptr<AsyncRun> kept;
  for (bool later : {false, true}) {
    const Seen seen = Run(
        [&](AsyncRun& run) {
          const absl::Status deferred = run.context().BeginDeferredOp();
          if (later) kept = std::make_unique<AsyncRun>(std::move(run));
          return deferred;
        },
        [&] {
          if (later) kept->Finish(absl::OkStatus());
        });
    CHECK(seen.done_calls == 1);
    CHECK(seen.status.ok());
    CHECK(seen.deferred_ops == 0);
  }
}

TEST_CASE("finishing races with the return of the hook") {
  LeakCheckedFake fake;
  for (int i = 0; i < 300; ++i) {
    std::thread thread;
    const Seen seen = Run(
        [&](AsyncRun& run) {
          thread = std::thread([mine = std::move(run)]() mutable {
            mine.Finish(absl::AbortedError("raced"));
          });
          return absl::OkStatus();
        },
        [&] { thread.join(); });
    CHECK(seen.done_calls == 1);
    CHECK(absl::IsAborted(seen.status));
  }
}

TEST_CASE("an error after the run was moved away is logged") {
  LeakCheckedFake fake({{2, 20}, {}});
  testing::LogCapture log;
  std::unique_ptr<AsyncRun> kept;
  const Seen seen = Run(
      [&](AsyncRun& run) {
        kept = std::make_unique<AsyncRun>(std::move(run));
        return absl::InternalError("too late");
      },
      [&] { kept->Finish(absl::OkStatus()); });
  CHECK(seen.status.ok());
  CHECK(log.text().find("too late") != std::string::npos);
}

// Checks that the call waits for the end of the run where TensorFlow's callback
// cannot be copied.
void CheckWaits(const testing::FakeOptions& options, bool has_callback) {
  LeakCheckedFake fake(options);
  on_compute = [](AsyncRun& run) {
    std::thread([mine = std::move(run)]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      mine.Finish(absl::AbortedError("waited"));
    }).detach();
    return absl::OkStatus();
  };
  capi::TF_OpKernelConstruction node = {};
  void* const kernel = Table::create_func(&node);
  TF_OpKernelContext context;
  int calls = 0;
  if (has_callback) {
    testing::CallAsync([&] { ++calls; },
                       [&](capi::TF_AsyncOpKernelDoneCallback* done) {
                         Table::compute_async_func(kernel, &context, done);
                       });
    CHECK(calls == 1);
  } else {
    Table::compute_func(kernel, &context);
  }
  CHECK(absl::IsAborted(context.failure));
  Table::delete_func(kernel);
}

TEST_CASE("the done callback is kept or copied only in examined releases") {
  using kernel_internal::DoneCallback;
  for (const char* version : {"2.13.0", "2.21.0", "2.9.1"}) {
    CHECK(kernel_internal::DoneCallbackOf(internal::ParseRelease(version)) ==
          DoneCallback::kCopy);
  }
  for (const char* version : {"2.22.0", "2.22.0-rc0", "2.23.0-dev20261026"}) {
    CHECK(kernel_internal::DoneCallbackOf(internal::ParseRelease(version)) ==
          DoneCallback::kKeep);
  }
  for (const char* version :
       {"2.24.0", "2.100.0", "3.0.0", "1.15.0", "", "2"}) {
    CHECK(kernel_internal::DoneCallbackOf(internal::ParseRelease(version)) ==
          DoneCallback::kWait);
  }
}

TEST_CASE("releases before 2.13: TensorFlow's thread waits") {
  CheckWaits({{2, 12}, {}}, false);
}

TEST_CASE("releases that are not examined: TensorFlow's thread waits") {
  CheckWaits({{2, 99}, {}}, true);
}

}  // namespace
}  // namespace tfplug::async_kernel_test
