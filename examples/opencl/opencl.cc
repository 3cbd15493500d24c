// SPDX-License-Identifier: Apache-2.0
#include "opencl.h"

#include <tfplug/graph_pass.h>

#include <memory>

namespace opencl {

ClEvent Event::Get() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (event_.get() != nullptr) cl.clRetainEvent(event_.get());
  return ClEvent(event_.get());
}

void Event::Set(ClEvent event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  event_ = std::move(event);
}

absl::StatusOr<tfplug::EventStatus> Event::Poll() {
  const ClEvent event = Get();
  if (event.get() == nullptr) return tfplug::EventStatus::kComplete;
  cl_int status = 0;
  TFPLUG_RETURN_IF_ERROR(OPENCL_CALL(clGetEventInfo, event.get(),
                                     CL_EVENT_COMMAND_EXECUTION_STATUS,
                                     sizeof(status), &status, nullptr));
  return status < 0              ? tfplug::EventStatus::kError
         : status == CL_COMPLETE ? tfplug::EventStatus::kComplete
                                 : tfplug::EventStatus::kPending;
}

absl::Status Event::BlockHost() {
  const ClEvent event = Get();
  if (event.get() == nullptr) return absl::OkStatus();
  const cl_event list[] = {event.get()};
  return OPENCL_CALL(clWaitForEvents, 1, list);
}

absl::Status Stream::Init() {
  cl_int code;
  queue_ =
      Queue(cl.clCreateCommandQueue(device_.context(), device_.id(), 0, &code));
  device_.AddStream(this);
  return ToStatus(code, "clCreateCommandQueue");
}

Stream::~Stream() { device_.RemoveStream(this); }

absl::Status Stream::BlockHostUntilDone() {
  return OPENCL_CALL(clFinish, queue());
}

absl::Status Stream::RecordEvent(Event& event) {
  cl_event marker;
  TFPLUG_RETURN_IF_ERROR(
      OPENCL_CALL(clEnqueueMarkerWithWaitList, queue(), 0, nullptr, &marker));
  event.Set(ClEvent(marker));
  // Other queues may only wait for work that was submitted.
  return OPENCL_CALL(clFlush, queue());
}

absl::Status Stream::WaitForEvent(Event& event) {
  const ClEvent point = event.Get();
  if (point.get() == nullptr) return absl::OkStatus();
  const cl_event list[] = {point.get()};
  return OPENCL_CALL(clEnqueueBarrierWithWaitList, queue(), 1, list, nullptr);
}

absl::Status Stream::CopyHostToDevice(tfplug::DeviceMemory dst, const void* src,
                                      uint64_t size) {
  TFPLUG_ASSIGN_OR_RETURN(const auto to, device_.Find(dst.opaque()));
  TFPLUG_RETURN_IF_ERROR(OPENCL_CALL(clEnqueueWriteBuffer, queue(), to.handle,
                                     CL_FALSE, to.offset, size, src, 0, nullptr,
                                     nullptr));
  return OPENCL_CALL(clFlush, queue());
}

absl::Status Stream::CopyDeviceToHost(void* dst, tfplug::DeviceMemory src,
                                      uint64_t size) {
  TFPLUG_ASSIGN_OR_RETURN(const auto from, device_.Find(src.opaque()));
  TFPLUG_RETURN_IF_ERROR(OPENCL_CALL(clEnqueueReadBuffer, queue(), from.handle,
                                     CL_FALSE, from.offset, size, dst, 0,
                                     nullptr, nullptr));
  return OPENCL_CALL(clFlush, queue());
}

absl::Status Stream::CopyDeviceToDevice(tfplug::DeviceMemory dst,
                                        tfplug::DeviceMemory src,
                                        uint64_t size) {
  TFPLUG_ASSIGN_OR_RETURN(const auto from, device_.Find(src.opaque()));
  TFPLUG_ASSIGN_OR_RETURN(const auto to, device_.Find(dst.opaque()));
  return OPENCL_CALL(clEnqueueCopyBuffer, queue(), from.handle, to.handle,
                     from.offset, to.offset, size, 0, nullptr, nullptr);
}

absl::Status Stream::Fill(tfplug::DeviceMemory dst, const void* pattern,
                          size_t pattern_size, uint64_t size) {
  TFPLUG_ASSIGN_OR_RETURN(const auto to, device_.Find(dst.opaque()));
  return OPENCL_CALL(clEnqueueFillBuffer, queue(), to.handle, pattern,
                     pattern_size, to.offset, size, 0, nullptr, nullptr);
}

absl::Status Stream::Memset(tfplug::DeviceMemory dst,
                            tfplug::BytePattern pattern, uint64_t size) {
  return Fill(dst, &pattern.value, 1, size);
}

absl::Status Stream::Memset32(tfplug::DeviceMemory dst,
                              tfplug::WordPattern pattern, uint64_t size) {
  return Fill(dst, &pattern.value, 4, size);
}

// The task runs on a thread of the driver; the queue waits for `done`.
absl::Status Stream::RunOnHost(tfplug::HostTask task) {
  struct Call {
    tfplug::HostTask task;
    cl_event done;
  };
  cl_int code;
  ClEvent done(cl.clCreateUserEvent(device_.context(), &code));
  TFPLUG_RETURN_IF_ERROR(ToStatus(code, "clCreateUserEvent"));
  cl_event marker;
  TFPLUG_RETURN_IF_ERROR(
      OPENCL_CALL(clEnqueueMarkerWithWaitList, queue(), 0, nullptr, &marker));
  const ClEvent owned_marker(marker);
  const cl_event list[] = {done.get()};
  TFPLUG_RETURN_IF_ERROR(
      OPENCL_CALL(clEnqueueBarrierWithWaitList, queue(), 1, list, nullptr));
  cl.clRetainEvent(done.get());
  auto* const call = new Call{std::move(task), done.get()};
  const auto run = [](cl_event, cl_int, void* argument) {
    const std::unique_ptr<Call> owned(static_cast<Call*>(argument));
    const ClEvent event(owned->done);
    const bool ok = owned->task.Run().ok();
    cl.clSetUserEventStatus(event.get(), ok ? CL_COMPLETE : -1);
  };
  code = cl.clSetEventCallback(marker, CL_COMPLETE, run, call);
  if (code != CL_SUCCESS) run(marker, code, call);
  return OPENCL_CALL(clFlush, queue());
}

absl::StatusOr<tfplug::DeviceMemory> Memory::Allocate(uint64_t size,
                                                      int64_t /*space*/) {
  cl_int code;
  const cl_mem buffer = cl.clCreateBuffer(device_.context(), CL_MEM_READ_WRITE,
                                          size, nullptr, &code);
  TFPLUG_RETURN_IF_ERROR(ToStatus(code, "clCreateBuffer"));
  const absl::StatusOr<void*> address =
      device_.addresses().Insert(buffer, size);
  if (!address.ok()) {
    cl.clReleaseMemObject(buffer);
    return address.status();
  }
  used_ += static_cast<int64_t>(size);
  return tfplug::DeviceMemory(*address, size);
}

// The driver keeps the buffer until the work that uses it is done.
absl::Status Memory::Deallocate(tfplug::DeviceMemory memory) {
  TFPLUG_ASSIGN_OR_RETURN(const cl_mem buffer,
                          device_.addresses().Remove(memory.opaque()));
  used_ -= static_cast<int64_t>(memory.size());
  return OPENCL_CALL(clReleaseMemObject, buffer);
}

absl::StatusOr<tfplug::MemoryUsage> Memory::Usage() {
  const auto total = static_cast<int64_t>(
      GetInfo<cl_ulong>(device_.id(), CL_DEVICE_GLOBAL_MEM_SIZE));
  return tfplug::MemoryUsage{total - used_, total};
}

absl::Status Device::Init() {
  cl_int code;
  context_ =
      Context(cl.clCreateContext(nullptr, 1, &id_, nullptr, nullptr, &code));
  TFPLUG_RETURN_IF_ERROR(ToStatus(code, "clCreateContext"));
  tfplug::Target target;
  target.dialect = tfplug::Dialect::kOpenCl;
  target.name = absl::StrCat(GetText(id_, CL_DEVICE_NAME), "; ",
                             GetText(id_, CL_DEVICE_VERSION), "; ",
                             GetText(id_, CL_DRIVER_VERSION));
  const auto type = GetInfo<cl_device_type>(id_, CL_DEVICE_TYPE);
  target.is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0;
  while (!target.is_cpu && target.group_size > 32 &&
         static_cast<size_t>(target.group_size) >
             GetInfo<size_t>(id_, CL_DEVICE_MAX_WORK_GROUP_SIZE)) {
    target.group_size /= 2;
  }
  target.local_memory =
      static_cast<int64_t>(GetInfo<cl_ulong>(id_, CL_DEVICE_LOCAL_MEM_SIZE));
  programs_.SetTarget(std::move(target));
  return absl::OkStatus();
}

void Device::AddStream(Stream* stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  streams_.insert(stream);
}

void Device::RemoveStream(Stream* stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  streams_.erase(stream);
}

absl::Status Device::SynchronizeAllActivity() {
  const std::lock_guard<std::mutex> lock(mutex_);
  absl::Status status;
  for (Stream* stream : streams_) status.Update(stream->BlockHostUntilDone());
  return status;
}

absl::StatusOr<tfplug::AddressSpace<cl_mem>::Location> Device::Find(
    const void* address) const {
  tfplug::AddressSpace<cl_mem>::Location location;
  if (addresses_.Find(address, &location)) return location;
  return absl::InvalidArgumentError("an address lies in no OpenCL buffer");
}

// The driver's largest buffer is smaller than its memory: TensorFlow allocates
// step by step.
tfplug::PlatformOptions Platform::Options() {
  tfplug::PlatformOptions options;
  options.force_memory_growth = true;
  return options;
}

}  // namespace opencl

TFPLUG_REGISTER_DEVICE(opencl::Platform);
TFPLUG_REGISTER_GRAPH_PASSES("OPENCL");
