// SPDX-License-Identifier: Apache-2.0
#ifndef OPENCL_OPENCL_H_
#define OPENCL_OPENCL_H_

#include <tfplug/compiled/languages/opencl_c.h>
#include <tfplug/compiled/program_cache.h>
#include <tfplug/device/buffer_stream.h>
#include <tfplug/device/driver_platform.h>
#include <tfplug/plugin.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "driver.h"

// A TensorFlow device for any OpenCL 1.2 driver.
namespace opencl {

// The memory of all devices, which copy to each other.
inline auto& addresses = *new tfplug::AddressSpace<cl_mem>;

// The state that a device's streams, memory and kernels share.
struct Machine {
  cl_device_id id;
  cl_context context;
  tfplug::ProgramCache programs;
};

// OpenCL's events of commands.
struct Commands {
  using Handle = cl_event;

  static void Release(cl_event event) { cl.clReleaseEvent(event); }
  static absl::StatusOr<tfplug::EventStatus> Poll(cl_event event) {
    TFPLUG_ASSIGN_OR_RETURN(const cl_int status,
                            Get<cl_int>(cl.clGetEventInfo, event,
                                        CL_EVENT_COMMAND_EXECUTION_STATUS));
    return status < 0              ? tfplug::EventStatus::kError
           : status == CL_COMPLETE ? tfplug::EventStatus::kComplete
                                   : tfplug::EventStatus::kPending;
  }
  static absl::Status BlockHost(cl_event event) {
    return cl.Call(cl.clWaitForEvents, 1, &event);
  }
  static absl::StatusOr<tfplug::WorkTimes> GetTimes(cl_event event) {
    const auto get = [&](cl_profiling_info time) {
      return Get<cl_ulong>(cl.clGetEventProfilingInfo, event, time);
    };
    TFPLUG_ASSIGN_OR_RETURN(const auto begin, get(CL_PROFILING_COMMAND_START));
    TFPLUG_ASSIGN_OR_RETURN(const auto end, get(CL_PROFILING_COMMAND_END));
    return tfplug::WorkTimes{begin, end};
  }
};

class CommandBuffer;

// A stream with a graph adds kernels to that, and has no queue.
class Stream final : public tfplug::BufferStream<Stream, cl_mem, Commands> {
 public:
  explicit Stream(Machine& machine, CommandBuffer* graph = nullptr)
      : BufferStream(addresses), machine_(machine), graph_(graph) {}
  absl::Status Init() override {
    return Create(queue_, cl.clCreateCommandQueue, machine_.context,
                  machine_.id, CL_QUEUE_PROFILING_ENABLE);
  }

  absl::Status BlockHostUntilDone() override {
    TFPLUG_RETURN_IF_ERROR(CallQueue(cl.clFinish));
    return GetStatus();
  }
  absl::StatusOr<cl_event> Mark() override {
    cl_event marker = nullptr;
    TFPLUG_RETURN_IF_ERROR(
        CallQueue(cl.clEnqueueMarkerWithWaitList, 0, nullptr, &marker));
    return marker;
  }
  absl::Status Submit() override { return CallQueue(cl.clFlush); }
  absl::Status WaitForCommand(cl_event event) override {
    return CallQueue(cl.clEnqueueBarrierWithWaitList, 1, &event, Timer::Next());
  }

  absl::Status CopyToBuffer(Location to, const void* from,
                            uint64_t size) override {
    return Enqueue(cl.clEnqueueWriteBuffer, to.handle, cl_bool{CL_FALSE},
                   to.offset, size, from);
  }
  absl::Status CopyFromBuffer(void* to, Location from, uint64_t size) override {
    return Enqueue(cl.clEnqueueReadBuffer, from.handle, cl_bool{CL_FALSE},
                   from.offset, size, to);
  }
  absl::Status CopyBuffer(Location to, Location from, uint64_t size) override {
    return Enqueue(cl.clEnqueueCopyBuffer, from.handle, to.handle, from.offset,
                   to.offset, size);
  }
  absl::Status FillBuffer(Location to, const void* pattern, size_t pattern_size,
                          uint64_t size) override {
    return Enqueue(cl.clEnqueueFillBuffer, to.handle, pattern, pattern_size,
                   to.offset, size);
  }

  // The task runs on a thread of the driver, or on this one if the queue is
  // empty; the queue waits for `done`. That is complete even if the task fails: of
  // an event with an error, PoCL 3.1 aborts the process.
  absl::Status RunOnHost(tfplug::HostTask task) override {
    struct Waiting {
      Stream& stream;
      tfplug::HostTask task;
      EventObject done;
    };
    auto waiting =
        std::make_unique<Waiting>(Waiting{*this, std::move(task), nullptr});
    TFPLUG_RETURN_IF_ERROR(
        Create(waiting->done, cl.clCreateUserEvent, machine_.context));
    TFPLUG_ASSIGN_OR_RETURN(const cl_event marker, Mark());
    const EventObject reached(marker);
    TFPLUG_RETURN_IF_ERROR(WaitForCommand(waiting->done.get()));
    const auto run = [](cl_event, cl_int, void* argument) {
      const std::unique_ptr<Waiting> owned(static_cast<Waiting*>(argument));
      owned->stream.KeepError(owned->task.Run());
      cl.clSetUserEventStatus(owned->done.get(), CL_COMPLETE);
    };
    Waiting* const argument = waiting.release();
    const cl_int code =
        cl.clSetEventCallback(reached.get(), CL_COMPLETE, run, argument);
    if (code != CL_SUCCESS) run(nullptr, code, argument);
    return Submit();
  }

  // Calls an enqueuing function that waits for no events, and lets the device
  // begin.
  template <class Function, class... Arguments>
  absl::Status Enqueue(const Function& function, Arguments... arguments) {
    TFPLUG_RETURN_IF_ERROR(
        CallQueue(function, arguments..., 0, nullptr, Timer::Next()));
    return Submit();
  }

  Machine& machine() { return machine_; }
  CommandBuffer* graph() const { return graph_; }
  cl_command_queue queue() const { return queue_.get(); }

 private:
  template <class Function, class... Arguments>
  absl::Status CallQueue(const Function& function, Arguments... arguments) {
    if (graph_ == nullptr) return cl.Call(function, queue(), arguments...);
    return absl::FailedPreconditionError(
        "the stream records: a graph contains kernels only");
  }

  Machine& machine_;
  CommandBuffer* const graph_;
  Queue queue_;
};

class Memory final : public tfplug::BufferAllocator<Memory, cl_mem> {
 public:
  explicit Memory(Machine& machine)
      : BufferAllocator(addresses), machine_(machine) {}

  absl::StatusOr<cl_mem> CreateBuffer(uint64_t size) override {
    Buffer buffer;
    TFPLUG_RETURN_IF_ERROR(Create(buffer, cl.clCreateBuffer, machine_.context,
                                  CL_MEM_READ_WRITE, size, nullptr));
    return buffer.release();
  }
  // The driver keeps the buffer until the work that uses it is done.
  absl::Status ReleaseBuffer(cl_mem buffer) override {
    return cl.Call(cl.clReleaseMemObject, buffer);
  }
  absl::StatusOr<uint64_t> TotalMemory() override {
    return GetInfo<cl_ulong>(machine_.id, CL_DEVICE_GLOBAL_MEM_SIZE);
  }

 private:
  Machine& machine_;
};

class Device final : public tfplug::Device<Stream, Memory>, public Machine {
 public:
  explicit Device(int ordinal) : ordinal_(ordinal) {}
  absl::Status Init() override {
    TFPLUG_RETURN_IF_ERROR(cl.Load().status());
    id = cl.devices[static_cast<size_t>(ordinal_)];
    context = cl.contexts[static_cast<size_t>(ordinal_)];
    TFPLUG_RETURN_IF_ERROR(clock_.Init());
    tfplug::Target target;
    target.language = &tfplug::OpenClC();
    target.name =
        absl::StrCat(HardwareName(), "; ", GetInfoText(CL_DEVICE_VERSION), "; ",
                     GetInfoText(CL_DRIVER_VERSION));
    target.is_cpu =
        (GetInfo<cl_device_type>(id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
    target.LimitGroupSize(GetInfo<size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
    target.local_memory = GetInfo<cl_long>(id, CL_DEVICE_LOCAL_MEM_SIZE);
    programs.SetTarget(std::move(target));
    return absl::OkStatus();
  }

  std::string HardwareName() override { return GetInfoText(CL_DEVICE_NAME); }
  std::string Vendor() override { return GetInfoText(CL_DEVICE_VENDOR); }
  absl::StatusOr<uint64_t> GetTime() override { return clock_.GetTime(); }

 private:
  std::string GetInfoText(cl_device_info property) {
    return GetText(cl.clGetDeviceInfo, id, property);
  }

  const int ordinal_;
  Stream clock_{*this};  // for GetTime
};

struct Platform final : tfplug::DriverPlatform<Device, cl> {
  static constexpr char kName[] = "OPENCL", kType[] = "OPENCL";
};

}  // namespace opencl

#endif  // OPENCL_OPENCL_H_
