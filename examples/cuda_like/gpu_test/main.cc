// SPDX-License-Identifier: Apache-2.0
// Checks the plug-in and measures it on the driver of this machine, without
// TensorFlow: tools/gpu-test. With an argument, the seconds of each check.
#include <tfplug/testing.h>
#include <tfplug/testing/backend_conformance.h>
#include <tfplug/testing/conformance.h>

#include <cstdio>
#include <cstdlib>

#include "backend.h"
#include "generated_kernels.h"
#include "graphs.h"
#include "products.h"

extern "C" void SE_InitPlugin(tfplug::capi::SE_PlatformRegistrationParams*,
                              tfplug::capi::TF_Status*);

namespace {

bool Report(const char* name, const absl::Status& status) {
  std::printf("%s: %s\n", name, status.ok() ? "passed" : "FAILED");
  if (!status.ok()) std::printf("%s\n", status.ToString().c_str());
  std::fflush(stdout);
  return status.ok();
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  tfplug::testing::ScopedFakeTensorFlow tensorflow;
  auto host = tfplug::testing::Host::Register(&SE_InitPlugin);
  if (!Report("Registration", host.status())) return 1;
  const int count = (*host)->DeviceCount().value_or(0);
  if (count == 0) {
    std::printf("There is no device; the line above has the reason.\n");
    return 1;
  }
  bool passed = true;
  bool has_blas = false;
  cuda_like::Backend kernels(false), with_blas;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    auto device = (*host)->Device(ordinal);
    if (!Report("Creation", device.status())) return 1;
    auto& stream = *static_cast<cuda_like::Stream*>(
        static_cast<void*>((*device)->compute().handle()));
    std::printf("Device %d: %s\n", ordinal,
                kernels.Programs(stream).target().name.c_str());
    tfplug::testing::BackendConformanceOptions options;
    options.seconds = seconds;
    passed &= Report("Conformance of the device",
                     tfplug::testing::CheckDevice(**device, options));
    passed &= Report("Conformance of the backend",
                     tfplug::testing::CheckBackend(kernels, **device, options));
    const absl::Status& blas = stream.device().blas().loaded();
    has_blas = blas.ok();
    if (has_blas) {
      passed &=
          Report("Conformance of the backend with cuBLAS",
                 tfplug::testing::CheckBackend(with_blas, **device, options));
    } else {
      std::printf("No cuBLAS: %s\n", blas.ToString().c_str());
    }
  }
  tfplug::testing::FakeDevice& first = *(*host)->Device(0).value();
  passed &=
      Report("Benchmarks", benchmarks::GeneratedKernels(kernels, first).Run());
  passed &= Report("Graphs", cuda_like::CompareGraphs(kernels, first));
  if (has_blas) {
    passed &= Report("Products by cuBLAS",
                     cuda_like::CompareProducts(kernels, with_blas, first));
  }
  passed &= Report("Problems", (*host)->Problems());
  return passed ? 0 : 1;
}
