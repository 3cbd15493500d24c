// SPDX-License-Identifier: Apache-2.0
// Fuzzes the construction of the ops of FuseElementwise: whatever is in their
// attributes, a kernel is constructed and computes in its memory, or the
// construction fails. CONTRIBUTING.md describes longer runs.
//
// An input has a line for each attribute, such as those in corpus/; a line
// `shapes` has the dimensions of the inputs, as digits.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "minimal_device.h"
#include "tfplug/op_kernels/fused_map.h"
#include "tfplug/op_kernels/register.h"
#include "tfplug/primitives/reference_backend.h"
#include "tfplug/testing.h"

namespace tfplug {
namespace {

class Backend : public ReferenceBackend<minimal::Stream> {};
TFPLUG_REGISTER_DEVICE(minimal::Platform);
TFPLUG_REGISTER_BACKEND(Backend, FusedMapOps);

using Words = std::vector<std::string>;
constexpr DataType kAxes = DataType(0);  // an input in host memory

int64_t Number(const std::string& word) {
  int64_t number = 0;
  static_cast<void>(absl::SimpleAtoi(word, &number));
  return number;
}

// Returns the type of a name, or of a number, which may be none of TensorFlow's.
DataType Type(const std::string& word) {
  for (int i = 1; i < internal::kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    if (DataTypeName(type) == word) return type;
  }
  return static_cast<DataType>(Number(word) & 31);
}

// A node, and what is needed to run it.
struct Case {
  testing::Node node;
  std::vector<DataType> inputs, outputs;
  std::vector<std::vector<int64_t>> shapes;

  explicit Case(absl::string_view text) {
    node.name = "fused";
    node.op = kFusedMapOp;
    std::vector<DataType> in, after;
    DataType type = DataType::kFloat;
    const auto types_of = [](const Words& words) {
      std::vector<DataType> types;
      for (size_t i = 1; i < words.size(); ++i) types.push_back(Type(words[i]));
      return types;
    };
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      const Words words = absl::StrSplit(line, ' ');
      const std::string& name = words[0];
      const std::string rest(
          line.substr(std::min(name.size() + 1, line.size())));
      if (name == "op") {
        node.op = rest == "reduce"   ? kFusedReduceOp
                  : rest == "matmul" ? kFusedMatMulOp
                                     : kFusedMapOp;
      } else if (name == "T") {
        node.attrs[name] = type = Type(rest);
      } else if (name == "Tin") {
        node.attrs[name] = in = types_of(words);
      } else if (name == "Tafter") {
        node.attrs[name] = after = types_of(words);
      } else if (name == "Tout") {
        node.attrs[name] = outputs = types_of(words);
      } else if (name == "checks" || name == "after_checks") {
        std::vector<int64_t> numbers;
        for (size_t i = 1; i < words.size(); ++i) {
          numbers.push_back(Number(words[i]));
        }
        node.attrs[name] = numbers;
      } else if (name == "expression" || name == "after_expression" ||
                 name == "reduce") {
        node.attrs[name] = rest;
      } else if (name == "keep_dims" || name == "is_batch" ||
                 name == "transpose_a" || name == "transpose_b") {
        node.attrs[name] = rest == "true";
      } else if (name == "shapes") {
        for (size_t i = 1; i < words.size(); ++i) {
          shapes.emplace_back();
          for (char digit : words[i].substr(0, 5)) {
            shapes.back().push_back(digit >= '0' && digit <= '4' ? digit - '0'
                                                                 : 1);
          }
        }
      }
    }
    if (node.op == kFusedMatMulOp) inputs = {type, type};
    inputs.insert(inputs.end(), in.begin(), in.end());
    if (node.op == kFusedReduceOp) inputs.push_back(kAxes);
    inputs.insert(inputs.end(), after.begin(), after.end());
  }
};

// TensorFlow's part, with the device.
struct Environment {
  testing::ScopedFakeTensorFlow tensorflow;
  std::unique_ptr<testing::Host> host;
  testing::FakeDevice* device = nullptr;

  Environment() {
    auto registered = testing::Host::Register(
        &device_internal::PlatformRegistration<minimal::Platform>::InitPlugin);
    if (!registered.ok()) std::abort();
    host = *std::move(registered);
    device = *host->Device(0);
    testing::KernelRegistry::Get().Refill(&TF_InitKernel);
  }
};

void Run(testing::FakeKernel& kernel, const Case& fuzzed,
         testing::FakeDevice& device) {
  testing::KernelRun run(kernel, &device);
  for (size_t i = 0; i < fuzzed.inputs.size(); ++i) {
    if (fuzzed.inputs[i] == kAxes) {
      run.AddInput<int32_t>({{1}, {-1}}, /*on_host=*/true);
      continue;
    }
    std::vector<int64_t> dims = {2, 2};
    if (i < fuzzed.shapes.size()) dims = fuzzed.shapes[i];
    const int64_t bytes = Shape(dims).num_elements() *
                          static_cast<int64_t>(DataTypeSize(fuzzed.inputs[i]));
    capi::TF_Tensor tensor = *testing::MakeDeviceTensor<uint8_t>(
        &device, {{bytes}, std::vector<uint8_t>(size_t(bytes), 1)});
    tensor.dtype = static_cast<capi::TF_DataType>(fuzzed.inputs[i]);
    tensor.dims = dims;
    run.AddInput(testing::InputSlot(tensor, /*on_host=*/false));
  }
  for (DataType type : fuzzed.outputs) run.AddOutput(type);
  static_cast<void>(run.Run());
}

}  // namespace
}  // namespace tfplug

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const environment = new tfplug::Environment;
  const tfplug::Case fuzzed(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  auto kernel = tfplug::testing::FakeKernel::Create(fuzzed.node, "MINIMAL");
  if (kernel.ok()) tfplug::Run(**kernel, fuzzed, *environment->device);
  minimal::Trace::Get().Take();
  return 0;
}
