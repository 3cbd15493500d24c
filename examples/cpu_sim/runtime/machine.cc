// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "fault.h"

namespace cpu_sim::rt {
namespace {

constexpr int kMaxDevices = 64;

absl::Status InvalidVariable(const std::string& variable, const char* text,
                             const char* expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(variable, "=", text, " is invalid; expected ", expected));
}

bool ParseBytes(absl::string_view text, size_t* bytes) {
  const int shift = absl::ConsumeSuffix(&text, "K")   ? 10
                    : absl::ConsumeSuffix(&text, "M") ? 20
                    : absl::ConsumeSuffix(&text, "G") ? 30
                                                      : 0;
  uint64_t number;
  if (!absl::SimpleAtoi(text, &number) || number == 0 ||
      number > std::numeric_limits<size_t>::max() >> shift) {
    return false;
  }
  *bytes = static_cast<size_t>(number) << shift;
  return true;
}

// Returns the options in the environment at the first call.
const absl::StatusOr<Options>& Environment() {
  static const auto& options =
      *new absl::StatusOr<Options>([]() -> absl::StatusOr<Options> {
        absl::Status status = InjectFaultsFromEnvironment();
        if (!status.ok()) return status;
        return OptionsFromEnvironment();
      }());
  return options;
}

absl::StatusOr<std::unique_ptr<Machine>> CreateFromEnvironment() {
  const absl::StatusOr<Options>& options = Environment();
  if (!options.ok()) return options.status();
  return Machine::Create(*options);
}

}  // namespace

absl::StatusOr<Options> OptionsFromEnvironment(const std::string& prefix) {
  Options options;
  const std::string devices = prefix + "_DEVICES", memory = prefix + "_MEMORY";
  if (const char* text = getenv(devices.c_str())) {
    if (!absl::SimpleAtoi(text, &options.devices) || options.devices < 0 ||
        options.devices > kMaxDevices) {
      return InvalidVariable(devices, text, "a number from 0 to 64");
    }
  }
  if (const char* text = getenv(memory.c_str())) {
    if (!ParseBytes(text, &options.memory)) {
      return InvalidVariable(memory, text, "bytes, such as 512M");
    }
  }
  for (const auto& [name, option] :
       {std::pair<const char*, bool*>{"_STRICT", &options.strict},
        {"_CANARIES", &options.canaries}}) {
    const std::string variable = prefix + name;
    if (const char* text = getenv(variable.c_str())) {
      const absl::string_view value = text;
      if (value != "0" && value != "1") {
        return InvalidVariable(variable, text, "0 or 1");
      }
      *option = value == "1";
    }
  }
  return options;
}

absl::StatusOr<std::unique_ptr<Machine>> Machine::Create(
    const Options& options) {
  FailAfterFork();
  std::unique_ptr<Machine> machine(new Machine);
  for (int ordinal = 0; ordinal < options.devices; ++ordinal) {
    absl::StatusOr<std::unique_ptr<Arena>> memory = Arena::Create(
        options.memory, options.strict ? Arena::HostAccess::kNone
                                       : Arena::HostAccess::kReadWrite);
    if (!memory.ok()) return memory.status();
    absl::StatusOr<std::unique_ptr<Arena>> managed_memory =
        Arena::Create(options.memory, Arena::HostAccess::kReadWrite);
    if (!managed_memory.ok()) return managed_memory.status();
    machine->devices_.push_back(
        std::make_unique<Device>(*machine, ordinal, *std::move(memory),
                                 *std::move(managed_memory), options.canaries));
  }
  return machine;
}

absl::StatusOr<int> Machine::CountDevices() {
  const absl::StatusOr<Options>& options = Environment();
  if (!options.ok()) return options.status();
  absl::Status fault = CheckFault("get_device_count");
  if (!fault.ok()) return fault;
  return options->devices;
}

absl::StatusOr<Device*> Machine::GetDevice(int ordinal) const {
  absl::Status fault = CheckFault("create_device");
  if (!fault.ok()) return fault;
  if (ordinal < 0 || ordinal >= static_cast<int>(devices_.size())) {
    return absl::NotFoundError(absl::StrCat("there is no device ", ordinal));
  }
  return devices_[static_cast<size_t>(ordinal)].get();
}

bool Machine::OverlapsDeviceMemory(const void* address, size_t bytes) const {
  for (const std::unique_ptr<Device>& device : devices_) {
    if (device->memory_->Overlaps(address, bytes)) return true;
  }
  return false;
}

void* Machine::Find(const void* address, size_t bytes) const {
  for (const std::unique_ptr<Device>& device : devices_) {
    if (void* found = device->Find(address, bytes)) return found;
  }
  return nullptr;
}

const absl::StatusOr<std::unique_ptr<Machine>>& Machine::Get() {
  static const auto& machine =
      *new absl::StatusOr<std::unique_ptr<Machine>>(CreateFromEnvironment());
  return machine;
}

}  // namespace cpu_sim::rt
