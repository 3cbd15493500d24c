// SPDX-License-Identifier: Apache-2.0
#ifndef OPENCL_DRIVER_H_
#define OPENCL_DRIVER_H_

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <tfplug/base/load_driver.h>
#include <tfplug/base/status_macros.h>

#include <memory>
#include <string>
#include <type_traits>
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
  F(clGetEventProfilingInfo) F(clWaitForEvents) F(clReleaseEvent) F(clFlush) \
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
absl::Status ToError(cl_int code, const char* function);
inline absl::Status ToStatus(cl_int code, const char* function) {
  return code == CL_SUCCESS ? absl::OkStatus() : ToError(code, function);
}

// Calls cl.function(arguments...) and returns its error.
#define OPENCL_CALL(function, ...) \
  ::opencl::ToStatus(::opencl::cl.function(__VA_ARGS__), #function)

// Calls an enqueuing function that waits for no events, and lets the device
// begin.
#define OPENCL_ENQUEUE(function, queue, ...)                                \
  ::opencl::Submitted(OPENCL_CALL(function, queue, __VA_ARGS__, 0, nullptr, \
                                  ::opencl::Timer::NextEvent()),            \
                      queue)
absl::Status Submitted(absl::Status status, cl_command_queue queue);

// Returns a property of a device.
template <class T>
T GetInfo(cl_device_id device, cl_device_info property) {
  T value = {};
  cl.clGetDeviceInfo(device, property, sizeof(value), &value, nullptr);
  return value;
}
std::string GetText(cl_device_id device, cl_device_info property);

// Returns the text that get(size, text, size of the text) writes.
template <class Get>
std::string ReadText(Get get) {
  size_t size = 0;
  get(0, nullptr, &size);
  std::string text(size, '\0');
  get(size, &text[0], nullptr);
  return text.substr(0, text.find('\0'));
}

// Creates an object with cl.function(arguments..., &error).
#define OPENCL_CREATE(owner, function, ...)                      \
  do {                                                           \
    cl_int code;                                                 \
    (owner).reset(::opencl::cl.function(__VA_ARGS__, &code));    \
    TFPLUG_RETURN_IF_ERROR(::opencl::ToStatus(code, #function)); \
  } while (false)

// Owns an object of OpenCL.
template <class T, auto Driver::*release>
struct Release {
  void operator()(T object) const { (cl.*release)(object); }
};
template <class T, auto Driver::*release>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, Release<T, release>>;
using Buffer = Owned<cl_mem, &Driver::clReleaseMemObject>;
using Context = Owned<cl_context, &Driver::clReleaseContext>;
using Queue = Owned<cl_command_queue, &Driver::clReleaseCommandQueue>;
using ProgramObject = Owned<cl_program, &Driver::clReleaseProgram>;
using KernelObject = Owned<cl_kernel, &Driver::clReleaseKernel>;
using EventObject = Owned<cl_event, &Driver::clReleaseEvent>;

}  // namespace opencl

#endif  // OPENCL_DRIVER_H_
