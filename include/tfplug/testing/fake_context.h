// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_CONTEXT_H_
#define TFPLUG_TESTING_FAKE_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/testing/node.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

class FakeDevice;
class FakeRendezvous;

// A resource variable.
struct Variable {
  std::optional<TF_Tensor> value;
  // True if readers get copies; set by sparse updates.
  bool copy_on_read = false;
  int locks = 0;
};

// An input of a kernel: a tensor, a variable or, by default, an absent optional
// input.
struct InputSlot {
  InputSlot() = default;
  InputSlot(TF_Tensor tensor, bool on_host = false)
      : tensor(std::move(tensor)), on_host(on_host) {}
  // A resource. If `variable` is null, the handle refers to no variable.
  InputSlot(std::shared_ptr<Variable> variable)
      : tensor(TF_Tensor(capi::TF_RESOURCE, {}, TensorBuffer::OnHost(0))),
        on_host(true),
        variable(std::move(variable)) {}

  std::optional<TF_Tensor> tensor;
  bool on_host = false;
  std::shared_ptr<Variable> variable;
};

// An output of a kernel.
struct OutputSlot {
  TF_DataType dtype;
  bool on_host = false;
  std::optional<TF_Tensor> tensor;  // set by the kernel
};

}  // namespace tfplug::testing

namespace tfplug::capi {

// One run of a kernel. The kernel can query the first group of fields.
// KernelRun sets node, device, inputs and outputs; a test may change every
// field.
struct TF_OpKernelContext {
  testing::Node node;
  std::vector<testing::InputSlot> inputs;
  std::vector<testing::OutputSlot> outputs;
  // Null for a kernel on the host; all memory is then host memory.
  testing::FakeDevice* device = nullptr;
  SP_Stream stream = nullptr;
  int device_id = 0;
  std::string device_name = "/device:MY_DEVICE:0";
  std::string container = "localhost";
  std::vector<std::string> requested_inputs;
  // Serialized protos.
  std::string function_library, config, resource_handle;
  int64_t step_id = 1, iteration_id = 0;
  uint64_t frame_id = 0;
  int graph_def_version = 0;
  testing::FakeRendezvous* rendezvous = nullptr;
  // The number of allocations that succeed before the memory is exhausted; -1
  // for no limit.
  int allocations_left = -1;

  // The effects of the run.
  absl::Status failure;  // the first reported failure
  int failures = 0;
  int deferred_ops = 0, max_deferred_ops = 0;
  int forwarded = 0, temporaries = 0, host_temporaries = 0;
};

}  // namespace tfplug::capi

namespace tfplug::testing {

using capi::TF_OpKernelContext;

inline bool IsInput(const TF_OpKernelContext* context, int i) {
  return i >= 0 && static_cast<size_t>(i) < context->inputs.size();
}
inline bool IsOutput(const TF_OpKernelContext* context, int i) {
  return i >= 0 && static_cast<size_t>(i) < context->outputs.size();
}
// Return the input or output; the index must be valid.
inline InputSlot& GetInputSlot(TF_OpKernelContext* context, int i) {
  return context->inputs[static_cast<size_t>(i)];
}
inline OutputSlot& GetOutputSlot(TF_OpKernelContext* context, int i) {
  return context->outputs[static_cast<size_t>(i)];
}
// Reports a failure of the run.
inline void FailRun(TF_OpKernelContext* context, const absl::Status& status) {
  context->failure.Update(status);
  ++context->failures;
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_FAKE_CONTEXT_H_
