// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "runtime/machine.h"

namespace cpu_sim::rt {
namespace {

std::unique_ptr<Machine> MakeMachine(bool strict = true) {
  Options options;
  options.memory = 1 << 20;
  options.strict = strict;
  return Machine::Create(options).value();
}

// The signal that `touch` dies of in a process of its own; 0 if it lives.
template <typename F>
int SignalOf(F touch) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);  // no handler of a test framework or sanitizer
    touch();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_CASE("Device: what is copied in comes out") {
  const auto machine = MakeMachine();
  Device& device = *machine->GetDevice(0).value();
  const std::vector<int> in = {1, 2, 3, 4};
  std::vector<int> out(4);
  void* a = device.Allocate(16).value();
  void* b = machine->GetDevice(1).value()->Allocate(16).value();
  CHECK(device.CopyToDevice(a, in.data(), 16).ok());
  CHECK(device.CopyOnDevice(b, a, 16).ok());  // to another device
  CHECK(machine->GetDevice(1).value()->CopyToHost(out.data(), b, 16).ok());
  CHECK(out == in);
  CHECK(device.Free(a).ok());
  CHECK(machine->GetDevice(1).value()->Free(b).ok());
  CHECK(device.Stats()->in_use == 0);
}

TEST_CASE("Device: strict memory is not the host's") {
  for (const bool strict : {true, false}) {
    CAPTURE(strict);
    const auto machine = MakeMachine(strict);
    Device& device = *machine->GetDevice(0).value();
    auto* address = static_cast<volatile char*>(device.Allocate(8).value());
    CHECK(SignalOf([=] { address[0] = 1; }) == (strict ? SIGSEGV : 0));
    CHECK(SignalOf([=] { (void)address[7]; }) == (strict ? SIGSEGV : 0));
  }
}

TEST_CASE("Device: managed memory is both's") {
  const auto machine = MakeMachine();
  Device& device = *machine->GetDevice(0).value();
  auto* address = static_cast<int*>(device.AllocateManaged(8).value());
  address[1] = 7;
  int out = 0;
  CHECK(device.CopyToHost(&out, address + 1, 4).ok());
  CHECK(out == 7);
  CHECK(device.Stats()->in_use == 0);
  CHECK(device.FreeManaged(address).ok());
}

TEST_CASE("Device: ranges are checked") {
  const auto machine = MakeMachine();
  Device& device = *machine->GetDevice(0).value();
  char* all = static_cast<char*>(device.Allocate(1 << 20).value());
  char host[16] = {};
  CHECK(device.CopyToDevice(all + (1 << 20) - 16, host, 16).ok());
  for (char* dst : {all + (1 << 20) - 15, all - 1, host}) {
    CHECK(device.CopyToDevice(dst, host, 16).code() ==
          absl::StatusCode::kInvalidArgument);
  }
  CHECK_FALSE(device.ToPrivate(all, SIZE_MAX).ok());
  // The host's side of a copy must be the host's.
  CHECK_FALSE(device.CopyToDevice(all, all + 16, 16).ok());
  CHECK_FALSE(device.CopyToHost(all, all + 16, 16).ok());
  // A kernel of one device does not reach into another.
  CHECK_FALSE(machine->GetDevice(1).value()->ToPrivate(all, 16).ok());
  CHECK(device.Allocate(1).status().code() ==
        absl::StatusCode::kResourceExhausted);
  CHECK_FALSE(device.Free(all + 256).ok());
  CHECK_FALSE(device.Free(host).ok());
}

TEST_CASE("Device: nothing at all is a size too") {
  const auto machine = MakeMachine();
  Device& device = *machine->GetDevice(0).value();
  CHECK(device.Allocate(0).value() == nullptr);
  CHECK(device.AllocateManaged(0).value() == nullptr);
  CHECK(device.AllocateHost(0).value() == nullptr);
  CHECK(device.Free(nullptr).ok());
  CHECK(device.FreeManaged(nullptr).ok());
  device.FreeHost(nullptr);
  CHECK(device.CopyToDevice(nullptr, nullptr, 0).ok());
  CHECK(device.CopyOnDevice(nullptr, nullptr, 0).ok());
}

TEST_CASE("Machine: its options come from the environment") {
  CHECK(OptionsFromEnvironment()->devices == 2);
  CHECK(OptionsFromEnvironment()->strict);
  setenv("CPU_SIM_DEVICES", "3", 1);
  setenv("CPU_SIM_MEMORY", "5M", 1);
  setenv("CPU_SIM_STRICT", "0", 1);
  const Options options = OptionsFromEnvironment().value();
  CHECK(options.devices == 3);
  CHECK(options.memory == 5 << 20);
  CHECK_FALSE(options.strict);
  for (const char* bad : {"", "0", "-1", "1T", "99999999999G", "M"}) {
    CAPTURE(bad);
    setenv("CPU_SIM_MEMORY", bad, 1);
    CHECK_FALSE(OptionsFromEnvironment().ok());
  }
  unsetenv("CPU_SIM_MEMORY");
  setenv("CPU_SIM_DEVICES", "65", 1);
  CHECK(OptionsFromEnvironment().status().message() ==
        "CPU_SIM_DEVICES=65: want a number from 0 to 64");
  unsetenv("CPU_SIM_DEVICES");
  unsetenv("CPU_SIM_STRICT");

  Options none;
  none.devices = 0;
  CHECK(Machine::Create(none).value()->CountDevices().value() == 0);
}

}  // namespace
}  // namespace cpu_sim::rt
