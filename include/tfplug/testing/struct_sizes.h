// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_STRUCT_SIZES_H_
#define TFPLUG_TESTING_STRUCT_SIZES_H_

#include <cstddef>
#include <initializer_list>

#include "tfplug/abi/abi.h"
#include "tfplug/testing/release.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// Returns the struct_size that TensorFlow `release` passes with a `Struct`; 0
// if it has no such struct.
template <class Struct>
size_t StructSizeIn(Release release) {
  for (const capi::Layout& layout : capi::StructInfo<Struct>::kLayouts) {
    const bool is_gone =
        *layout.last != '\0' && ParseRelease(layout.last) < release;
    if (!(release < ParseRelease(layout.first)) && !is_gone) return layout.size;
  }
  return 0;
}

// The sizes of all structs that TensorFlow passes to a plug-in, initially those
// of a release. Tests may change them to imitate a release that does not exist.
struct StructSizes {
  StructSizes(Release release)  // NOLINT(google-explicit-constructor)
      : release(release),
        registration_params(
            StructSizeIn<capi::SE_PlatformRegistrationParams>(release)),
        platform(StructSizeIn<capi::SP_Platform>(release)),
        platform_fns(StructSizeIn<capi::SP_PlatformFns>(release)),
        device_fns_params(
            StructSizeIn<capi::SE_CreateDeviceFnsParams>(release)),
        device_fns(StructSizeIn<capi::SP_DeviceFns>(release)),
        stream_executor_params(
            StructSizeIn<capi::SE_CreateStreamExecutorParams>(release)),
        stream_executor(StructSizeIn<capi::SP_StreamExecutor>(release)),
        timer_fns(StructSizeIn<capi::SP_TimerFns>(release)),
        device_params(StructSizeIn<capi::SE_CreateDeviceParams>(release)),
        device(StructSizeIn<capi::SP_Device>(release)),
        device_memory(StructSizeIn<capi::SP_DeviceMemoryBase>(release)),
        allocator_stats(StructSizeIn<capi::SP_AllocatorStats>(release)),
        stream_options(StructSizeIn<capi::SP_StreamOptions>(release)),
        optimizer_params(
            StructSizeIn<capi::TP_OptimizerRegistrationParams>(release)),
        optimizer(StructSizeIn<capi::TP_Optimizer>(release)),
        optimizer_configs(StructSizeIn<capi::TP_OptimizerConfigs>(release)),
        profiler_params(
            StructSizeIn<capi::TF_ProfilerRegistrationParams>(release)),
        profiler(StructSizeIn<capi::TP_Profiler>(release)),
        profiler_fns(StructSizeIn<capi::TP_ProfilerFns>(release)) {}

  // Adds bytes to each struct that the release has.
  void Enlarge(size_t bytes) {
    for (size_t* const size :
         {&registration_params, &platform, &platform_fns, &device_fns_params,
          &device_fns, &stream_executor_params, &stream_executor, &timer_fns,
          &device_params, &device, &device_memory, &allocator_stats,
          &stream_options, &optimizer_params, &optimizer, &optimizer_configs,
          &profiler_params, &profiler, &profiler_fns}) {
      if (*size != 0) *size += bytes;
    }
  }

  // Tells apart the releases whose structs have the same size.
  Release release;
  size_t registration_params;
  size_t platform;
  size_t platform_fns;
  size_t device_fns_params;
  size_t device_fns;
  size_t stream_executor_params;
  size_t stream_executor;
  size_t timer_fns;
  size_t device_params;
  size_t device;
  size_t device_memory;
  size_t allocator_stats;
  size_t stream_options;
  size_t optimizer_params;
  size_t optimizer;
  size_t optimizer_configs;
  size_t profiler_params;
  size_t profiler;
  size_t profiler_fns;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_STRUCT_SIZES_H_
