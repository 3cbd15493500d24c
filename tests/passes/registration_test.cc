// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/graph_pass.h>
#include <tfplug/kernel/kernel.h>
#include <tfplug/kernel/register_kernel.h>

#include <algorithm>
#include <string>
#include <vector>

#include "leak_checked_fake.h"
#include "tfplug/testing/graph_host.h"

namespace tfplug::registration_test {
namespace {

using testing::GraphHost;
using testing::LeakCheckedFake;
using testing::Release;

struct NoKernel : Kernel {
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

struct Mine : GraphOptimizer<> {
  static constexpr char kDeviceType[] = "SIM";
  static OptimizerSettings Settings() { return settings; }
  static inline OptimizerSettings settings;
};
struct Cpu : GraphOptimizer<> {
  [[maybe_unused]] static constexpr char kDeviceType[] = "CPU";
};

template <class OptimizerT = Mine>
absl::StatusOr<std::unique_ptr<GraphHost>> Register(
    Release release = capi::kNewestRelease) {
  return GraphHost::Register(
      &passes_internal::OptimizerRegistration<OptimizerT>::InitGraph, release);
}

struct Scope {
  Scope() { kernel_internal::RegisteredKernels().Clear(); }
  ~Scope() {
    kernel_internal::RegisteredKernels().Clear();
    Mine::settings = {};
  }
  template <class... Types>
  void AddKernel(const char* op) {
    RegisterKernel<NoKernel>(
        KernelDef(op).Device("SIM").TypeConstraint<Types...>("T"));
  }
};

TEST_CASE("every setting fills the field of its name, in every layout") {
  Scope scope;
  using S = OptimizerSettings;
  using C = capi::TP_OptimizerConfigs;
  struct Pair {
    Toggle S::*setting;
    capi::TF_TriState C::*field;
    int since;
  };
#define PAIR(name, since) \
  { &S::name, &C::name, since }
  const std::vector<Pair> pairs = {
      PAIR(disable_model_pruning, 6),
      PAIR(implementation_selector, 6),
      PAIR(function_optimization, 6),
      PAIR(common_subgraph_elimination, 6),
      PAIR(arithmetic_optimization, 6),
      PAIR(debug_stripper, 6),
      PAIR(constant_folding, 6),
      PAIR(shape_optimization, 6),
      PAIR(auto_mixed_precision, 6),
      PAIR(auto_mixed_precision_onednn_bfloat16, 10),
      PAIR(auto_mixed_precision_mkl, 6),
      PAIR(pin_to_host_optimization, 6),
      PAIR(layout_optimizer, 6),
      PAIR(remapping, 6),
      PAIR(loop_optimization, 6),
      PAIR(dependency_optimization, 6),
      PAIR(auto_parallel, 6),
      PAIR(memory_optimization, 6),
      PAIR(scoped_allocator_optimization, 6),
  };
#undef PAIR
  // All fields: the struct has no others after struct_size and ext.
  CHECK(16 + pairs.size() * sizeof(capi::TF_TriState) ==
        capi::StructInfo<C>::kSize);
  for (const Release release :
       {Release{2, 6}, Release{2, 9}, Release{2, 10}, Release{2, 21}}) {
    LeakCheckedFake fake({release, {}});
    for (const Pair& set : pairs) {
      for (const Toggle value : {Toggle::kOn, Toggle::kOff}) {
        Mine::settings = {};
        Mine::settings.*set.setting = value;
        const auto host = Register(release);
        REQUIRE_MESSAGE(host.ok(), host.status().ToString());
        const C configs = (*host)->configs();
        for (const Pair& seen : pairs) {
          const bool is_it =
              seen.field == set.field && release.minor >= set.since;
          CHECK(static_cast<int>(configs.*seen.field) ==
                (is_it ? static_cast<int>(value) : 0));
        }
      }
    }
  }
}

TEST_CASE("a TensorFlow with another version of the C API is rejected") {
  LeakCheckedFake fake;
  const auto other = GraphHost::Register(
      &passes_internal::OptimizerRegistration<Mine>::InitGraph,
      testing::Release{2, 21}, 1);
  CHECK(absl::IsFailedPrecondition(other.status()));
  CHECK(other.status().message() ==
        "TF_InitGraph: this TensorFlow has version 1 of the graph C API, but "
        "this plug-in was built for version 0; rebuild it with a newer tfplug");
  capi::TP_OptimizerRegistrationParams params = {};
  params.struct_size = 8;
  CHECK(absl::IsFailedPrecondition(testing::CallWithStatus(
      &passes_internal::OptimizerRegistration<Mine>::InitGraph, &params)));
}

#if defined(__cpp_exceptions)
struct Throwing : GraphOptimizer<> {
  static constexpr char kDeviceType[] = "SIM";
  static OptimizerSettings Settings() { throw std::bad_alloc(); }
};
TEST_CASE("an exception from Settings() is reported") {
  LeakCheckedFake fake;
  CHECK(absl::IsResourceExhausted(Register<Throwing>().status()));
}
#endif

TEST_CASE("2.5 calls optimize_func without an item") {
  LeakCheckedFake fake({{2, 5}, {}});
  static testing::TF_GrapplerItem item;
  internal::tensorflow.TF_GetGrapplerItem = [](capi::TF_Buffer*,
                                               capi::TF_Status* s) {
    testing::TF_SetStatus(s, capi::TF_OK, "");
    return static_cast<const capi::TF_GrapplerItem*>(&item);
  };
  const auto table = [] {
    capi::TP_Optimizer optimizer = {};
    optimizer.struct_size = capi::StructInfo<capi::TP_Optimizer>::kSize;
    capi::TP_OptimizerConfigs configs = {};
    configs.struct_size = 88;
    capi::TP_OptimizerRegistrationParams params = {};
    params.struct_size = sizeof(params);
    params.optimizer = &optimizer;
    params.optimizer_configs = &configs;
    CHECK(testing::CallWithStatus(
              &passes_internal::OptimizerRegistration<Mine>::InitGraph, &params)
              .ok());
    return reinterpret_cast<const capi::TP_Optimizer_2_5&>(optimizer);
  }();
  void* const optimizer = table.create_func();
  capi::TF_Buffer in = {"", 0, nullptr}, out = {nullptr, 0, nullptr};
  CHECK(absl::IsAborted(
      testing::CallWithStatus(table.optimize_func, optimizer, &in, &out)));
  table.destroy_func(optimizer);
}

}  // namespace
}  // namespace tfplug::registration_test
