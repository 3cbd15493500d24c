// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_PRIMITIVE_RUN_H_
#define TFPLUG_TESTING_INTERNAL_PRIMITIVE_RUN_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tfplug/primitives/reference_backend.h"
#include "tfplug/testing/fake_device.h"
#include "tfplug/testing/internal/crash_report.h"
#include "tfplug/testing/internal/primitive_case.h"
#include "tfplug/testing/internal/random_views.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// Temporary device memory, freed with this object.
class DeviceScratch : public Scratch {
 public:
  explicit DeviceScratch(FakeDevice& device) : device_(device) {}
  DeviceScratch(const DeviceScratch&) = delete;
  DeviceScratch& operator=(const DeviceScratch&) = delete;
  ~DeviceScratch() override {
    for (const DeviceMemory memory : blocks_) device_.Deallocate(memory);
  }

  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    blocks_.push_back(device_.Allocate(static_cast<uint64_t>(bytes) + 1));
    if (blocks_.back().opaque() != nullptr) return blocks_.back().opaque();
    blocks_.pop_back();
    return absl::ResourceExhaustedError("the device has no memory left");
  }
  absl::StatusOr<DeviceMemory> AllocateMemory(int64_t bytes) {
    const absl::StatusOr<void*> memory = Allocate(bytes);
    if (!memory.ok()) return memory.status();
    return blocks_.back();
  }

 private:
  FakeDevice& device_;
  std::vector<DeviceMemory> blocks_;
};

// Launches primitives on a device and, for comparison, on the host.
class PrimitiveRun {
 public:
  // `make_launcher` returns the backend's launcher for the compute stream.
  PrimitiveRun(FakeDevice& device,
               std::function<Launcher(Scratch&)> make_launcher,
               bool has_denormals)
      : device_(device),
        make_launcher_(std::move(make_launcher)),
        has_denormals_(has_denormals) {}

  // Returns the launch and its first difference from the reference; "" if there
  // is none.
  std::string Check(const PrimitiveCase& made) {
    std::vector<std::vector<char>> found(made.arrays.size());
    if (auto status = RunOnDevice(made, &found); !status.ok()) {
      return Describe(made, "It returned " + status.ToString());
    }
    std::vector<std::vector<char>> expected;
    std::vector<Operand> operands;
    for (const TestArray& array : made.arrays) expected.push_back(array.bytes);
    for (size_t k = 0; k < made.arrays.size(); ++k) {
      operands.push_back(ViewAt(made.arrays[k], expected[k].data()));
    }
    Reference reference;
    if (auto s = made.launch(reference.launcher, operands); !s.ok()) {
      return Describe(made, "The reference returned " + s.ToString());
    }
    for (size_t k = 0; k < made.arrays.size(); ++k) {
      const std::string difference = Compare(made, k, found[k], expected[k]);
      if (!difference.empty()) return Describe(made, difference);
    }
    return "";
  }

 private:
  static Operand ViewAt(const TestArray& array, void* memory) {
    Operand view = array.view;
    view.data = memory;
    if (view.has_memory()) view.Advance(array.first);
    return view;
  }

  absl::Status RunOnDevice(const PrimitiveCase& made,
                           std::vector<std::vector<char>>* found) {
    DeviceScratch scratch(device_);
    std::vector<DeviceMemory> memory(made.arrays.size());
    std::vector<Operand> operands;
    for (size_t k = 0; k < made.arrays.size(); ++k) {
      const TestArray& array = made.arrays[k];
      if (!array.bytes.empty()) {
        auto block =
            scratch.AllocateMemory(static_cast<int64_t>(array.bytes.size()));
        if (!block.ok()) return block.status();
        memory[k] = *block;
        if (auto status = device_.CopyHostToDevice(
                memory[k], array.bytes.data(), array.bytes.size());
            !status.ok()) {
          return status;
        }
      }
      operands.push_back(ViewAt(array, memory[k].opaque()));
    }
    const CrashReport report(
        "\n" +
        Describe(made,
                 "The process crashes. Does code on the host use the "
                 "device's memory, a task an argument that is gone, or "
                 "an address that the device did not look up?",
                 "The launch: ") +
        "\n");
    Launcher launcher = make_launcher_(scratch);
    absl::Status status = made.launch(launcher, operands);
    // The memory must live until the work is done.
    status.Update(device_.compute().BlockHostUntilDone());
    for (size_t k = 0; k < made.arrays.size(); ++k) {
      (*found)[k].resize(made.arrays[k].bytes.size());
      if (!status.ok() || (*found)[k].empty()) continue;
      status.Update(device_.CopyDeviceToHost((*found)[k].data(), memory[k],
                                             (*found)[k].size()));
    }
    return status;
  }

  // Returns the first difference of array `k`.
  std::string Compare(const PrimitiveCase& made, size_t k,
                      const std::vector<char>& found,
                      const std::vector<char>& expected) const {
    if (found == expected) return "";
    const TestArray& array = made.arrays[k];
    const auto size = static_cast<int64_t>(found.size() / array.element_size());
    for (int64_t i = 0; i < size; ++i) {
      const uint64_t got = array.BitsAt(found.data(), i);
      const uint64_t want = array.BitsAt(expected.data(), i);
      if (got == want || IsClose(made, array.view.type, got, want)) continue;
      return Where(made, k, i - array.first) + " is " +
             ValueText(array.view.type, got) + " instead of " +
             ValueText(array.view.type, want) +
             AllowedText(made, array.view.type, got, want) + ".";
    }
    return "";
  }

  // Returns " (7 ulps; 3 are allowed)", "" if no error is.
  static std::string AllowedText(const PrimitiveCase& made, DataType type,
                                 uint64_t got, uint64_t want) {
    if (!IsFloat(type) || (made.ulps == 0 && made.absolute == 0)) return "";
    return absl::StrCat(
        " (", UlpDistance(type, got, want), " ulps; ", made.ulps,
        " are allowed",
        made.absolute > 0 ? absl::StrCat(", or a difference of ", made.absolute)
                          : "",
        ")");
  }

  bool IsClose(const PrimitiveCase& made, DataType type, uint64_t got,
               uint64_t want) const {
    const double ulps = IsFloat(type) ? made.ulps : 0;
    if (UlpDistance(type, got, want) <= ulps) return true;
    if (!IsFloat(type)) return false;
    const double x = NumberOf(type, got), y = NumberOf(type, want);
    if (std::fabs(x - y) <= made.absolute) return true;
    const uint64_t magnitude = want & LowBits(TypeBits(type) - 1);
    return !has_denormals_ && x == 0 &&
           magnitude <= LowBits(MantissaBits(type));
  }

  // Returns "Element [1, 2] of operand 3".
  static std::string Where(const PrimitiveCase& made, size_t k,
                           int64_t offset) {
    const TestArray& array = made.arrays[k];
    std::string text;
    const Dims dims(array.view.dims.begin(),
                    array.view.dims.begin() + array.view.rank);
    ForEachIndex(dims, [&](const Dims& index) {
      if (!text.empty() || OffsetOf(array.view, index) != offset) return;
      text = "Element [";
      for (const int64_t i : index) {
        text += (text.back() == '[' ? "" : ", ") + std::to_string(i);
      }
      text += "] of operand " + std::to_string(k);
      std::string inputs;
      for (size_t input = 0; input < made.arrays.size(); ++input) {
        const std::string value = ValueAt(made.arrays[input], dims, index);
        if (value.empty()) continue;
        inputs += (inputs.empty() ? "operand " : ", operand ") +
                  std::to_string(input) + ": " + value;
      }
      if (!inputs.empty()) text += " (" + inputs + ")";
    });
    return text.empty() ? "Memory beside operand " + std::to_string(k) : text;
  }
  // Returns the value of an input with these dimensions, else "".
  static std::string ValueAt(const TestArray& array, const Dims& dims,
                             const Dims& index) {
    const bool has_dims =
        array.view.rank == static_cast<int>(dims.size()) &&
        std::equal(dims.begin(), dims.end(), array.view.dims.begin());
    if (array.is_output || !has_dims || !array.view.has_memory()) return "";
    return ValueText(array.view.type,
                     array.BitsAt(array.bytes.data(),
                                  array.first + OffsetOf(array.view, index)));
  }

  static std::string Describe(
      const PrimitiveCase& made, const std::string& difference,
      const char* launch = "The smallest launch found: ") {
    std::string text = std::string("the backend does not conform. ") + launch +
                       made.text + "\n";
    for (size_t k = 0; k < made.arrays.size(); ++k) {
      text += "operand " + std::to_string(k) + ": " +
              ViewText(made.arrays[k].view) +
              (made.arrays[k].is_output ? ", an output" : "") + "\n";
    }
    return text + difference;
  }

  FakeDevice& device_;
  const std::function<Launcher(Scratch&)> make_launcher_;
  const bool has_denormals_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_PRIMITIVE_RUN_H_
