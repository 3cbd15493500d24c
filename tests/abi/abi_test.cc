// SPDX-License-Identifier: Apache-2.0
#include "tfplug/abi/abi.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tfplug/abi/function_info.h"

namespace tfplug::capi::abi_test {
namespace {

// Fills the bytes after struct_size with different values.
template <class Struct>
Struct Distinct() {
  Struct result;
  auto* bytes = reinterpret_cast<unsigned char*>(&result);
  for (size_t i = 0; i < sizeof(result); ++i) bytes[i] = 1 + i % 251;
  result.struct_size = StructInfo<Struct>::kSize;
  return result;
}

TEST_CASE("the last layout is the newest; kSize is its struct_size") {
  CHECK(StructInfo<SP_StreamExecutor>::kSize == sizeof(SP_StreamExecutor));
  CHECK(StructInfo<SP_StreamExecutor>::kLayouts[2].size == 296);
  CHECK(StructInfo<SP_StreamExecutor>::kLayouts[2].last == std::string());
  // struct_size excludes the padding at the end.
  CHECK(StructInfo<SP_Platform>::kSize == 35);
  CHECK(sizeof(SP_Platform) == 40);
  CHECK(SP_PLATFORM_STRUCT_SIZE == 35);
  CHECK(SP_STREAMEXECUTOR_STRUCT_SIZE == 296);
  CHECK(SP_ALLOCATORSTATS_STRUCT_SIZE == 96);
  CHECK(TP_OPTIMIZER_CONFIGS_STRUCT_SIZE == 92);
}

TEST_CASE("a layout is a prefix unless a field was inserted in the middle") {
  CHECK_FALSE(StructInfo<SP_StreamExecutor>::kLayouts[0].is_prefix);
  CHECK(StructInfo<SP_StreamExecutor>::kLayouts[1].is_prefix);
  CHECK_FALSE(StructInfo<TP_OptimizerConfigs>::kLayouts[0].is_prefix);
  CHECK(StructInfo<SP_Platform>::kLayouts[0].is_prefix);
}

TEST_CASE("the stream executor of 2.5 is filled by field name") {
  const auto newest = Distinct<SP_StreamExecutor>();
  SP_StreamExecutor_2_5 old;
  std::memset(&old, 0xee, sizeof(old));
  CopyTo(old, newest);
  CHECK(old.struct_size == 264);
  CHECK((old.allocate == newest.allocate));
  CHECK((old.synchronize_all_activity == newest.synchronize_all_activity));
  // The newest layout has this field 24 bytes later.
  CHECK((old.host_callback == newest.host_callback));
  CHECK(offsetof(SP_StreamExecutor_2_5, host_callback) == 256);
  CHECK(offsetof(SP_StreamExecutor, host_callback) == 280);
}

TEST_CASE("the optimizer settings of 2.5 are filled by field name") {
  TP_OptimizerConfigs newest = {};
  newest.auto_mixed_precision = TF_TriState_Off;
  newest.auto_mixed_precision_onednn_bfloat16 = TF_TriState_Off;
  newest.auto_mixed_precision_mkl = TF_TriState_On;
  newest.scoped_allocator_optimization = TF_TriState_Off;
  TP_OptimizerConfigs_2_5 old;
  std::memset(&old, 0xee, sizeof(old));
  CopyTo(old, newest);
  CHECK(old.struct_size == 88);
  CHECK(old.auto_mixed_precision == TF_TriState_Off);
  CHECK(old.auto_mixed_precision_mkl == TF_TriState_On);
  CHECK(old.pin_to_host_optimization == TF_TriState_Default);
  CHECK(old.scoped_allocator_optimization == TF_TriState_Off);
}

TEST_CASE("a field whose type changed is null") {
  const auto newest = Distinct<TP_Optimizer>();
  TP_Optimizer_2_5 old;
  CopyTo(old, newest);
  CHECK((old.create_func == newest.create_func));
  CHECK((old.optimize_func == nullptr));
}

TEST_CASE("each function is looked up by name") {
  std::vector<std::string> names;
  Functions functions;
  LoadFunctions(functions, [&](const char* name) -> void* {
    names.push_back(name);
    return name == std::string("TF_GetCode") ? &functions : nullptr;
  });
  CHECK(names.size() == kFunctionCount);
  CHECK(reinterpret_cast<void*>(functions.TF_GetCode) == &functions);
  CHECK((functions.TF_SetStatus == nullptr));
  CHECK((functions.TF_GetBuffer == nullptr));
  CHECK(names.front() == "TF_AddNVariant");
  CHECK(names.back() == "TF_ZerosLikeVariant");
}

TEST_CASE("DescribeFunction accepts a pointer to a member or an index") {
  const FunctionInfo gone = DescribeFunction(&Functions::TF_DVLog);
  CHECK(gone.name == std::string("TF_DVLog"));
  CHECK(gone.releases.since.minor == 5);
  CHECK(gone.releases.last.major == 2);
  CHECK(gone.releases.last.minor == 20);
  CHECK(gone.releases.gap_last.major == 0);

  const FunctionInfo back = DescribeFunction(&Functions::TF_AssignVariable);
  CHECK(back.name == std::string("TF_AssignVariable"));
  CHECK(back.releases.since.minor == 6);
  CHECK(back.releases.gap_since.minor == 19);

  const FunctionInfo kept = DescribeFunction(&Functions::TF_GetDeviceName);
  CHECK(kept.name == std::string("TF_GetDeviceName"));
  CHECK(kept.releases.since.minor == 16);
  CHECK(kept.releases.last.major == 0);

  CHECK(DescribeFunction(kFunctionCount - 1).name ==
        std::string("TF_ZerosLikeVariant"));
}

TEST_CASE("2.19 to 2.21 lack 14 functions that 2.18 and 2.22 have") {
  int dropped = 0;
  for (const FunctionReleases& releases : kFunctionReleases) {
    if (releases.gap_since.major == 0) continue;
    ++dropped;
    CHECK(releases.gap_since.minor == 19);
    CHECK(releases.gap_last.minor == 21);
    CHECK(releases.last.major == 0);
  }
  CHECK(dropped == 14);
}

}  // namespace
}  // namespace tfplug::capi::abi_test
