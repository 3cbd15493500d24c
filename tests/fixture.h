// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_FIXTURE_H_
#define TFPLUG_TESTS_FIXTURE_H_

#include <doctest/doctest.h>
#include <tfplug/plugin.h>
#include <tfplug/testing.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "print_lines.h"

namespace tfplug {

// A platform that is registered with the fake of TensorFlow, and its device 0.
// The destructor checks that the plug-in made no mistake and leaked no
// TF_Status. The fake is TensorFlow 2.18, which has TF_Log, so tests can read
// the log.
template <class PlatformT>
class Fixture {
 public:
  explicit Fixture(const testing::HostOptions& options = {})
      : live_before_(testing::LiveStatusCount()), tensorflow_(WithLog()) {
    auto host = testing::Host::Register(
        &device_internal::PlatformRegistration<PlatformT>::InitPlugin, options);
    REQUIRE_MESSAGE(host.ok(), host.status().ToString());
    host_ = *std::move(host);
    auto device = host_->Device(0);
    REQUIRE_MESSAGE(device.ok(), device.status().ToString());
    device_ = *device;
  }
  ~Fixture() {
    if (host_ != nullptr) {
      const absl::Status problems = host_->Problems();
      CHECK_MESSAGE(problems.ok(), problems.ToString());
    }
    host_.reset();
    CHECK(testing::LiveStatusCount() == live_before_);
  }

  testing::Host& host() { return *host_; }
  testing::FakeDevice& device() { return *device_; }
  testing::FakeStream& stream() { return device_->compute(); }
  testing::LogCapture& log() { return log_; }

  static testing::FakeOptions WithLog() {
    testing::FakeOptions options;
    options.release = {2, 18};
    return options;
  }

 private:
  const int64_t live_before_;
  testing::ScopedFakeTensorFlow tensorflow_;
  testing::LogCapture log_;
  std::unique_ptr<testing::Host> host_;
  testing::FakeDevice* device_ = nullptr;
};

}  // namespace tfplug

#endif  // TFPLUG_TESTS_FIXTURE_H_
