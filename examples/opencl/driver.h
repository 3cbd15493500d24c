// SPDX-License-Identifier: Apache-2.0
#ifndef OPENCL_DRIVER_H_
#define OPENCL_DRIVER_H_

#define CL_TARGET_OPENCL_VERSION 120
#define CL_ENABLE_BETA_EXTENSIONS  // cl_khr_command_buffer
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <tfplug/base/driver_table.h>
#include <tfplug/base/status_macros.h>

#include <string>
#include <vector>

// OpenCL, loaded at run time.
namespace opencl {

class Driver final : public tfplug::DriverTable<cl_int> {
  absl::Status ToStatus(cl_int code, const char* function) const override;

 public:
  // Finds the devices. Returns for each d if it has doubles, or f.
  absl::StatusOr<std::string> Load();

  std::string found;                  // the answer of Load
  std::vector<cl_device_id> devices;  // of all platforms; set by Load
  // For each device, that of all devices of its platform, which can copy to each
  // other; null if it has none. They and the vector live as long as the process.
  std::vector<cl_context>& contexts = *new std::vector<cl_context>;

#define CL(name) tfplug::DriverFunction<decltype(::name)> name{*this, #name};
  // clang-format off
  CL(clGetPlatformIDs) CL(clGetDeviceIDs) CL(clGetDeviceInfo)
  CL(clCreateContext) CL(clCreateCommandQueue)
  CL(clReleaseCommandQueue) CL(clFlush) CL(clFinish) CL(clCreateBuffer)
  CL(clReleaseMemObject) CL(clEnqueueFillBuffer) CL(clEnqueueCopyBuffer)
  CL(clEnqueueReadBuffer) CL(clEnqueueWriteBuffer) CL(clBuildProgram)
  CL(clCreateProgramWithSource) CL(clCreateProgramWithBinary)
  CL(clGetProgramInfo) CL(clGetProgramBuildInfo) CL(clReleaseProgram)
  CL(clCreateKernel) CL(clReleaseKernel) CL(clSetKernelArg)
  CL(clEnqueueNDRangeKernel) CL(clEnqueueBarrierWithWaitList)
  CL(clEnqueueMarkerWithWaitList) CL(clWaitForEvents) CL(clCreateUserEvent)
  CL(clSetUserEventStatus) CL(clSetEventCallback) CL(clGetEventInfo)
  CL(clReleaseEvent) CL(clGetEventProfilingInfo)
  CL(clGetExtensionFunctionAddressForPlatform)
  // clang-format on
#undef CL
};
inline Driver cl;

template <class Handle, auto release>
using Owned = tfplug::OwnedHandle<Handle, cl, release>;
using Queue = Owned<cl_command_queue, &Driver::clReleaseCommandQueue>;
using Buffer = Owned<cl_mem, &Driver::clReleaseMemObject>;
using ProgramObject = Owned<cl_program, &Driver::clReleaseProgram>;
using KernelObject = Owned<cl_kernel, &Driver::clReleaseKernel>;
using EventObject = Owned<cl_event, &Driver::clReleaseEvent>;

// Creates an object with function(arguments..., &error).
template <class Object, class Function, class... Arguments>
absl::Status Create(Object& object, const Function& function,
                    Arguments... arguments) {
  cl_int code;
  object.reset(function(arguments..., &code));
  return cl.Check(code, function.name);
}

// Returns a property of an object: a number or an array of numbers.
template <class T, class Function, class Object, class Property>
absl::StatusOr<T> Get(const Function& function, Object object,
                      Property property) {
  T value = {};
  TFPLUG_RETURN_IF_ERROR(
      cl.Call(function, object, property, sizeof(value), &value, nullptr));
  return value;
}
template <class T>
T GetInfo(cl_device_id device, cl_device_info property) {
  return Get<T>(cl.clGetDeviceInfo, device, property).value_or(T{});
}

// Returns the text that function(arguments..., size, text, text's size) writes.
template <class Function, class... Arguments>
std::string GetText(const Function& function, Arguments... arguments) {
  size_t size = 0;
  function(arguments..., 0, nullptr, &size);
  std::string text(size, '\0');
  function(arguments..., size, text.data(), nullptr);
  return text.substr(0, text.find('\0'));
}

}  // namespace opencl

#endif  // OPENCL_DRIVER_H_
