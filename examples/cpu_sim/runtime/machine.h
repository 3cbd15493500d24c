// SPDX-License-Identifier: Apache-2.0
#ifndef CPU_SIM_RUNTIME_MACHINE_H_
#define CPU_SIM_RUNTIME_MACHINE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "device.h"

namespace cpu_sim::rt {

struct Options {
  int devices = 2;
  size_t memory = size_t{1} << 30;  // bytes of each device
  bool strict = true;  // whether the host may not touch device memory
};

// Reads CPU_SIM_DEVICES (0 to 64), CPU_SIM_MEMORY (bytes, or with a suffix
// K, M or G: 512M) and CPU_SIM_STRICT (0 or 1); what is not set keeps its
// default. INVALID_ARGUMENT for any other text.
absl::StatusOr<Options> OptionsFromEnvironment();

// All the simulated devices of a process.
class Machine {
 public:
  static absl::StatusOr<std::unique_ptr<Machine>> Create(
      const Options& options);

  // The one that the environment describes, made when first asked for. It
  // lives as long as the process: streams may be in use to the very end.
  static const absl::StatusOr<std::unique_ptr<Machine>>& Get();

  absl::StatusOr<int> CountDevices() const;

  // A device of this machine. NOT_FOUND when it has none of this number.
  absl::StatusOr<Device*> GetDevice(int ordinal) const;

  // Null when the range is not all memory of one of the devices.
  void* Find(const void* address, size_t bytes) const;

 private:
  Machine() = default;

  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace cpu_sim::rt

#endif  // CPU_SIM_RUNTIME_MACHINE_H_
