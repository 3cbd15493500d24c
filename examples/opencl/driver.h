// SPDX-License-Identifier: Apache-2.0
#ifndef OPENCL_DRIVER_H_
#define OPENCL_DRIVER_H_

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <tfplug/base/load_driver.h>
#include <tfplug/base/status_macros.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

// OpenCL, loaded at run time.
namespace opencl {

// clang-format off
#define OPENCL_FUNCTIONS(F) \
  F(clGetPlatformIDs) F(clGetDeviceIDs) F(clGetDeviceInfo) F(clCreateContext) \
  F(clReleaseContext) F(clCreateCommandQueue) F(clReleaseCommandQueue) \
  F(clCreateBuffer) F(clReleaseMemObject) F(clCreateProgramWithSource) \
  F(clCreateProgramWithBinary) F(clBuildProgram) F(clGetProgramBuildInfo) \
  F(clGetProgramInfo) F(clReleaseProgram) F(clCreateKernel) \
  F(clReleaseKernel) F(clSetKernelArg) F(clEnqueueNDRangeKernel) \
  F(clEnqueueReadBuffer) F(clEnqueueWriteBuffer) F(clEnqueueCopyBuffer) \
  F(clEnqueueFillBuffer) F(clEnqueueMarkerWithWaitList) \
  F(clEnqueueBarrierWithWaitList) F(clCreateUserEvent) \
  F(clSetUserEventStatus) F(clSetEventCallback) F(clGetEventInfo) \
  F(clWaitForEvents) F(clReleaseEvent) F(clRetainEvent) F(clFlush) \
  F(clFinish)
// clang-format on

struct Driver {
#define OPENCL_MEMBER(name) decltype(&::name) name;
  OPENCL_FUNCTIONS(OPENCL_MEMBER)
#undef OPENCL_MEMBER

  std::vector<cl_device_id> devices;  // of all platforms

  absl::Status Load();
};
extern Driver cl;

// Returns the status of an OpenCL error code.
absl::Status ToStatus(cl_int code, const char* function);

// Calls cl.function(arguments...) and returns its error.
#define OPENCL_CALL(function, ...) \
  ::opencl::ToStatus(::opencl::cl.function(__VA_ARGS__), #function)

// Returns a property of a device.
template <class T>
T GetInfo(cl_device_id device, cl_device_info property) {
  T value = {};
  cl.clGetDeviceInfo(device, property, sizeof(value), &value, nullptr);
  return value;
}
std::string GetText(cl_device_id device, cl_device_info property);

// Owns an object of OpenCL.
template <class T, cl_int (CL_API_CALL* Driver::*release)(T)>
class Owned {
 public:
  explicit Owned(T object = nullptr) : object_(object) {}
  Owned(Owned&& other) noexcept : object_(other.object_) {
    other.object_ = nullptr;
  }
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owned() {
    if (object_ != nullptr) (cl.*release)(object_);
  }
  T get() const { return object_; }

 private:
  T object_;
};
using Context = Owned<cl_context, &Driver::clReleaseContext>;
using Queue = Owned<cl_command_queue, &Driver::clReleaseCommandQueue>;
using ClProgram = Owned<cl_program, &Driver::clReleaseProgram>;
using ClKernel = Owned<cl_kernel, &Driver::clReleaseKernel>;
using ClEvent = Owned<cl_event, &Driver::clReleaseEvent>;

}  // namespace opencl

#endif  // OPENCL_DRIVER_H_
