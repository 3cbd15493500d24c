// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_KERNEL_H_
#define TFPLUG_TESTING_FAKE_KERNEL_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/abi/tf_string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/testing/fake_buffer.h"
#include "tfplug/testing/fake_context.h"
#include "tfplug/testing/fake_node.h"
#include "tfplug/testing/fake_registry.h"

namespace tfplug::testing {

// A host tensor's value, for giving and taking.
template <class T>
struct Value {
  std::vector<int64_t> dims;
  std::vector<T> elements;
};

// A new tensor on `device`, or on the host if that is null; null without
// memory. The copy is done when this returns.
template <class T>
std::unique_ptr<capi::TF_Tensor> MakeTensor(FakeDevice* device,
                                            const Value<T>& value) {
  const size_t size = value.elements.size() * sizeof(T);
  auto buffer = device == nullptr ? TensorBuffer::OnHost(size)
                                  : AllocateOnDevice(*device, size);
  if (buffer == nullptr) return nullptr;
  if (size > 0 && device == nullptr) {
    std::memcpy(buffer->data, value.elements.data(), size);
  } else if (size > 0 &&
             !device
                  ->CopyHostToDevice(DeviceMemory(buffer->data, size),
                                     value.elements.data(), size)
                  .ok()) {
    return nullptr;
  }
  return std::make_unique<capi::TF_Tensor>(
      static_cast<capi::TF_DataType>(DataTypeOf<T>()), value.dims,
      std::move(buffer));
}

// A kernel for a node, found among those that were registered and made as core
// makes it. Destroys the plug-in's object.
//
//   auto kernel = FakeKernel::Create({"Relu", "r", {{"T", DataType::kFloat}}},
//                                    "MY_DEVICE").value();
//   KernelRun run(*kernel, &device);
//   run.AddInput<float>({{2}, {-1, 1}});
//   run.AddOutput(DataType::kFloat);
//   CHECK(run.Run().ok());
//   CHECK(run.Output<float>(0).elements == std::vector<float>{0, 1});
class FakeKernel {
 public:
  static absl::StatusOr<std::unique_ptr<FakeKernel>> Create(
      Node node, const std::string& device_type) {
    const auto* builder = KernelRegistry::Get().Find(node, device_type);
    if (builder == nullptr) {
      return absl::NotFoundError("no kernel of " + node.op + " for " +
                                 device_type + " and these types");
    }
    std::unique_ptr<FakeKernel> kernel(
        new FakeKernel(std::move(node), *builder));
    capi::TF_OpKernelConstruction construction{kernel->node_, {}};
    kernel->kernel_ = builder->create_func(&construction);
    if (!construction.failure.ok()) return construction.failure;
    return kernel;
  }
  FakeKernel(const FakeKernel&) = delete;
  FakeKernel& operator=(const FakeKernel&) = delete;
  // As core: also when the construction failed.
  ~FakeKernel() { builder_.delete_func(kernel_); }

  const Node& node() const { return node_; }
  const capi::TF_KernelBuilder& builder() const { return builder_; }
  void* object() const { return kernel_; }

 private:
  FakeKernel(Node node, const capi::TF_KernelBuilder& builder)
      : node_(std::move(node)), builder_(builder) {}

  const Node node_;
  const capi::TF_KernelBuilder& builder_;
  void* kernel_ = nullptr;
};

// One run of a kernel.
class KernelRun {
 public:
  KernelRun(FakeKernel& kernel, FakeDevice* device)
      : kernel_(kernel), context_{kernel.node(), device, {}, {}, {}} {}
  KernelRun(const KernelRun&) = delete;
  KernelRun& operator=(const KernelRun&) = delete;

  // The next input. `on_host`: an argument with HostMemory.
  template <class T>
  void AddInput(const Value<T>& value, bool on_host = false) {
    AddInput(MakeTensor<T>(on_host ? nullptr : context_.device, value));
  }
  void AddInput(std::unique_ptr<capi::TF_Tensor> tensor) {
    context_.inputs.push_back(std::move(tensor));
  }
  void AddOutput(DataType dtype, bool on_host = false) {
    context_.outputs.push_back(
        {static_cast<capi::TF_DataType>(dtype), on_host, nullptr});
  }
  // After this many more allocations of the kernel there is no memory.
  void FailAllocationAfter(int allocations) {
    context_.allocations_left = allocations;
  }

  // Runs the kernel, and waits for what it has put on the stream.
  absl::Status Run() {
    const capi::TF_KernelBuilder& builder = kernel_.builder();
    if (builder.compute_async_func != nullptr) {
      auto done = std::make_shared<std::promise<void>>();
      std::function<void()> callback = [done] { done->set_value(); };
      builder.compute_async_func(
          kernel_.object(), &context_,
          reinterpret_cast<capi::TF_AsyncOpKernelDoneCallback*>(&callback));
      callback = nullptr;  // Core's does not outlive the call either.
      done->get_future().wait();
    } else {
      builder.compute_func(kernel_.object(), &context_);
    }
    absl::Status status = context_.failure;
    if (context_.device != nullptr) {
      status.Update(context_.device->compute().BlockHostUntilDone());
    }
    return status;
  }

  capi::TF_OpKernelContext* context() { return &context_; }
  const capi::TF_Tensor* output(int i) const {
    return context_.outputs.at(static_cast<size_t>(i)).tensor.get();
  }
  // Output `i`, copied to the host. Only after an OK run.
  template <class T>
  Value<T> Output(int i) const {
    const capi::TF_Tensor& tensor = *output(i);
    Value<T> value{tensor.dims, {}};
    const size_t size = tensor.buffer->size;
    value.elements.resize(size / sizeof(T));
    const OutputSlot& slot = context_.outputs[static_cast<size_t>(i)];
    if (size > 0 && (slot.on_host || context_.device == nullptr)) {
      std::memcpy(value.elements.data(), tensor.buffer->data, size);
    } else if (size > 0) {
      context_.device
          ->CopyDeviceToHost(value.elements.data(),
                             DeviceMemory(tensor.buffer->data, size), size)
          .IgnoreError();
    }
    return value;
  }

 private:
  FakeKernel& kernel_;
  capi::TF_OpKernelContext context_;
};

TFPLUG_TESTING_CORE_FUNCTION void TF_RunAsyncOpKernelDoneCallback(
    capi::TF_AsyncOpKernelDoneCallback* done) {
  (*reinterpret_cast<std::function<void()>*>(done))();
}

// The version of the core that is played, "2.21.0".
inline std::string& PlayedVersion() {
  static auto* const version = new std::string;
  return *version;
}
TFPLUG_TESTING_CORE_FUNCTION const char* TF_Version() {
  return PlayedVersion().c_str();
}

inline void InstallKernelFunctions(capi::Functions& core) {
  InstallTensorFunctions(core);
  InstallNodeFunctions(core);
  InstallBufferFunctions(core);
  InstallRegistryFunctions(core);
  InstallContextFunctions(core);
  core.TF_RunAsyncOpKernelDoneCallback = &TF_RunAsyncOpKernelDoneCallback;
  core.TF_Version = &TF_Version;
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTING_FAKE_KERNEL_H_
