// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_CUDA_LIKE_PLUGIN_H_
#define TFPLUG_TESTS_CUDA_LIKE_PLUGIN_H_

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <tfplug/testing.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "cuda_like.h"
#include "fixture.h"
#include "runtime/fault.h"

extern "C" void SE_InitPlugin(tfplug::capi::SE_PlatformRegistrationParams*,
                              tfplug::capi::TF_Status*);

// The plug-in on the emulated driver, whose calls can be made to fail.
namespace cuda_like_test {

using cpu_sim::rt::FaultControl;
using tfplug::testing::FakeDevice;

// Memory that this program shares with the emulated driver, which reads it
// before each call.
inline FaultControl& SharedFault() {
  static FaultControl* const shared = [] {
    const int file = memfd_create("fault", 0);
    REQUIRE(file >= 0);
    REQUIRE(ftruncate(file, sizeof(FaultControl)) == 0);
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    setenv("CUDA_LIKE_FAULT_FILE", path.c_str(), 1);
    void* const page = mmap(nullptr, sizeof(FaultControl),
                            PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    REQUIRE(page != MAP_FAILED);
    return static_cast<FaultControl*>(page);
  }();
  return *shared;
}

// Makes the next call of a function of the driver fail; "device": the next work
// on a stream.
inline void Inject(const char* function, cpu_sim::rt::FaultKind kind =
                                             cpu_sim::rt::FaultKind::kError) {
  FaultControl& fault = SharedFault();
  fault.kind = kind;
  fault.after = 0;
  fault.times = 1;
  std::strcpy(fault.hook, function);
  fault.armed.store(1, std::memory_order_release);
}

class Plugin {
 public:
  Plugin() : tensorflow_(tfplug::Fixture<cuda_like::Platform>::WithLog()) {
    SharedFault();
    auto host = tfplug::testing::Host::Register(&SE_InitPlugin);
    REQUIRE_MESSAGE(host.ok(), host.status().ToString());
    host_ = *std::move(host);
  }
  ~Plugin() {
    const absl::Status problems = host_->Problems();
    CHECK_MESSAGE(problems.ok(), problems.ToString());
  }

  int count() { return host_->DeviceCount().value(); }
  FakeDevice& device(int ordinal) {
    auto device = host_->Device(ordinal);
    REQUIRE_MESSAGE(device.ok(), device.status().ToString());
    return **device;
  }
  std::string log() const { return log_.text(); }

 private:
  tfplug::testing::ScopedFakeTensorFlow tensorflow_;
  tfplug::testing::LogCapture log_;
  std::unique_ptr<tfplug::testing::Host> host_;
};

}  // namespace cuda_like_test

#endif  // TFPLUG_TESTS_CUDA_LIKE_PLUGIN_H_
