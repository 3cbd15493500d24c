// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "runtime/machine.h"
#include "runtime/stream.h"

namespace cpu_sim::rt::device_test {
namespace {

std::unique_ptr<Machine> MakeMachine(bool strict = true) {
  Options options;
  options.memory = 1 << 20;
  options.strict = strict;
  return Machine::Create(options).value();
}

sigjmp_buf after_fault;

// Returns whether touch() accesses memory that this process cannot access.
template <typename F>
bool Faults(F touch) {
  struct sigaction handler = {}, previous;
  handler.sa_handler = [](int) { siglongjmp(after_fault, 1); };
  sigaction(SIGSEGV, &handler, &previous);
  const bool faults = sigsetjmp(after_fault, /*savesigs=*/1) != 0;
  if (!faults) touch();
  sigaction(SIGSEGV, &previous, nullptr);
  return faults;
}

bool FaultsAt(const volatile char* address) {
  return Faults([=] { (void)*address; });
}

// Runs check() in a forked child, and returns whether check() returned true
// within 20 seconds.
template <typename F>
bool HoldsInChild(F check) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(check() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_CASE("Device: copies preserve the data") {
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

TEST_CASE("Device: the host cannot access strict memory") {
  for (const bool strict : {true, false}) {
    CAPTURE(strict);
    const auto machine = MakeMachine(strict);
    Device& device = *machine->GetDevice(0).value();
    auto* address = static_cast<volatile char*>(device.Allocate(8).value());
    CHECK(Faults([=] { address[0] = 1; }) == strict);
    CHECK(FaultsAt(address + 7) == strict);
  }
}

TEST_CASE("Device: guard regions surround its memory") {
  const auto machine = MakeMachine(/*strict=*/false);
  Device& device = *machine->GetDevice(0).value();
  constexpr size_t kSize = 1 << 20, kGuard = Arena::kGuardBytes;
  auto* const memory = static_cast<char*>(device.Allocate(kSize).value());
  auto* const managed =
      static_cast<char*>(device.AllocateManaged(kSize).value());
  auto* const on_device =
      static_cast<char*>(device.ToPrivate(memory, kSize).value());
  for (const char* first : {memory, managed, on_device}) {
    CHECK_FALSE(FaultsAt(first));
    CHECK_FALSE(FaultsAt(first + kSize - 1));
    CHECK(FaultsAt(first - 1));
    CHECK(FaultsAt(first - kGuard));
    CHECK(FaultsAt(first + kSize));
    CHECK(FaultsAt(first + kSize + kGuard - 1));
  }
}

TEST_CASE("Device: a forked child has no access, and every call fails") {
  const auto machine = MakeMachine(/*strict=*/false);
  Device& device = *machine->GetDevice(0).value();
  auto* const memory = static_cast<char*>(device.Allocate(16).value());
  auto stream = Stream::Create(device).value();
  Event event;
  Timer timer;
  char host[16] = {7};
  REQUIRE(stream->CopyToDevice(memory, host, 16).ok());
  REQUIRE(stream->Record(event).ok());
  REQUIRE(stream->Synchronize().ok());
  CHECK(HoldsInChild([=] { return FaultsAt(memory); }));
  CHECK(HoldsInChild([&] {
    for (const absl::Status& status :
         {device.Allocate(16).status(), device.Free(memory),
          device.Synchronize(), device.CopyToHost(host, memory, 16),
          stream->CopyToDevice(memory, host, 16), stream->Synchronize(),
          stream->Launch([] {}), stream->RunOnHost([] {}),
          stream->Record(event), stream->WaitFor(event), event.Synchronize(),
          timer.Nanoseconds().status(), Stream::Create(device).status(),
          machine->GetDevice(0).status()}) {
      if (status.code() != absl::StatusCode::kFailedPrecondition) return false;
    }
    stream.reset();  // does not wait for the missing thread
    return true;
  }));
  CHECK(stream->CopyToHost(host, memory, 16).ok());
  CHECK(stream->Synchronize().ok());
  CHECK(host[0] == 7);
}

TEST_CASE("Device: host and device share managed memory") {
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
  // The host range of a copy must not contain device memory.
  CHECK_FALSE(device.CopyToDevice(all, all + 16, 16).ok());
  CHECK_FALSE(device.CopyToHost(all, all + 16, 16).ok());
  CHECK_FALSE(device.CopyToDevice(all, all - 8, 16).ok());
  CHECK_FALSE(device.CopyToHost(all - 15, all, 16).ok());
  CHECK_FALSE(device.CopyToHost(all - 16, all, 1 << 20).ok());
  CHECK_FALSE(machine->GetDevice(1).value()->CheckHostRange(all, 1).ok());
  CHECK(device.CheckHostRange(all - 16, 16).ok());
  CHECK(device.CheckHostRange(all + (1 << 20), 16).ok());
  // A kernel of one device cannot access another device's memory.
  CHECK_FALSE(machine->GetDevice(1).value()->ToPrivate(all, 16).ok());
  CHECK(device.Allocate(1).status().code() ==
        absl::StatusCode::kResourceExhausted);
  CHECK_FALSE(device.Free(all + 256).ok());
  CHECK_FALSE(device.Free(host).ok());
}

TEST_CASE("Device: 0 bytes are a valid size") {
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

TEST_CASE("Canaries: writes beside a block are found, and memory is poisoned") {
  constexpr size_t kBytes = 40, kSide = Canaries::kBytes;
  std::vector<uint8_t> memory(kBytes + 2 * kSide);
  uint8_t* const block = memory.data() + kSide;
  Canaries canaries;
  const auto change_after_write = [&](std::ptrdiff_t at) {
    canaries.Place(block, kBytes);
    block[at] = 0;
    return canaries.Remove(block);
  };
  CHECK(change_after_write(0) == "");
  CHECK(change_after_write(kBytes - 1) == "");
  CHECK(change_after_write(kBytes) ==
        "byte 0 after a block of 40 bytes was overwritten");
  CHECK(change_after_write(kBytes + kSide - 1) ==
        "byte 1023 after a block of 40 bytes was overwritten");
  CHECK(change_after_write(-1) ==
        "byte 1 before a block of 40 bytes was overwritten");
  CHECK(change_after_write(-static_cast<std::ptrdiff_t>(kSide)) ==
        "byte 1024 before a block of 40 bytes was overwritten");
  for (const uint8_t byte : memory) CHECK(byte == Canaries::kPoison);
}

TEST_CASE("Device: memory with canaries") {
  Options options;
  options.devices = 1;
  options.memory = 1 << 20;
  options.strict = false;
  options.canaries = true;
  const auto machine = Machine::Create(options).value();
  Device& device = *machine->GetDevice(0).value();
  CHECK(device.has_canaries());
  for (const size_t bytes : {size_t{1}, size_t{1000}, size_t{1} << 16}) {
    auto* const block = static_cast<uint8_t*>(device.Allocate(bytes).value());
    CHECK(reinterpret_cast<uintptr_t>(block) % 256 == 0);
    uint8_t byte = 0;
    CHECK(device.CopyToHost(&byte, block + bytes - 1, 1).ok());
    CHECK(byte == Canaries::kPoison);
    CHECK(device.Free(block).ok());
    CHECK_FALSE(device.Free(block).ok());
  }
  CHECK(device.Stats()->in_use == 0);
  CHECK_FALSE(device.Allocate(options.memory).ok());
  CHECK_FALSE(device.Allocate(~size_t{0}).ok());
  CHECK(device.Allocate(0).value() == nullptr);
  CHECK(device.Free(nullptr).ok());
}

TEST_CASE("Machine: options are read from the environment") {
  CHECK(OptionsFromEnvironment()->devices == 2);
  CHECK(OptionsFromEnvironment()->strict);
  setenv("CPU_SIM_DEVICES", "3", 1);
  setenv("CPU_SIM_MEMORY", "5M", 1);
  setenv("CPU_SIM_STRICT", "0", 1);
  const Options options = OptionsFromEnvironment().value();
  CHECK(options.devices == 3);
  CHECK(options.memory == 5 << 20);
  CHECK_FALSE(options.strict);
  CHECK_FALSE(options.canaries);
  for (const char* bad : {"", "0", "-1", "1T", "99999999999G", "M"}) {
    CAPTURE(bad);
    setenv("CPU_SIM_MEMORY", bad, 1);
    CHECK_FALSE(OptionsFromEnvironment().ok());
  }
  unsetenv("CPU_SIM_MEMORY");
  setenv("CPU_SIM_DEVICES", "65", 1);
  CHECK(OptionsFromEnvironment().status().message() ==
        "CPU_SIM_DEVICES=65 is invalid; expected a number from 0 to 64");
  unsetenv("CPU_SIM_DEVICES");
  unsetenv("CPU_SIM_STRICT");

  Options none;
  none.devices = 0;
  CHECK(Machine::Create(none).value()->GetDevice(0).status().code() ==
        absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace cpu_sim::rt::device_test
