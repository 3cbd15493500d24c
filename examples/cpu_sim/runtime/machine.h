// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_RUNTIME_MACHINE_H_
#define CPU_SIM_RUNTIME_MACHINE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device.h"

namespace cpu_sim::rt {

struct Options {
  int devices = 2;
  size_t memory = size_t{1} << 30;  // bytes of each device
  bool strict = true;               // device memory is inaccessible to the host
  bool canaries = false;  // aborts if work writes beside device memory
};

// Reads CPU_SIM_DEVICES (0 to 64), CPU_SIM_MEMORY (bytes, optionally with a
// suffix K, M or G, such as 512M), CPU_SIM_STRICT (0 or 1) and CPU_SIM_CANARIES
// (0 or 1), or variables with another prefix. Unset variables keep their
// defaults. Returns INVALID_ARGUMENT for any other text.
absl::StatusOr<Options> OptionsFromEnvironment(
    const std::string& prefix = "CPU_SIM");

// All the simulated devices of a process.
class Machine {
 public:
  // A child that is forked later cannot use the machine.
  static absl::StatusOr<std::unique_ptr<Machine>> Create(
      const Options& options);

  // Returns the machine that the environment describes, which the first call
  // creates. It is never destroyed, because streams may be in use until the
  // process exits.
  static const absl::StatusOr<std::unique_ptr<Machine>>& Get();

  // Returns the number of devices that the environment describes, without
  // creating the machine: a child that is forked later can use them.
  static absl::StatusOr<int> CountDevices();

  // Returns a device of this machine, or NOT_FOUND.
  absl::StatusOr<Device*> GetDevice(int ordinal) const;

  // Returns whether any byte of the range is device memory, managed memory
  // excluded.
  bool OverlapsDeviceMemory(const void* address, size_t bytes) const;

  // Returns the private address of a range in the memory of one device, or
  // null.
  void* Find(const void* address, size_t bytes) const;

 private:
  Machine() = default;

  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace cpu_sim::rt

#endif  // CPU_SIM_RUNTIME_MACHINE_H_
