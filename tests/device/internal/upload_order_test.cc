// SPDX-License-Identifier: Apache-2.0
#include "tfplug/device/internal/upload_order.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"

// Tests that tfplug orders the copies of constants, which TensorFlow does not
// make wait for kernels, and no other copies.
namespace tfplug::upload_order_test {
namespace {

using minimal::Trace;
using Calls = std::vector<std::string>;

// Describes the calls by the names of the streams: "h2d waits for compute". The
// streams use the default of WaitForStream, which makes two calls for each
// wait.
template <class DeviceT>
class UploadFixture : public Fixture<minimal::PlatformOf<DeviceT>> {
 public:
  UploadFixture() {
    Name("compute", this->device().compute());
    Name("h2d", this->device().host_to_device());
    Name("d2h", this->device().device_to_host());
    Name("d2d", this->device().device_to_device());
    Trace::Get().Take();
  }

  testing::FakeStream& compute() { return this->device().compute(); }
  testing::FakeStream& h2d() { return this->device().host_to_device(); }

  absl::Status Copy() {
    return h2d().CopyHostToDevice(DeviceMemory(to_, 4), from_, 4);
  }

  void Name(const char* name, const testing::FakeStream& stream) {
    names_.emplace_back(stream.handle(), name);
  }

  Calls Take() {
    Calls calls;
    const void* fence = nullptr;
    std::string recorded;
    for (const Trace::Call& call : Trace::Get().Take()) {
      if (call.hook == "RecordEvent") {
        recorded = NameOf(call.self);
        fence = call.event;
      } else if (call.hook == "WaitForEvent") {
        CHECK(call.event == fence);
        calls.push_back(NameOf(call.self) + " waits for " + recorded);
      } else if (call.hook == "Copy") {
        calls.push_back(NameOf(call.self) + " copies");
      } else {
        calls.push_back(call.hook);
      }
    }
    return calls;
  }

 private:
  std::string NameOf(const void* stream) const {
    for (const auto& [handle, name] : names_) {
      if (handle == stream) return name;
    }
    return "another";
  }

  std::vector<std::pair<const void*, std::string>> names_;
  char to_[4] = {};
  const char from_[4] = {1, 2, 3, 4};
};

using Uploads = UploadFixture<minimal::Device>;

const Calls kOrdered = {"h2d waits for compute", "h2d waits for d2h",
                        "h2d waits for d2d", "h2d copies"};

TEST_CASE_FIXTURE(Uploads, "a copy waits unless TensorFlow has ordered it") {
  CHECK(Copy().ok());
  CHECK(Take() == kOrdered);
  CHECK(Copy().ok());
  CHECK(Take() == kOrdered);
}

TEST_CASE_FIXTURE(Uploads, "a dependency orders only the next copy") {
  CHECK(h2d().WaitForStream(compute()).ok());
  CHECK(Copy().ok());
  CHECK(Take() == Calls{"h2d waits for compute", "h2d copies"});
  CHECK(Copy().ok());
  CHECK(Take() == kOrdered);
}

// TensorFlow also orders a copy of no bytes, but then only records an event.
TEST_CASE_FIXTURE(Uploads, "a dependency is valid until the next event") {
  auto event = device().CreateEvent().value();
  CHECK(h2d().WaitForStream(compute()).ok());
  CHECK(h2d().RecordEvent(*event).ok());
  Take();
  CHECK(Copy().ok());
  CHECK(Take() == kOrdered);
}

TEST_CASE_FIXTURE(Uploads, "a dependency of another stream is ignored") {
  CHECK(compute().WaitForStream(h2d()).ok());
  Take();
  CHECK(Copy().ok());
  CHECK(Take() == kOrdered);
}

TEST_CASE_FIXTURE(Uploads, "another thread's dependency is ignored") {
  std::thread([&] { CHECK(h2d().WaitForStream(compute()).ok()); }).join();
  Take();
  CHECK(Copy().ok());
  CHECK(Take() == kOrdered);
  // Another thread's copy does not consume this thread's dependency.
  CHECK(h2d().WaitForStream(compute()).ok());
  std::thread([&] { CHECK(Copy().ok()); }).join();
  Take();
  CHECK(Copy().ok());
  CHECK(Take() == Calls{"h2d copies"});
}

TEST_CASE_FIXTURE(Uploads, "a failed dependency is ignored") {
  for (const char* failing : {"RecordEvent", "WaitForEvent"}) {
    Trace::Get().fail = failing;
    CHECK_FALSE(h2d().WaitForStream(compute()).ok());
    Trace::Get().fail = "";
    Take();
    CHECK(Copy().ok());
    CHECK(Take() == kOrdered);
  }
}

TEST_CASE_FIXTURE(Uploads, "if a wait fails, so does the copy") {
  for (const char* failing : {"RecordEvent", "WaitForEvent"}) {
    Trace::Get().fail = failing;
    CHECK(Copy() ==
          absl::InternalError(std::string("memcpy_htod: ") + failing));
    Trace::Get().fail = "";
    for (const std::string& call : Take()) CHECK(call != "h2d copies");
  }
}

TEST_CASE_FIXTURE(Uploads, "after a wait that fails, the others follow") {
  Trace::Get().fail = "WaitForEvent";
  CHECK_FALSE(Copy().ok());
  Trace::Get().fail = "";
  CHECK(Take() == Calls{"h2d waits for compute", "h2d waits for d2h",
                        "h2d waits for d2d"});
}

TEST_CASE_FIXTURE(Uploads, "copies wait for existing streams only") {
  auto fifth = device().CreateStream().value();
  Name("fifth", *fifth);
  CHECK(Copy().ok());
  CHECK(Take()[3] == "h2d waits for fifth");
  fifth.reset();
  Take();
  CHECK(Copy().ok());
  CHECK(Take() == kOrdered);
}

class TwoDevices : public minimal::PlatformOf<minimal::Device> {
 public:
  absl::StatusOr<int> DeviceCount() override { return 2; }
};

TEST_CASE("copies wait for streams of the same device only") {
  Fixture<TwoDevices> fixture;
  REQUIRE(fixture.host().Device(1).ok());
  char memory[4] = {};
  Trace::Get().Take();
  CHECK(fixture.stream()
            .CopyHostToDevice(DeviceMemory(memory, 4), "abc", 4)
            .ok());
  CHECK(Trace::Get().Take().size() == 3 * 2 + 1);
}

class Immediate : public minimal::DeviceOf<minimal::Stream> {
 public:
  static constexpr bool kUploadsWaitForKernels = false;
};

TEST_CASE_FIXTURE(UploadFixture<Immediate>, "a device can turn the waits off") {
  CHECK(Copy().ok());
  CHECK(Take() == Calls{"h2d copies"});
}

TEST_CASE_FIXTURE(Uploads,
                  "copies are safe while streams are created and destroyed") {
  std::atomic<bool> done{false};
  std::thread others([&] {
    while (!done) CHECK(device().CreateStream().ok());
  });
  std::thread orders([&] {
    while (!done) CHECK(h2d().WaitForStream(compute()).ok());
  });
  for (int i = 0; i < 200; ++i) CHECK(Copy().ok());
  done = true;
  others.join();
  orders.join();
}

}  // namespace
}  // namespace tfplug::upload_order_test
