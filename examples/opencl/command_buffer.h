// SPDX-License-Identifier: Apache-2.0
#ifndef OPENCL_COMMAND_BUFFER_H_
#define OPENCL_COMMAND_BUFFER_H_

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "opencl.h"

namespace opencl {

// The recording of a graph (tfplug::CaptureGraph): kernels that the driver
// enqueues with one call of cl_khr_command_buffer.
class CommandBuffer {
 public:
  absl::Status Begin(Stream& stream) {
    const cl_device_id id = stream.machine().id;
    const auto platform = GetInfo<cl_platform_id>(id, CL_DEVICE_PLATFORM);
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(
          cl.clGetExtensionFunctionAddressForPlatform(platform, name));
      return function != nullptr;
    };
    clCreateCommandBufferKHR_fn create;
    // A graph is enqueued again while the device still works on it.
    if ((GetInfo<cl_bitfield>(id, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR) &
         CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR) == 0 ||
        !find("clCreateCommandBufferKHR", create) ||
        !find("clReleaseCommandBufferKHR", buffer_.get_deleter()) ||
        !find("clCommandNDRangeKernelKHR", add_) ||
        !find("clFinalizeCommandBufferKHR", finalize_) ||
        !find("clEnqueueCommandBufferKHR", enqueue_)) {
      return absl::UnimplementedError(
          "the driver has no cl_khr_command_buffer with simultaneous use");
    }
    const cl_command_buffer_properties_khr properties[] = {
        CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
    const cl_command_queue queue = stream.queue();
    cl_int code;
    buffer_.reset(create(1, &queue, properties, &code));
    return cl.Check(code, "clCreateCommandBufferKHR");
  }
  // The queue runs its commands in order.
  absl::Status Add(KernelObject kernel, size_t global, size_t local) {
    kernels_.push_back(std::move(kernel));
    return cl.Check(
        add_(buffer_.get(), nullptr, nullptr, kernels_.back().get(), 1, nullptr,
             &global, &local, 0, nullptr, nullptr, nullptr),
        "clCommandNDRangeKernelKHR");
  }
  absl::Status End() {
    return cl.Check(finalize_(buffer_.get()), "clFinalizeCommandBufferKHR");
  }
  absl::Status Launch(Stream& stream) {
    // PoCL 3.1 has the time of the last command's end only.
    if (Stream::Timer::IsRunning()) {
      TFPLUG_RETURN_IF_ERROR(cl.Call(cl.clEnqueueMarkerWithWaitList,
                                     stream.queue(), 0, nullptr,
                                     Stream::Timer::Next()));
    }
    TFPLUG_RETURN_IF_ERROR(cl.Check(
        enqueue_(0, nullptr, buffer_.get(), 0, nullptr, Stream::Timer::Next()),
        "clEnqueueCommandBufferKHR"));
    return stream.Submit();
  }

 private:
  clCommandNDRangeKernelKHR_fn add_ = nullptr;
  clFinalizeCommandBufferKHR_fn finalize_ = nullptr;
  clEnqueueCommandBufferKHR_fn enqueue_ = nullptr;
  std::vector<KernelObject> kernels_;  // whose arguments the commands use
  // The driver keeps the buffer until its commands are done.
  std::unique_ptr<_cl_command_buffer_khr, clReleaseCommandBufferKHR_fn> buffer_{
      nullptr, nullptr};
};

}  // namespace opencl

#endif  // OPENCL_COMMAND_BUFFER_H_
