// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include <tfplug/base/ask_in_child.h>

#include "absl/strings/str_cat.h"

namespace opencl {

absl::Status Driver::ToStatus(cl_int code, const char* function) const {
  const std::string text =
      absl::StrCat(function, " returned OpenCL's error ", code);
  const bool is_full =
      code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
      code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE;
  return is_full ? absl::ResourceExhaustedError(text)
                 : absl::InternalError(text);
}

absl::Status Driver::Probe() {
  const auto ask = [this]() -> absl::StatusOr<std::string> {
    TFPLUG_RETURN_IF_ERROR(Load());
    std::string answer;
    for (cl_device_id id : devices) {
      answer += GetInfo<cl_ulong>(id, CL_DEVICE_DOUBLE_FP_CONFIG) ? 'd' : 'f';
    }
    return answer;
  };
  static const auto answer = tfplug::AskInChild(ask);
  found = answer.value_or("");
  return answer.status();
}

absl::Status Driver::Load() {
  if (!devices.empty()) return absl::OkStatus();
  tfplug::LoadDriversListedIn("OCL_ICD_VENDORS", {"/etc/OpenCL/vendors"});
  TFPLUG_RETURN_IF_ERROR(
      LoadAll({"libOpenCL.so.1", "libOpenCL.so"},
              {"install OpenCL's loader and a driver (Debian: "
               "ocl-icd-libopencl1, and for CPUs pocl-opencl-icd)"}));
  cl_platform_id platforms[16];
  cl_uint count = 0;
  if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS) count = 0;
  for (cl_uint i = 0; i < count && i < 16; ++i) {
    cl_device_id found[16];
    cl_uint n = 0;  // stays so if there are none
    clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 16, found, &n);
    if (n > 16) n = 16;
    devices.insert(devices.end(), found, found + n);
    contexts.insert(
        contexts.end(), n,
        clCreateContext(nullptr, n, found, nullptr, nullptr, nullptr));
  }
  return absl::OkStatus();
}

}  // namespace opencl
