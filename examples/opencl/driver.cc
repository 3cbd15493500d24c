// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

namespace opencl {

absl::Status Driver::ToStatus(cl_int code, const char* function) const {
  const bool is_full =
      code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
      code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE;
  return DriverError(function, "OpenCL", code, is_full);
}

absl::StatusOr<std::string> Driver::Load() {
  if (!devices.empty()) return found;
  tfplug::LoadDriversListedIn("OCL_ICD_VENDORS", {"/etc/OpenCL/vendors"});
  TFPLUG_RETURN_IF_ERROR(
      LoadAll({"libOpenCL.so.1", "libOpenCL.so"},
              {"install OpenCL's loader and a driver (Debian: "
               "ocl-icd-libopencl1, and for CPUs pocl-opencl-icd)"}));
  cl_platform_id platforms[16];
  cl_uint count = 0;
  if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS) count = 0;
  for (cl_uint i = 0; i < count && i < 16; ++i) {
    cl_device_id ids[16];
    cl_uint n = 0;  // stays so if there are none
    clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 16, ids, &n);
    if (n > 16) n = 16;
    devices.insert(devices.end(), ids, ids + n);
    contexts.insert(
        contexts.end(), n,
        clCreateContext(nullptr, n, ids, nullptr, nullptr, nullptr));
  }
  for (cl_device_id id : devices) {
    found += GetInfo<cl_ulong>(id, CL_DEVICE_DOUBLE_FP_CONFIG) ? 'd' : 'f';
  }
  return found;
}

}  // namespace opencl
