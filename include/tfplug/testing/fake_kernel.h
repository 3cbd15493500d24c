// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_KERNEL_H_
#define TFPLUG_TESTING_FAKE_KERNEL_H_

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/data_type.h"
#include "tfplug/testing/fake_context.h"
#include "tfplug/testing/internal/context_functions.h"
#include "tfplug/testing/kernel_registry.h"
#include "tfplug/testing/node.h"
#include "tfplug/testing/tensor.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// A kernel for a node, found in the KernelRegistry and constructed as
// TensorFlow constructs it.
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
  // Returns the kernel for `node`; NOT_FOUND if none is registered, or the
  // error of its construction.
  static absl::StatusOr<std::unique_ptr<FakeKernel>> Create(
      Node node, const std::string& device_type) {
    const auto* builder = KernelRegistry::Get().Find(node, device_type);
    if (builder == nullptr) {
      return absl::NotFoundError("no kernel for " + node.op + " on " +
                                 device_type + " matches node '" + node.name +
                                 "'; check its type attributes");
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
  // Calls delete_func, after a failed construction, too, as TensorFlow does.
  ~FakeKernel() { builder_.delete_func(kernel_); }

  const Node& node() const { return node_; }
  const capi::TF_KernelBuilder& builder() const { return builder_; }
  // Returns the object that create_func returned.
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
  // `device` is null for a kernel on the host.
  KernelRun(FakeKernel& kernel, FakeDevice* device) : kernel_(kernel) {
    context_.node = kernel.node();
    context_.device = device;
    if (device == nullptr) return;
    context_.stream = device->compute().handle();
    context_.device_id = device->ordinal();
  }
  KernelRun(const KernelRun&) = delete;
  KernelRun& operator=(const KernelRun&) = delete;

  // Adds an input with elements of type T, such as float or std::string. Set
  // `on_host` for an argument with HostMemory; strings are always in host
  // memory.
  template <class T>
  void AddInput(const Value<T>& value, bool on_host = false) {
    on_host = on_host || std::is_same_v<T, std::string>;
    auto tensor =
        MakeDeviceTensor<T>(on_host ? nullptr : context_.device, value);
    setup_.Update(tensor.status());
    AddInput(tensor.ok() ? InputSlot(*std::move(tensor), on_host)
                         : InputSlot());
  }
  // Adds a tensor, a variable, or an absent optional input.
  void AddInput(InputSlot input) {
    context_.inputs.push_back(std::move(input));
  }
  void AddOutput(DataType dtype, bool on_host = false) {
    context_.outputs.push_back({static_cast<TF_DataType>(dtype),
                                on_host || dtype == DataType::kString,
                                {}});
  }
  // Exhausts the memory after `allocations` more allocations by the kernel. See
  // also Fault, which fails a single call.
  void FailAllocationAfter(int allocations) {
    context_.allocations_left = allocations;
  }

  // Starts the kernel and calls `done` with its first failure, on this thread or,
  // for an asynchronous kernel, on any. This object must live until then.
  void Start(std::function<void(absl::Status)> done) {
    if (!setup_.ok()) return done(setup_);
    const capi::TF_KernelBuilder& builder = kernel_.builder();
    if (builder.compute_async_func != nullptr) {
      CallAsync([this, done = std::move(done)] { done(context_.failure); },
                [&](capi::TF_AsyncOpKernelDoneCallback* callback) {
                  builder.compute_async_func(kernel_.object(), &context_,
                                             callback);
                });
      return;
    }
    builder.compute_func(kernel_.object(), &context_);
    done(context_.failure);
  }
  // Runs the kernel, but does not wait for the work that it enqueued. Returns the
  // kernel's first failure; RESOURCE_EXHAUSTED if there was no memory for an input.
  absl::Status Compute() {
    auto result = std::make_shared<std::promise<absl::Status>>();
    Start([result](absl::Status status) {
      result->set_value(std::move(status));
    });
    return result->get_future().get();
  }
  // Runs the kernel and waits for the work that it enqueued. Returns the failure
  // of Compute or of the stream.
  absl::Status Run() {
    absl::Status status = Compute();
    if (context_.device != nullptr) {
      status.Update(context_.device->compute().BlockHostUntilDone());
    }
    return status;
  }

  // Returns the context, to set the step id, rendezvous, protos and so on.
  capi::TF_OpKernelContext* context() { return &context_; }
  // Returns output `i` if the kernel has set it, otherwise null.
  const capi::TF_Tensor* output(int i) const {
    const auto& tensor = context_.outputs.at(static_cast<size_t>(i)).tensor;
    return tensor.has_value() ? &*tensor : nullptr;
  }
  // Returns the value of an output, copied to the host. Call it only
  // after a run that returned OK.
  template <class T>
  Value<T> Output(int i) const {
    const OutputSlot& slot = context_.outputs.at(static_cast<size_t>(i));
    return ReadTensor<T>(slot.on_host ? nullptr : context_.device, *slot.tensor)
        .value();
  }

 private:
  FakeKernel& kernel_;
  capi::TF_OpKernelContext context_;
  absl::Status setup_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_FAKE_KERNEL_H_
