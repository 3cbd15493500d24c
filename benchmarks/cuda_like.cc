// SPDX-License-Identifier: Apache-2.0
// Launches a kernel with examples/cuda_like and by hand, for Callgrind:
// functions measured_flat, measured_views and measured_by_hand. See
// benchmarks/opencl.py.
//
//   cuda_like launches   on the driver that CUDA_LIKE_DRIVER names
//   cuda_like stub       on a driver that returns at once
#include <cstdio>
#include <cstring>
#include <string>

#include "backend.h"
#include "launches.h"

extern "C" void SE_InitPlugin(tfplug::capi::SE_PlatformRegistrationParams*,
                              tfplug::capi::TF_Status*);

namespace {

using namespace cuda_like;  // NOLINT: CUDA's types
using benchmarks::Replace;

// The last argument of the kernel: its size and two constants.
struct Parameters {
  uint64_t words[3];
};

// A launch as the driver sees it, to repeat it by hand.
struct {
  CUfunction kernel;
  unsigned groups, group_size;
  Parameters parameters;
  CUcontext context;
} seen;

CUresult KeepLaunch(CUfunction kernel, unsigned groups, unsigned, unsigned,
                    unsigned group_size, unsigned, unsigned, unsigned, CUstream,
                    void** arguments, void**) {
  seen.kernel = kernel;
  seen.groups = groups;
  seen.group_size = group_size;
  std::memcpy(&seen.parameters, arguments[4], sizeof(seen.parameters));
  return CUDA_SUCCESS;
}
CUresult IgnoreLaunch(CUfunction, unsigned, unsigned, unsigned, unsigned,
                      unsigned, unsigned, unsigned, CUstream, void**, void**) {
  return CUDA_SUCCESS;
}
CUresult KeepContext(CUcontext context) {
  seen.context = context;
  return CUDA_SUCCESS;
}
CUresult IgnoreContext(CUcontext) { return CUDA_SUCCESS; }

// Launches the kernel as an author without tfplug would.
[[gnu::noinline]] absl::Status measured_by_hand(
    const Stream& stream, absl::Span<void* const> addresses) {
  const Driver& driver = stream.device().driver();
  for (int i = 0; i < benchmarks::kLaunches; ++i) {
    Parameters parameters = seen.parameters;
    void* arguments[5];
    for (size_t k = 0; k < 4; ++k) {
      arguments[k] = const_cast<void**>(&addresses[k]);
    }
    arguments[4] = &parameters;
    CUresult code = driver.cuCtxSetCurrent(seen.context);
    if (code == CUDA_SUCCESS) {
      code = driver.cuLaunchKernel(seen.kernel, seen.groups, 1u, 1u,
                                   seen.group_size, 1u, 1u, 0u, stream.handle(),
                                   arguments, nullptr);
    }
    if (code != CUDA_SUCCESS) return driver.Check(code, "launch");
  }
  return absl::OkStatus();
}

absl::Status Run(bool on_stub) {
  tfplug::testing::ScopedFakeTensorFlow tensorflow;
  auto host = tfplug::testing::Host::Register(&SE_InitPlugin);
  if (!host.ok()) return host.status();
  TFPLUG_ASSIGN_OR_RETURN(auto* const device, (*host)->Device(0));
  auto& stream =
      *static_cast<Stream*>(static_cast<void*>(device->compute().handle()));
  Backend backend;
  benchmarks::Memories memory(*device);
  benchmarks::SumLaunches sum(backend, stream, memory);
  TFPLUG_RETURN_IF_ERROR(sum.Init());

  // Only for this: the plug-in does not change its table of functions.
  auto& driver = const_cast<Driver&>(stream.device().driver());
  void* const context = Replace(driver.cuCtxSetCurrent, &KeepContext);
  void* const launch = Replace(driver.cuLaunchKernel, &KeepLaunch);
  TFPLUG_RETURN_IF_ERROR(sum.MapFlat());
  if (on_stub) {
    Replace(driver.cuCtxSetCurrent, &IgnoreContext);
    Replace(driver.cuLaunchKernel, &IgnoreLaunch);
  } else {
    driver.cuCtxSetCurrent.address = context;
    driver.cuLaunchKernel.address = launch;
  }
  TFPLUG_RETURN_IF_ERROR(sum.measured_flat());
  TFPLUG_RETURN_IF_ERROR(sum.measured_views());
  TFPLUG_RETURN_IF_ERROR(measured_by_hand(stream, sum.addresses()));
  driver.cuCtxSetCurrent.address = context;
  driver.cuLaunchKernel.address = launch;
  return device->compute().BlockHostUntilDone();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Run(argc > 1 && argv[1] == std::string("stub"));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
