// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include <pthread.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace opencl {

Driver cl;

namespace {

// Not an error code of OpenCL.
constexpr cl_int kForked = -10000;

template <class... Args>
void FailAlways(cl_int (*&function)(Args...)) {
  function = [](Args...) -> cl_int { return kForked; };
}
// Functions that create objects need no thread of the driver.
template <class Object, class... Args>
void FailAlways(Object* (*&)(Args...)) {}

// Runs in a forked child, which has none of the driver's threads: most calls
// would wait for one forever.
void FailInForkedChild() {
#define OPENCL_FAIL(name) FailAlways(cl.name);
  OPENCL_FUNCTIONS(OPENCL_FAIL)
#undef OPENCL_FAIL
}

}  // namespace

absl::Status ToError(cl_int code, const char* function) {
  if (code == kForked) {
    return absl::FailedPreconditionError(absl::StrCat(
        function,
        ": the process was forked after OpenCL was used, and the child has no "
        "threads of the driver; use the device in the child only (for example "
        "with the multiprocessing start method \"spawn\")"));
  }
  const std::string text =
      absl::StrCat(function, " returned OpenCL's error ", code);
  const bool is_full =
      code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
      code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE;
  return is_full ? absl::ResourceExhaustedError(text)
                 : absl::InternalError(text);
}

absl::Status Submitted(absl::Status status, cl_command_queue queue) {
  return status.ok() ? OPENCL_CALL(clFlush, queue) : status;
}

std::string GetText(cl_device_id device, cl_device_info property) {
  return ReadText([&](size_t size, char* text, size_t* text_size) {
    cl.clGetDeviceInfo(device, property, size, text, text_size);
  });
}

namespace {

// Loads the drivers that OpenCL's loader will load. The loader would bind their
// symbols to those of TensorFlow, which exports LLVM; LoadDriver does not.
void LoadVendors() {
  const char* const folder = std::getenv("OCL_ICD_VENDORS");
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(
           folder != nullptr ? folder : "/etc/OpenCL/vendors", error)) {
    std::ifstream file(entry.path());
    std::string library;
    if (std::getline(file, library)) {
      // A driver that cannot be loaded has no devices.
      tfplug::LoadDriver({library}).status().IgnoreError();
    }
  }
}

}  // namespace

absl::Status Driver::Load() {
  LoadVendors();
  tfplug::DriverOptions options;
  options.remedy =
      "install OpenCL's loader and a driver (Debian: ocl-icd-libopencl1, and "
      "for CPUs pocl-opencl-icd)";
  TFPLUG_ASSIGN_OR_RETURN(
      const tfplug::Driver library,
      tfplug::LoadDriver({"libOpenCL.so.1", "libOpenCL.so"}, options));
#define OPENCL_LOAD(name) TFPLUG_RETURN_IF_ERROR(library.Get(#name, &name));
  OPENCL_FUNCTIONS(OPENCL_LOAD)
#undef OPENCL_LOAD
  pthread_atfork(nullptr, nullptr, &FailInForkedChild);
  cl_platform_id platforms[16];
  cl_uint count = 0;
  if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS) count = 0;
  for (cl_uint i = 0; i < count && i < 16; ++i) {
    cl_device_id found[16];
    cl_uint n = 0;
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 16, found, &n) ==
        CL_SUCCESS) {
      devices.insert(devices.end(), found, found + (n < 16 ? n : 16));
    }
  }
  return absl::OkStatus();
}

}  // namespace opencl
