// SPDX-License-Identifier: Apache-2.0
#include "cpu_sim.h"

#include <cstdlib>

#include "absl/strings/string_view.h"
#include "kernels/threads.h"
#include "runtime/heap.h"
#include "runtime/machine.h"

namespace cpu_sim {

absl::StatusOr<tfplug::EventStatus> Event::Poll() {
  TFPLUG_ASSIGN_OR_RETURN(const rt::Event::State state, event_->Poll());
  switch (state) {
    case rt::Event::State::kPending:
      return tfplug::EventStatus::kPending;
    case rt::Event::State::kComplete:
      return tfplug::EventStatus::kComplete;
    case rt::Event::State::kError:
      break;
  }
  return tfplug::EventStatus::kError;
}

absl::Status Stream::Init() {
  TFPLUG_ASSIGN_OR_RETURN(stream_, rt::Stream::Create(device_.runtime()));
  return absl::OkStatus();
}

Memory::Memory(Device& device) : device_(device.runtime()) {}

absl::StatusOr<tfplug::DeviceMemory> Memory::Allocate(uint64_t size,
                                                      int64_t /*space*/) {
  TFPLUG_ASSIGN_OR_RETURN(void* address, device_.Allocate(size));
  return tfplug::DeviceMemory(address, size);
}

// Does not wait for the device: freed memory stays mapped, and work of the next
// owner is enqueued after the work of this one.
absl::Status Memory::Deallocate(tfplug::DeviceMemory memory) {
  return device_.Free(memory.opaque());
}

absl::Status Memory::DeallocateUnified(void* memory) {
  return device_.FreeManaged(memory);
}

absl::StatusOr<tfplug::AllocatorStats> Memory::Stats() {
  TFPLUG_ASSIGN_OR_RETURN(const rt::HeapStats heap, device_.Stats());
  tfplug::AllocatorStats stats;
  stats.num_allocs = heap.allocations;
  stats.bytes_in_use = static_cast<int64_t>(heap.in_use);
  stats.peak_bytes_in_use = static_cast<int64_t>(heap.peak);
  stats.largest_alloc_size = static_cast<int64_t>(heap.largest);
  stats.bytes_limit = static_cast<int64_t>(heap.limit);
  return stats;
}

absl::StatusOr<tfplug::MemoryUsage> Memory::Usage() {
  TFPLUG_ASSIGN_OR_RETURN(const rt::HeapStats heap, device_.Stats());
  tfplug::MemoryUsage usage;
  usage.free = static_cast<int64_t>(heap.limit - heap.in_use);
  usage.total = static_cast<int64_t>(heap.limit);
  return usage;
}

absl::Status Device::Init() {
  const auto& machine = rt::Machine::Get();
  if (!machine.ok()) return machine.status();
  TFPLUG_ASSIGN_OR_RETURN(device_, (*machine)->GetDevice(ordinal_));
  return absl::OkStatus();
}

// With CPU_SIM_BFC=0 tensors come from our allocator instead of TensorFlow's;
// blocks with canaries must not be divided.
tfplug::PlatformOptions Platform::Options() {
  tfplug::PlatformOptions options;
  const char* bfc = getenv("CPU_SIM_BFC");
  const absl::StatusOr<rt::Options> machine = rt::OptionsFromEnvironment();
  options.use_bfc_allocator =
      (bfc == nullptr || absl::string_view(bfc) != "0") &&
      !(machine.ok() && machine->canaries);
  return options;
}

absl::StatusOr<int> Platform::DeviceCount() {
  TFPLUG_RETURN_IF_ERROR(Threads::CountFromEnvironment().status());
  return rt::Machine::CountDevices();
}

}  // namespace cpu_sim

TFPLUG_REGISTER_DEVICE(cpu_sim::Platform);
