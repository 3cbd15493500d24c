// SPDX-License-Identifier: Apache-2.0
#include "tfplug/op_kernels/sync.h"

#include <doctest/doctest.h>

#include <chrono>
#include <future>

#include "fixture.h"
#include "queue_device.h"
#include "tfplug/op_kernels/register.h"
#include "tfplug/primitives/reference_backend.h"

namespace {

using Platform = minimal::PlatformOf<queue::Device>;
TFPLUG_REGISTER_DEVICE(Platform);
TFPLUG_REGISTER_BACKEND(tfplug::ReferenceBackend<queue::Stream>,
                        tfplug::SyncOps);

TEST_CASE("SyncDevice finishes after the work of its stream") {
  tfplug::Fixture<Platform> fixture;
  tfplug::testing::KernelRegistry::Get().Refill(&TF_InitKernel);
  tfplug::testing::Node node;
  node.op = "SyncDevice";
  node.name = "sync";
  auto kernel =
      tfplug::testing::FakeKernel::Create(node, fixture.host().device_type());
  REQUIRE_MESSAGE(kernel.ok(), kernel.status().ToString());
  tfplug::testing::KernelRun run(**kernel, &fixture.device());

  Flag may_go_on;
  CHECK(fixture.stream()
            .RunOnHost([&] {
              may_go_on.Wait();
              return absl::OkStatus();
            })
            .ok());
  std::promise<void> done;
  auto is_done = done.get_future();
  tfplug::testing::CallAsync(
      [&] { done.set_value(); },
      [&](tfplug::capi::TF_AsyncOpKernelDoneCallback* callback) {
        (*kernel)->builder().compute_async_func((*kernel)->object(),
                                                run.context(), callback);
      });
  CHECK(is_done.wait_for(std::chrono::seconds(0)) ==
        std::future_status::timeout);
  may_go_on.Set();
  is_done.wait();
  CHECK(run.context()->failure.ok());
}

}  // namespace
