// SPDX-License-Identifier: Apache-2.0
#ifndef OPENCL_OPENCL_H_
#define OPENCL_OPENCL_H_

#include <tfplug/backend/source/program_cache.h>
#include <tfplug/device/address_space.h>
#include <tfplug/plugin.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "driver.h"
#include "timer.h"

// A TensorFlow device for any OpenCL 1.2 driver.
namespace opencl {

// What a device's streams, memory and kernels share.
struct Machine {
  cl_device_id id;
  Context context;
  tfplug::AddressSpace<cl_mem> addresses;
  tfplug::ProgramCache programs;  // destroyed before the context
};

// A command in a queue, or null.
using Point = std::shared_ptr<std::remove_pointer_t<cl_event>>;

class Event final : public tfplug::Event {
 public:
  absl::StatusOr<tfplug::EventStatus> Poll() override {
    const Point point = Get();
    if (point == nullptr) return tfplug::EventStatus::kComplete;
    cl_int status = 0;
    TFPLUG_RETURN_IF_ERROR(OPENCL_CALL(clGetEventInfo, point.get(),
                                       CL_EVENT_COMMAND_EXECUTION_STATUS,
                                       sizeof(status), &status, nullptr));
    return status < 0              ? tfplug::EventStatus::kError
           : status == CL_COMPLETE ? tfplug::EventStatus::kComplete
                                   : tfplug::EventStatus::kPending;
  }
  absl::Status BlockHost() override {
    const Point point = Get();
    if (point == nullptr) return absl::OkStatus();
    const cl_event list[] = {point.get()};
    return OPENCL_CALL(clWaitForEvents, 1, list);
  }

  // Returns the recorded point, or null.
  Point Get() const { return std::atomic_load(&point_); }
  void Set(Point point) { std::atomic_store(&point_, std::move(point)); }

 private:
  Point point_;
};

class Stream final : public tfplug::Stream<Stream, Event, Timer> {
 public:
  explicit Stream(Machine& machine) : machine_(machine) {}
  absl::Status Init() override {
    OPENCL_CREATE(queue_, clCreateCommandQueue, machine_.context.get(),
                  machine_.id, CL_QUEUE_PROFILING_ENABLE);
    return absl::OkStatus();
  }

  absl::Status GetStatus() override { return absl::OkStatus(); }
  absl::Status BlockHostUntilDone() override {
    return OPENCL_CALL(clFinish, queue());
  }
  absl::Status RecordEvent(Event& event) override {
    TFPLUG_ASSIGN_OR_RETURN(Point point, Mark());
    event.Set(std::move(point));
    // Other queues may only wait for work that was submitted.
    return OPENCL_CALL(clFlush, queue());
  }
  absl::Status WaitForEvent(Event& event) override {
    const Point point = event.Get();
    return point == nullptr ? absl::OkStatus() : WaitFor(point.get());
  }
  absl::Status CopyHostToDevice(tfplug::DeviceMemory dst, const void* src,
                                uint64_t size) override {
    TFPLUG_ASSIGN_OR_RETURN(const auto to, Find(dst));
    return OPENCL_ENQUEUE(clEnqueueWriteBuffer, queue(), to.handle, CL_FALSE,
                          to.offset, size, src);
  }
  absl::Status CopyDeviceToHost(void* dst, tfplug::DeviceMemory src,
                                uint64_t size) override {
    TFPLUG_ASSIGN_OR_RETURN(const auto from, Find(src));
    return OPENCL_ENQUEUE(clEnqueueReadBuffer, queue(), from.handle, CL_FALSE,
                          from.offset, size, dst);
  }
  absl::Status CopyDeviceToDevice(tfplug::DeviceMemory dst,
                                  tfplug::DeviceMemory src,
                                  uint64_t size) override {
    TFPLUG_ASSIGN_OR_RETURN(const auto from, Find(src));
    TFPLUG_ASSIGN_OR_RETURN(const auto to, Find(dst));
    return OPENCL_ENQUEUE(clEnqueueCopyBuffer, queue(), from.handle, to.handle,
                          from.offset, to.offset, size);
  }
  absl::Status Memset(tfplug::DeviceMemory dst, tfplug::BytePattern pattern,
                      uint64_t size) override {
    TFPLUG_ASSIGN_OR_RETURN(const auto to, Find(dst));
    return OPENCL_ENQUEUE(clEnqueueFillBuffer, queue(), to.handle,
                          &pattern.value, 1, to.offset, size);
  }
  absl::Status Memset32(tfplug::DeviceMemory dst, tfplug::WordPattern pattern,
                        uint64_t size) override {
    TFPLUG_ASSIGN_OR_RETURN(const auto to, Find(dst));
    return OPENCL_ENQUEUE(clEnqueueFillBuffer, queue(), to.handle,
                          &pattern.value, 4, to.offset, size);
  }

  // The task runs on a thread of the driver, or on this one if the queue is
  // empty; the queue waits for `done`.
  absl::Status RunOnHost(tfplug::HostTask task) override {
    struct Call {
      tfplug::HostTask task;
      EventObject done;
    };
    auto call = std::make_unique<Call>(Call{std::move(task), nullptr});
    OPENCL_CREATE(call->done, clCreateUserEvent, machine_.context.get());
    TFPLUG_ASSIGN_OR_RETURN(const Point reached, Mark());
    TFPLUG_RETURN_IF_ERROR(WaitFor(call->done.get()));
    const auto run = [](cl_event, cl_int, void* argument) {
      const std::unique_ptr<Call> owned(static_cast<Call*>(argument));
      const bool ok = owned->task.Run().ok();
      cl.clSetUserEventStatus(owned->done.get(), ok ? CL_COMPLETE : -1);
    };
    Call* const argument = call.release();
    const cl_int code =
        cl.clSetEventCallback(reached.get(), CL_COMPLETE, run, argument);
    if (code != CL_SUCCESS) run(nullptr, code, argument);
    return OPENCL_CALL(clFlush, queue());
  }

  absl::Status StartTimer(Timer& timer) override {
    timer.Start();
    return absl::OkStatus();
  }
  absl::Status StopTimer(Timer& timer) override {
    timer.Stop();
    return absl::OkStatus();
  }

  Machine& machine() { return machine_; }
  cl_command_queue queue() const { return queue_.get(); }

 private:
  absl::StatusOr<tfplug::AddressSpace<cl_mem>::Location> Find(
      tfplug::DeviceMemory memory) const {
    return machine_.addresses.Find(memory.opaque());
  }
  // Enqueues a point that is reached when all work before it is done.
  absl::StatusOr<Point> Mark() {
    cl_event marker;
    TFPLUG_RETURN_IF_ERROR(
        OPENCL_CALL(clEnqueueMarkerWithWaitList, queue(), 0, nullptr, &marker));
    return Point(marker, cl.clReleaseEvent);
  }
  absl::Status WaitFor(cl_event event) {
    return OPENCL_CALL(clEnqueueBarrierWithWaitList, queue(), 1, &event,
                       Timer::NextEvent());
  }

  Machine& machine_;
  Queue queue_;
};

class Memory final : public tfplug::Allocator {
 public:
  explicit Memory(Machine& machine) : machine_(machine) {}

  absl::StatusOr<tfplug::DeviceMemory> Allocate(uint64_t size,
                                                int64_t /*space*/) override {
    Buffer buffer;
    OPENCL_CREATE(buffer, clCreateBuffer, machine_.context.get(),
                  CL_MEM_READ_WRITE, size, nullptr);
    TFPLUG_ASSIGN_OR_RETURN(void* const address,
                            machine_.addresses.Insert(buffer.get(), size));
    buffer.release();
    return tfplug::DeviceMemory(address, size);
  }
  // The driver keeps the buffer until the work that uses it is done.
  absl::Status Deallocate(tfplug::DeviceMemory memory) override {
    TFPLUG_ASSIGN_OR_RETURN(const cl_mem buffer,
                            machine_.addresses.Remove(memory.opaque()));
    return OPENCL_CALL(clReleaseMemObject, buffer);
  }
  absl::StatusOr<tfplug::MemoryUsage> Usage() override {
    const auto total = static_cast<int64_t>(
        GetInfo<cl_ulong>(machine_.id, CL_DEVICE_GLOBAL_MEM_SIZE));
    const auto used = static_cast<int64_t>(machine_.addresses.Used());
    return tfplug::MemoryUsage{total - used, total};
  }

 private:
  Machine& machine_;
};

class Device final : public tfplug::Device<Stream, Memory>, public Machine {
 public:
  explicit Device(int ordinal) {
    id = cl.devices[static_cast<size_t>(ordinal)];
  }
  absl::Status Init() override {
    OPENCL_CREATE(context, clCreateContext, nullptr, 1, &id, nullptr, nullptr);
    OPENCL_CREATE(clock_, clCreateCommandQueue, context.get(), id,
                  CL_QUEUE_PROFILING_ENABLE);
    tfplug::Target target;
    target.dialect = tfplug::Dialect::kOpenCl;
    target.name =
        absl::StrCat(HardwareName(), "; ", GetText(id, CL_DEVICE_VERSION), "; ",
                     GetText(id, CL_DRIVER_VERSION));
    target.is_cpu =
        (GetInfo<cl_device_type>(id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
    target.LimitGroupSize(GetInfo<size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
    target.local_memory =
        static_cast<int64_t>(GetInfo<cl_ulong>(id, CL_DEVICE_LOCAL_MEM_SIZE));
    programs.SetTarget(std::move(target));
    return absl::OkStatus();
  }

  std::string HardwareName() override { return GetText(id, CL_DEVICE_NAME); }
  std::string Vendor() override { return GetText(id, CL_DEVICE_VENDOR); }
  absl::StatusOr<uint64_t> GetTime() override {
    cl_event marker;
    TFPLUG_RETURN_IF_ERROR(OPENCL_CALL(clEnqueueMarkerWithWaitList,
                                       clock_.get(), 0, nullptr, &marker));
    const EventObject owned(marker);
    TFPLUG_RETURN_IF_ERROR(OPENCL_CALL(clWaitForEvents, 1, &marker));
    return GetTimeOf(marker, CL_PROFILING_COMMAND_END);
  }

 private:
  Queue clock_;  // for GetTime
};

class Platform final : public tfplug::Platform<Device> {
 public:
  static constexpr char kName[] = "OPENCL", kType[] = "OPENCL";

  absl::Status Init() override { return cl.Load(); }
  // The driver's largest buffer is smaller than its memory: TensorFlow
  // allocates step by step.
  tfplug::PlatformOptions Options() override {
    tfplug::PlatformOptions options;
    options.force_memory_growth = true;
    return options;
  }
  absl::StatusOr<int> DeviceCount() override {
    return static_cast<int>(cl.devices.size());
  }
};

}  // namespace opencl

#endif  // OPENCL_OPENCL_H_
