// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/variable_kernels.h>
#include <tfplug/kernel/variables.h>

#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "leak_checked_fake.h"

namespace tfplug::variables_test {
namespace {

using capi::TF_OpKernelContext;
using testing::LeakCheckedFake;
using testing::MakeTensor;

struct FakeStream {
  absl::Status CopyDeviceToDevice(DeviceMemory to, DeviceMemory from,
                                  uint64_t size) {
    ++copies;
    std::memcpy(to.opaque(), from.opaque(), size);
    return copy_status;
  }
  int copies = 0;
  absl::Status copy_status;
};
FakeStream stream;
[[maybe_unused]] bool update_throws = false;

struct Code : VariableCode<FakeStream> {
  static absl::Status Update(KernelContext&, VariableUpdate update, Tensor& to,
                             const Tensor& value) {
#if defined(__cpp_exceptions)
    if (update_throws) throw std::runtime_error("thrown");
#endif
    const float sign = update == VariableUpdate::kAdd ? 1 : -1;
    for (size_t i = 0; i < to.flat<float>().size(); ++i) {
      to.flat<float>()[i] += sign * value.flat<float>()[i];
    }
    return absl::OkStatus();
  }
  static absl::Status Add(KernelContext&, const Tensor& a, const Tensor& b,
                          Tensor& out) {
    out.flat<float>()[0] = a.flat<float>()[0] + b.flat<float>()[0];
    return absl::OkStatus();
  }
  static absl::Status ZerosLike(KernelContext&, const Tensor& like,
                                Tensor& out) {
    out.flat<float>()[0] = 0 * like.flat<float>()[0];
    return absl::OkStatus();
  }
};

// Input 0 is a variable with the value {1, 2}, input 1 is {10, 20}.
struct World {
  World() {
    internal::registered_platform.stream_type = internal::TypeTag<FakeStream>();
    stream = FakeStream();
    variable->value = MakeTensor<float>({2}, {1, 2});
    context.stream = reinterpret_cast<capi::SP_Stream>(&stream);
    context.inputs = {MakeTensor<float>({}, {0}),
                      MakeTensor<float>({2}, {10, 20})};
    context.inputs[0].variable = variable;
  }
  std::vector<float> value() const {
    const auto* data = static_cast<float*>(variable->value->buffer->data);
    return {data, data + variable->value->size()};
  }
  // Runs `compute` as a kernel does, and returns the status that TensorFlow
  // received.
  absl::Status Run(std::function<absl::Status(KernelContext&)> compute) {
    KernelContext c(&context);
    const absl::Status result = compute(c);
    if (!kernel_internal::HasSucceeded(c, result)) {
      kernel_internal::FailRun(c, result, &kernel_internal::UnknownOps);
    }
    CHECK(variable->locks == 0);
    return context.failure;
  }

  std::shared_ptr<testing::Variable> variable =
      std::make_shared<testing::Variable>();
  TF_OpKernelContext context;
};

const testing::FakeOptions k218 = {{2, 18}, {}};
using Floats = std::vector<float>;

TEST_CASE("assignment shares the value, or copies it for a reader") {
  LeakCheckedFake fake(k218);
  const auto assign = [](KernelContext& c) {
    return AssignVariable<Code>(c, 0, 1, true);
  };
  World world;
  CHECK(world.Run(assign).ok());
  CHECK(world.variable->value->buffer ==
        world.context.inputs[1].tensor->buffer);
  CHECK(stream.copies == 0);
  world.variable->copy_on_read = true;
  CHECK(world.Run(assign).ok());
  CHECK(world.value() == Floats{10, 20});
  CHECK(world.variable->value->buffer !=
        world.context.inputs[1].tensor->buffer);
  CHECK(stream.copies == 1);

  World other;
  other.variable->value = MakeTensor<float>({3}, {1, 2, 3});
  CHECK(absl::IsInvalidArgument(other.Run(assign)));
  CHECK(other.context.failures == 2);  // TensorFlow's own, then the kernel's
  testing::FailEachCall([&] {
    World w;
    w.variable->copy_on_read = true;
    return w.Run(assign);
  });
}

TEST_CASE("2.6 to 2.9: an assignment does not validate shapes") {
  LeakCheckedFake fake({{2, 9}, {}});
  World world;
  world.variable->value = MakeTensor<float>({3}, {1, 2, 3});
  CHECK(world
            .Run([](KernelContext& c) {
              return AssignVariable<Code>(c, 0, 1, true);
            })
            .ok());
  CHECK(world.value() == Floats{10, 20});
}

TEST_CASE("updates are done in place, or on a copy for a reader") {
  LeakCheckedFake fake(k218);
  for (const auto update :
       {&UpdateVariable<Code>,
        +[](KernelContext&c, int input, int value, VariableUpdate u) {
          return AssignUpdateVariable<Code>(c, input, value, u);
        }}) {
    World world;
    const auto add = [&](KernelContext& c) {
      return update(c, 0, 1, VariableUpdate::kAdd);
    };
    CHECK(world.Run(add).ok());
    CHECK(world.value() == Floats{11, 22});
    CHECK(stream.copies == 0);
    {
      const testing::TF_Tensor reader = *world.variable->value;
      CHECK(world
                .Run([&](KernelContext& c) {
                  return update(c, 0, 1, VariableUpdate::kSub);
                })
                .ok());
      CHECK(stream.copies == 1);
      CHECK(static_cast<float*>(reader.buffer->data)[0] == 11);
    }
    CHECK(world.value() == Floats{1, 2});

    // A variable that does not exist is an error; TensorFlow would abort.
    World gone;
    gone.context.inputs[0].variable = nullptr;
    CHECK(absl::IsInternal(gone.Run(add)));
    World wrong;
    wrong.context.inputs[1] = MakeTensor<float>({3}, {1, 2, 3});
    CHECK(absl::IsInvalidArgument(wrong.Run(add)));
    World no_copy;
    stream.copy_status = absl::ResourceExhaustedError("copy");
    const testing::TF_Tensor reader = *no_copy.variable->value;
    CHECK(absl::IsResourceExhausted(no_copy.Run(add)));
    testing::FailEachCall([&] {
      World w;
      const testing::TF_Tensor reader = *w.variable->value;
      return w.Run(add);
    });
  }
}

#if defined(__cpp_exceptions)
TEST_CASE("an exception in device code fails the run and leaks nothing") {
  LeakCheckedFake fake(k218);
  World world;
  update_throws = true;
  const absl::Status status = world.Run([](KernelContext& c) {
    return AssignUpdateVariable<Code>(c, 0, 1, VariableUpdate::kAdd);
  });
  update_throws = false;
  CHECK(status == absl::InternalError("node 'node': C++ exception: thrown"));
}
#endif

TEST_CASE("references, temporary variables and variants") {
  LeakCheckedFake fake(k218);
  const auto run = [](std::function<absl::Status(KernelContext&)> compute) {
    return [=] {
      World world;
      world.context.outputs = {{capi::TF_FLOAT, false, {}}};
      const absl::Status status = world.Run(compute);
      CHECK(world.context.outputs[0].tensor.has_value() == status.ok());
      return status;
    };
  };
  testing::FailEachCall(run([](KernelContext& c) {
    return AssignRefVariable<Code>(c, 0, 0, 1, true, true);
  }));
  testing::FailEachCall(run([](KernelContext& c) {
    return MakeTemporaryVariable(c, DataType::kFloat, {2, 2}, "tmp");
  }));
  testing::FailEachCall(run(
      [](KernelContext& c) { return DestroyTemporaryVariable(c, 0, "tmp"); }));
  testing::FailEachCall(
      run([](KernelContext& c) { return AddNVariant<Code>(c); }));
  testing::FailEachCall(
      run([](KernelContext& c) { return ZerosLikeVariant<Code>(c); }));
  CHECK(run([](KernelContext& c) { return ForwardRefInput(c, 0, 0); })().ok());
  World world;
  world.context.outputs = {{capi::TF_FLOAT, false, {}}};
  KernelContext c(&world.context);
  for (int i : {-1, 2}) {
    CHECK(absl::IsOutOfRange(ForwardRefInput(c, i, 0)));
    CHECK(absl::IsOutOfRange(ForwardRefInput(c, 0, i)));
  }
  CHECK(absl::IsInvalidArgument(DestroyTemporaryVariable(c, 9, "tmp")));
  CHECK(!c.IsRefInput(0).value());
}

// ---- The complete kernels --------------------------------------------------

template <class KernelT>
absl::Status RunKernel(World& world) {
  using Table = typename KernelT::template TableOf<KernelT>;
  capi::TF_OpKernelConstruction node = {};
  void* const kernel = Table::create_func(&node);
  Table::compute_func(kernel, &world.context);
  Table::delete_func(kernel);
  return world.context.failure;
}

TEST_CASE("complete kernels: registration by release") {
  const auto registered = [] {
    internal::registered_platform.device_type = "MY_DEVICE";
    kernel_internal::RegisteredKernels().Clear();
    RegisterVariableKernels<Code, float, double>();
    TF_InitKernel();
    std::string ops;
    for (const auto& kernel : testing::KernelRegistry::Get().kernels()) {
      ops += kernel->op + " ";
    }
    return ops;
  };
  {
    LeakCheckedFake fake(k218);
    CHECK(registered() ==
          "AssignVariableOp AssignAddVariableOp AssignSubVariableOp ");
    World world;
    CHECK(RunKernel<AssignVariableOp<Code>>(world).ok());
    World add;
    CHECK(RunKernel<AssignUpdateVariableOp<Code, VariableUpdate::kAdd>>(add)
              .ok());
    CHECK(add.value() == Floats{11, 22});
  }
  LeakCheckedFake fake({{2, 21}, {}});
  CHECK(registered() == "AssignAddVariableOp AssignSubVariableOp ");
  World world;
  const absl::Status status =
      RunKernel<AssignUpdateVariableOp<Code, VariableUpdate::kSub>>(world);
  CHECK(absl::IsUnimplemented(status));
  CHECK(status.message().find(
            "(2.21.0) lacks TF_GetInputTensorFromVariable; releases 2.6 to "
            "2.18 and from 2.22 on have it") != absl::string_view::npos);
  CHECK(status.message().find("v.assign(v - delta)") !=
        absl::string_view::npos);
  CHECK(world.value() == Floats{1, 2});
}

TEST_CASE("sums and zeros of variants succeed with an untouched status") {
  // TensorFlow 2.10 to 2.13 does not set the status, on success or on failure.
  LeakCheckedFake fake(k218);
  internal::tensorflow.TF_AddNVariant =
      [](TF_OpKernelContext*,
         void (*)(TF_OpKernelContext*, capi::TF_Tensor*, capi::TF_Tensor*,
                  capi::TF_Tensor*),
         capi::TF_Status*) {};
  internal::tensorflow.TF_ZerosLikeVariant =
      [](TF_OpKernelContext*,
         void (*)(TF_OpKernelContext*, capi::TF_Tensor*, capi::TF_Tensor*),
         capi::TF_Status*) {};
  World world;
  KernelContext c(&world.context);
  CHECK(AddNVariant<Code>(c).ok());
  CHECK(ZerosLikeVariant<Code>(c).ok());
}

TEST_CASE("TensorFlow deletes the tensors of lists from 2.22 on") {
  CHECK(!kernel_internal::DeletesTensorsOfLists(
      internal::ParseRelease("2.18.1")));
  CHECK(kernel_internal::DeletesTensorsOfLists(
      internal::ParseRelease("2.22.0-rc0")));
  CHECK(kernel_internal::DeletesTensorsOfLists(
      internal::ParseRelease("2.23.0-dev20261026")));
  CHECK(
      kernel_internal::DeletesTensorsOfLists(internal::ParseRelease("3.0.0")));
  LeakCheckedFake fake({{2, 22}, {}});
  for (auto* compute : {&AddNVariant<Code>, &ZerosLikeVariant<Code>}) {
    testing::FailEachCall([=] {
      World world;
      world.context.outputs = {{capi::TF_FLOAT, false, {}}};
      const absl::Status status = world.Run(compute);
      CHECK(world.context.outputs[0].tensor.has_value() == status.ok());
      return status;
    });
  }
}

TEST_CASE("every error for a missing C function names it") {
  LeakCheckedFake fake({{2, 21}, {}});
  World world;
  KernelContext c(&world.context);
  for (const absl::Status& status :
       {AssignVariable<Code>(c, 0, 1, true),
        AssignRefVariable<Code>(c, 0, 0, 1, true, true),
        UpdateVariable<Code>(c, 0, 1, VariableUpdate::kAdd),
        AssignUpdateVariable<Code>(c, 0, 1, VariableUpdate::kAdd),
        LockVariables<Code>(c, {0}, true).status(),
        GetVariableTensor<Code>(c, 0, true).status(), ForwardRefInput(c, 0, 0),
        MakeTemporaryVariable(c, DataType::kFloat, {}, "x"),
        DestroyTemporaryVariable(c, 0, "x"), AddNVariant<Code>(c),
        ZerosLikeVariant<Code>(c), c.IsRefInput(0).status()}) {
    CHECK(absl::IsUnimplemented(status));
    CHECK(status.message().find("to 2.18 and from 2.22 on have it") !=
          absl::string_view::npos);
  }
}

}  // namespace
}  // namespace tfplug::variables_test
