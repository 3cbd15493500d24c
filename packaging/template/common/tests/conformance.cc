// Checks the device and its backend without TensorFlow.
#include "tfplug/testing/conformance.h"

#include <cstdio>

#include "backend.h"
#include "tfplug/testing/backend_conformance.h"
#include "tfplug/testing/fake_device_functions.h"
#include "tfplug/testing/host.h"

namespace testing = tfplug::testing;

extern "C" void SE_InitPlugin(tfplug::capi::SE_PlatformRegistrationParams*,
                              tfplug::capi::TF_Status*);

namespace {

int failures = 0;

// Prints what is checked before its result: it may crash.
template <class CheckT>
void Check(const char* what, CheckT check) {
  std::printf("%s: ", what);
  std::fflush(stdout);
  const absl::Status status = check();
  std::printf("%s\n", status.ToString().c_str());
  if (!status.ok()) ++failures;
}

}  // namespace

int main() {
  // A test of kernels or passes needs all of fake_tensorflow.h.
  testing::ScopedFakeDeviceFunctions tensorflow;
  auto host = testing::Host::Register(&SE_InitPlugin);
  Check("registration", [&] { return host.status(); });
  if (!host.ok()) return 1;
  if ((*host)->DeviceCount().value_or(0) == 0) {
    std::printf("This machine has no device; the line above has the reason.\n");
    return 77;  // "skipped"
  }
  testing::FakeDevice& device = *(*host)->Device(0).value();
  Check("device", [&] {
    return testing::CheckDevice(device, {/*seed=*/1, /*seconds=*/2});
  });
  my_device::Backend backend;
  testing::BackendConformanceOptions options;
  // TODO: once, seconds = 60 and without most_seconds, which takes minutes if
  // kernels are compiled. Then let `tfplug op-sweep` judge all kernels.
  options.seconds = 2;
  options.most_seconds = 30;
  Check("backend",
        [&] { return testing::CheckBackend(backend, device, options); });
  return failures;
}
