// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_BACKEND_CONFORMANCE_H_
#define TFPLUG_TESTING_BACKEND_CONFORMANCE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/primitives/backend.h"
#include "tfplug/testing/conformance.h"
#include "tfplug/testing/fake_device.h"
#include "tfplug/testing/internal/map_cases.h"
#include "tfplug/testing/internal/primitive_run.h"
#include "tfplug/testing/internal/reduce_cases.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// Says how much CheckBackend checked before it returned.
struct BackendConformanceReport {
  // The primitives, opcodes, kinds and types of the backend, and those of them
  // that were checked: fewer only if `most_seconds` had passed, or one failed.
  size_t subjects = 0, checked = 0;
  // All random launches: most subjects are checked several times.
  uint64_t launches = 0;
};

struct BackendConformanceOptions : ConformanceOptions {
  // False for hardware that treats denormal numbers as 0.
  bool has_denormals = true;
  // For backends that need long for each kernel, because they compile it: a
  // random choice of primitives, opcodes and types is checked if all of them
  // take longer.
  double most_seconds = std::numeric_limits<double>::infinity();
  // Is filled unless it is null.
  BackendConformanceReport* report = nullptr;
};

// One thing that CheckBackend checks, on random operands.
struct PrimitiveSubject {
  std::function<PrimitiveCase(CaseMaker&)> make;
  // Of Map to a single opcode: its type.
  DataType opcode_type = DataType(0);

  PrimitiveCase operator()(CaseMaker& maker) const { return make(maker); }
};

// Returns a subject for each primitive, opcode, kind and type, without the opcodes
// that a backend refuses.
inline std::vector<PrimitiveSubject> PrimitiveSubjects(
    const Types& types,
    const std::function<bool(Opcode, DataType)>& supports = nullptr) {
  std::vector<PrimitiveSubject> all;
  const auto add = [&](auto make, DataType opcode_type = DataType(0)) {
    all.push_back({std::move(make), opcode_type});
  };
  for (const DataType type : types) {
    const bool is_bool = type == DataType::kBool;
    const bool is_computed = ComputeType(type) == type;
    for (int i = 0; is_computed && i < kOpcodeCount; ++i) {
      const auto opcode = static_cast<Opcode>(i);
      if (!ir::Allows(ir::InfoOf(opcode).types, type)) continue;
      if (supports != nullptr && !supports(opcode, type)) continue;
      add([=](CaseMaker& maker) { return MakeOpcodeCase(maker, opcode, type); },
          type);
    }
    for (int i = 0; i < 4; ++i) {
      const auto kind = static_cast<ReduceKind>(i);
      if (is_computed) {
        add([=](CaseMaker& maker) {
          return MakeReduceCase(maker, kind, type);
        });
      }
      if (is_bool) continue;
      add([=](CaseMaker& maker) { return MakeScanCase(maker, kind, type); });
    }
    for (int i = 0; i < (is_bool ? 1 : 5); ++i) {
      const auto kind = static_cast<ScatterKind>(i);
      add([=](CaseMaker& maker) { return MakeScatterCase(maker, kind, type); });
    }
    if (is_bool) continue;
    if (is_computed) {
      add([=](CaseMaker& maker) { return MakeFusedCase(maker, type); });
      add([=](CaseMaker& maker) { return MakeProgramCase(maker, type); });
    }
    if (is_computed && IsFloat(type)) {
      add([=](CaseMaker& maker) { return MakeAccuracyCase(maker, type); });
    }
    for (const bool is_mapped : {false, true}) {
      add([=](CaseMaker& maker) {
        return MakeMatMulCase(maker, type, is_mapped);
      });
    }
    add([=](CaseMaker& maker) { return MakeSortCase(maker, type); });
    if (type == DataType::kFloat || type == DataType::kDouble) {
      add([=](CaseMaker& maker) { return MakeFourierCase(maker, type); });
    }
  }
  // At the end, because the position of a subject is a part of its seed.
  for (const DataType type : types) {
    if (type == DataType::kBool) continue;
    add([=](CaseMaker& maker) { return MakeRecurCase(maker, type); });
  }
  return all;
}

// Runs each subject once and then for as long as the options allow. A failure
// is searched for on smaller and simpler operands.
inline absl::Status CheckPrimitives(
    PrimitiveRun& run, const Types& types,
    const std::vector<PrimitiveSubject>& subjects,
    const BackendConformanceOptions& options) {
  BackendConformanceReport unused;
  BackendConformanceReport& report =
      options.report != nullptr ? *options.report : unused;
  report = {subjects.size(), 0, 0};
  const auto check = [&](const PrimitiveSubject& subject, Level level,
                         uint64_t seed) {
    Random random(static_cast<Random::result_type>(seed));
    CaseMaker maker(random, level, options.has_denormals, types);
    const PrimitiveCase made = subject(maker);
    int64_t size = 0;
    for (const TestArray& array : made.arrays) {
      size += array.view.num_elements();
    }
    return std::make_pair(run.Check(made), size);
  };
  const Deadline deadline(options.seconds);
  const bool is_limited = std::isfinite(options.most_seconds);
  const Deadline limit(is_limited ? options.most_seconds : 0);
  std::vector<size_t> order(subjects.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (is_limited) {
    Random random(static_cast<Random::result_type>(options.seed));
    std::shuffle(order.begin(), order.end(), random);
  }
  for (uint64_t i = 0; i < subjects.size() || !deadline.has_passed(); ++i) {
    if (is_limited && limit.has_passed()) break;
    size_t failed = order[i % subjects.size()];
    const uint64_t seed = options.seed + i;
    const Level level = i % 16 == 15 ? kLarge : kRandom;
    std::string difference = check(subjects[failed], level, seed).first;
    report.launches = i + 1;
    report.checked = std::min<size_t>(i + 1, subjects.size());
    if (difference.empty()) continue;
    // A function may be wrong because it calls an earlier one, which the random
    // order has not come to.
    const DataType type = subjects[failed].opcode_type;
    const size_t end = is_limited && type != DataType(0) ? failed : 0;
    for (size_t k = 0; k < end && failed == end; ++k) {
      if (subjects[k].opcode_type != type) continue;
      for (uint64_t n = 0; n < 4 && failed == end; ++n) {
        std::string earlier = check(subjects[k], kRandom, seed + n).first;
        if (earlier.empty()) continue;
        difference = std::move(earlier);
        failed = k;
      }
    }
    for (int simple = kTiny; simple <= level; ++simple) {
      std::pair<std::string, int64_t> smallest;
      for (uint64_t k = 0; k < 30; ++k) {
        auto found =
            check(subjects[failed], static_cast<Level>(simple), seed + k);
        if (found.first.empty()) continue;
        if (smallest.first.empty() || found.second < smallest.second) {
          smallest = std::move(found);
        }
      }
      if (!smallest.first.empty()) return absl::InternalError(smallest.first);
    }
    return absl::InternalError(difference);
  }
  return absl::OkStatus();
}

// Checks each primitive of a backend against its definition (reference.h), on
// device 0's compute stream: all types that the backend supports, strides that
// are 0, negative or overlap, operands without memory, empty and large arrays,
// NaN, infinities, denormal numbers, extreme integers. INTERNAL if an element
// differs by more than opcodes.def allows, or memory beside an output was changed; the
// message has the smallest launch found.
//
// OK after `options.most_seconds` means only what `options.report` says.
//
//   MyBackend backend;
//   CHECK(tfplug::testing::CheckBackend(backend, device) == absl::OkStatus());
template <class B>
absl::Status CheckBackend(B& backend, FakeDevice& device,
                          const BackendConformanceOptions& options = {}) {
  Types types;
  for (int i = 1; i <= static_cast<int>(DataType::kUint64); ++i) {
    const auto type = static_cast<DataType>(i);
    if (ComputeType(type) != DataType(0) && backend.B::Supports(type)) {
      types.push_back(type);
    }
  }
  auto& stream = *static_cast<typename B::Stream*>(
      static_cast<void*>(device.compute().handle()));
  PrimitiveRun run(
      device,
      [&](Scratch& scratch) { return MakeLauncher(backend, stream, scratch); },
      options.has_denormals);
  const auto supports = [&](Opcode opcode, DataType type) {
    return backend.B::SupportsOpcode(opcode, type);
  };
  return CheckPrimitives(run, types, PrimitiveSubjects(types, supports),
                         options);
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_BACKEND_CONFORMANCE_H_
