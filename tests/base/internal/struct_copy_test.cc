// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/internal/struct_copy.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "fixture.h"
#include "minimal_device.h"
#include "recording_device.h"

// Loads one plug-in into fakes of every release of TensorFlow, and of releases
// with struct sizes that no release has.
namespace tfplug::struct_copy_test {
namespace {

using testing::HostOptions;
using testing::Release;
using testing::StructSizes;
using Recording = Fixture<recording::Platform>;
using Table = device_internal::StreamExecutorTable<recording::Device>;

HostOptions WithSizesOf(Release release) {
  HostOptions options;
  options.sizes = StructSizes(release);
  return options;
}

absl::Status RegistrationWith(const HostOptions& options) {
  return testing::Host::Register(&device_internal::PlatformRegistration<
                                     recording::Platform>::InitPlugin,
                                 options)
      .status();
}

TEST_CASE("the fake has the struct sizes of each release") {
  struct Expected {
    Release release;
    size_t platform, stream_executor, stream_options;
  };
  for (const Expected& expected :
       {Expected{{2, 5}, 34, 264, 0}, Expected{{2, 6}, 34, 264, 0},
        Expected{{2, 7}, 34, 288, 0}, Expected{{2, 8}, 34, 288, 0},
        Expected{{2, 9}, 35, 288, 0}, Expected{{2, 12}, 35, 288, 0},
        Expected{{2, 21}, 35, 288, 0}, Expected{{2, 22}, 35, 296, 24}}) {
    const StructSizes sizes(expected.release);
    CHECK(sizes.platform == expected.platform);
    CHECK(sizes.stream_executor == expected.stream_executor);
    CHECK(sizes.stream_options == expected.stream_options);
    CHECK(sizes.registration_params == 64);
    CHECK(sizes.platform_fns == 88);
    CHECK(sizes.device == 56);
    CHECK(sizes.allocator_stats == 96);
  }
}

TEST_CASE("the plug-in runs in every release") {
  for (uint8_t minor = 5; minor <= 22; ++minor) {
    CAPTURE(int{minor});
    Recording fixture(WithSizesOf({2, minor}));
    CHECK(fixture.host().platform().struct_size == (minor < 9 ? 34 : 35));
    CHECK(fixture.host().stream_executor().struct_size == (minor < 7 ? 264u
                                                           : minor < 22
                                                               ? 288u
                                                               : 296u));
    CHECK(fixture.stream().BlockHostUntilDone().ok());
    CHECK(fixture.stream().RunOnHost([] { return absl::OkStatus(); }).ok());
    CHECK(
        fixture.stream().MemZero(DeviceMemory(), 8).code() ==
        (minor < 7 ? absl::StatusCode::kUnimplemented : absl::StatusCode::kOk));
  }
}

TEST_CASE("the layout of 2.5 is filled by name: host_callback moved") {
  testing::ScopedFakeTensorFlow tensorflow;
  testing::WithCanary<capi::SP_StreamExecutor> theirs(264);
  CHECK(internal::FillStruct(theirs.get(), Table::Make()).ok());
  CHECK(theirs.intact());
  capi::SP_StreamExecutor_2_5 old;
  std::memcpy(&old, theirs.get(), sizeof(old));
  CHECK(old.struct_size == 264);
  CHECK((old.allocate == &Table::allocate));
  CHECK((old.synchronize_all_activity == &Table::synchronize_all_activity));
  CHECK((old.host_callback == &Table::host_callback));
}

TEST_CASE("later layouts are filled from the front") {
  for (size_t size : {288, 296}) {
    CAPTURE(size);
    testing::WithCanary<capi::SP_StreamExecutor> theirs(size);
    CHECK(internal::FillStruct(theirs.get(), Table::Make()).ok());
    CHECK(theirs.intact());
    CHECK(theirs->struct_size == size);
    const capi::SP_StreamExecutor fields = theirs.Read();
    CHECK((fields.mem_zero == &Table::mem_zero));
    CHECK((fields.memset32 == &Table::memset32));
    CHECK((fields.host_callback == &Table::host_callback));
    CHECK((fields.create_stream_with_options ==
           &Table::create_stream_with_options) == (size == 296));
  }
}

TEST_CASE("a size between two layouts selects the smaller one") {
  for (size_t size : {265, 280, 287, 289, 295}) {
    CAPTURE(size);
    testing::WithCanary<capi::SP_StreamExecutor> theirs(size);
    CHECK(internal::FillStruct(theirs.get(), Table::Make()).ok());
    CHECK(theirs.intact());
    CHECK(theirs->struct_size == (size < 288 ? 264 : 288));
    CHECK((theirs.Read().host_callback == &Table::host_callback));
  }
}

TEST_CASE("in larger structs of a future release, known fields are filled") {
  HostOptions options;
  options.sizes.registration_params = 100;
  options.sizes.platform = 60;
  options.sizes.platform_fns = 128;
  options.sizes.device_fns_params = 32;
  options.sizes.device_fns = 64;
  options.sizes.stream_executor_params = 64;
  options.sizes.stream_executor = 512;
  options.sizes.timer_fns = 40;
  options.sizes.device_params = 64;
  options.sizes.device = 100;
  options.sizes.device_memory = 64;
  options.sizes.allocator_stats = 128;
  options.sizes.stream_options = 64;
  Recording fixture(options);
  CHECK(fixture.host().platform().struct_size == 35);
  CHECK(fixture.host().stream_executor().struct_size == 296);
  CHECK(fixture.device().Stats().has_value());
  CHECK(fixture.device().CreateStream(StreamOptions()).ok());
  CHECK_FALSE(fixture.device().Allocate(8).is_null());
}

TEST_CASE("a struct smaller than in any release is rejected with the remedy") {
  testing::ScopedFakeTensorFlow tensorflow;
  struct Case {
    size_t StructSizes::*struct_size;
    size_t size;
    const char* message;
  };
  for (const Case& c : {
           Case{&StructSizes::stream_executor, 100,
                "create_stream_executor: this TensorFlow's SP_StreamExecutor "
                "has 100 bytes, fewer than in any release (264 in 2.5): "
                "install TensorFlow 2.5 or newer"},
           Case{&StructSizes::stream_executor, 263,
                "create_stream_executor: this TensorFlow's SP_StreamExecutor "
                "has 263 bytes, fewer than in any release (264 in 2.5): "
                "install TensorFlow 2.5 or newer"},
           Case{&StructSizes::platform, 33,
                "SE_InitPlugin: this TensorFlow's SP_Platform has 33 bytes, "
                "fewer than in any release (34 in 2.5): install TensorFlow 2.5 "
                "or newer"},
           Case{&StructSizes::registration_params, 56,
                "SE_InitPlugin: this TensorFlow's "
                "SE_PlatformRegistrationParams has 56 bytes, fewer than in any "
                "release (64 in 2.5): install TensorFlow 2.5 or newer"},
           Case{&StructSizes::platform_fns, 80,
                "SE_InitPlugin: this TensorFlow's SP_PlatformFns has 80 bytes, "
                "fewer than in any release (88 in 2.5): install TensorFlow 2.5 "
                "or newer"},
           Case{&StructSizes::device_fns_params, 16,
                "create_device_fns: this TensorFlow's SE_CreateDeviceFnsParams "
                "has 16 bytes, fewer than in any release (24 in 2.5): install "
                "TensorFlow 2.5 or newer"},
           Case{&StructSizes::device_fns, 32,
                "create_device_fns: this TensorFlow's SP_DeviceFns has 32 "
                "bytes, fewer than in any release (40 in 2.5): install "
                "TensorFlow 2.5 or newer"},
           Case{&StructSizes::stream_executor_params, 16,
                "create_stream_executor: this TensorFlow's "
                "SE_CreateStreamExecutorParams has 16 bytes, fewer than in any "
                "release (24 in 2.5): install TensorFlow 2.5 or newer"},
           Case{&StructSizes::timer_fns, 16,
                "create_timer_fns: this TensorFlow's SP_TimerFns has 16 bytes, "
                "fewer than in any release (24 in 2.5): install TensorFlow 2.5 "
                "or newer"},
       }) {
    HostOptions options;
    options.sizes.*c.struct_size = c.size;
    CHECK(RegistrationWith(options) ==
          absl::FailedPreconditionError(c.message));
  }
}

TEST_CASE("a device struct that is too small is rejected, and nothing leaks") {
  for (size_t StructSizes::*struct_size :
       {&StructSizes::device_params, &StructSizes::device}) {
    testing::ScopedFakeTensorFlow tensorflow;
    HostOptions options;
    options.sizes.*struct_size -= 8;
    auto host = testing::Host::Register(
        &device_internal::PlatformRegistration<recording::Platform>::InitPlugin,
        options);
    REQUIRE(host.ok());
    recording::Record::Get().Take();
    CHECK((*host)->Device(0).status().code() ==
          absl::StatusCode::kFailedPrecondition);
    int alive = 0;
    for (const std::string& call : recording::Record::Get().Take()) {
      alive += call[0] == '+' ? 1 : call[0] == '-' ? -1 : 0;
    }
    CHECK(alive == 0);
  }
}

}  // namespace
}  // namespace tfplug::struct_copy_test
