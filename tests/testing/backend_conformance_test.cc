// SPDX-License-Identifier: Apache-2.0
#include "tfplug/testing/backend_conformance.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "capture_stderr.h"
#include "fixture.h"
#include "minimal_device.h"
#include "tfplug/host/host_backend.h"

namespace backend_conformance_test {
namespace {

using tfplug::testing::BackendConformanceOptions;
using tfplug::testing::CheckBackend;

using tfplug::DataType;
using tfplug::Expression;
using tfplug::Launcher;
using tfplug::Operand;
using tfplug::Operands;
using tfplug::ReduceKind;
using tfplug::Reduction;
using tfplug::ScatterKind;

enum class Mistake {
  kNone,
  kIgnoresScalars,
  kIgnoresStartOfIndex,
  kClampsIndices,
  kStoresOneOutput,
  kWritesBesideOutputs,
  kFlushesDenormals,
  kAddsInexactly,
  kExponentsInexactly,
  kDropsNan,
  kSkipsEmptyReductions,
  kTakesFirstUpdate,
  kIgnoresKindOfScan,
  kIgnoresTransposition,
  kSortsWithoutIndices,
  kFails,
  kCrashes,
};
Mistake mistake = Mistake::kNone;

// Calls visit with a reference to each element of a view of T.
template <class T, class Visit>
void ForEachElement(const Operand& view, Visit visit) {
  if (view.type != tfplug::DataTypeOf<T>()) return;
  const tfplug::testing::Dims dims(view.dims.begin(),
                                   view.dims.begin() + view.rank);
  tfplug::testing::ForEachIndex(dims, [&](const auto& index) {
    visit(static_cast<T*>(view.data)[tfplug::testing::OffsetOf(view, index)]);
  });
}

// The primitives of the host with a mistake.
class Backend : public tfplug::HostBackend<minimal::Stream> {
 public:
  using Host = tfplug::HostBackend<minimal::Stream>;

  absl::Status Map(minimal::Stream& stream, const Expression& expression,
                   Operands inputs, Operands outputs) override {
    if (mistake == Mistake::kFails && inputs.size() == 2) {
      return absl::UnavailableError("no program with two inputs");
    }
    if (mistake == Mistake::kCrashes) {
      raise(SIGSEGV);
    }
    std::vector<Operand> in(inputs.begin(), inputs.end());
    for (Operand& operand : in) {
      const bool is_scalar = operand.kind == Operand::Kind::kScalar;
      const bool is_index = operand.kind == Operand::Kind::kIndex;
      if (mistake == Mistake::kIgnoresScalars && is_scalar) operand.scalar = 0;
      if (mistake == Mistake::kIgnoresStartOfIndex && is_index) {
        operand.scalar = 0;
      }
      if (mistake == Mistake::kClampsIndices && operand.axis_size > 1) {
        --operand.axis_size;
      }
    }
    std::vector<Operand> out(outputs.begin(), outputs.end());
    std::vector<double> unused(1 << 17);
    if (mistake == Mistake::kStoresOneOutput && out.size() > 1) {
      out[1] = Operand::Dense(unused.data(), out[1].type, DimsOf(out[1]));
    }
    absl::Status status = Host::Map(stream, expression, in, out);
    if (mistake == Mistake::kWritesBesideOutputs) {
      const Operand& view = outputs[0];
      if (view.rank == 1 && view.stride(0) == 3) {
        std::memset(static_cast<char*>(view.data) + DataTypeSize(view.type),
                    0x55, 1);
      }
    }
    if (mistake == Mistake::kFlushesDenormals) {
      ForEachElement<float>(outputs[0], [](float& x) {
        if (std::fpclassify(x) == FP_SUBNORMAL) x = 0;
      });
    }
    if (mistake == Mistake::kAddsInexactly &&
        expression.instructions().back().opcode == tfplug::Opcode::kAdd) {
      ForEachElement<double>(outputs[0], [](double& x) {
        if (std::isfinite(x)) x = std::nextafter(x, 8.0);
      });
    }
    const tfplug::Opcode last = expression.instructions().back().opcode;
    if (mistake == Mistake::kExponentsInexactly &&
        (last == tfplug::Opcode::kExp || last == tfplug::Opcode::kErfc)) {
      ForEachElement<float>(outputs[0], [](float& x) { x *= 1.00001f; });
    }
    return status;
  }

  absl::Status Reduce(minimal::Stream& stream, const Reduction& reduction,
                      Operands inputs, Operands outputs) override {
    if (mistake == Mistake::kSkipsEmptyReductions &&
        inputs[0].num_elements() == 0) {
      return absl::OkStatus();
    }
    absl::Status status = Host::Reduce(stream, reduction, inputs, outputs);
    if (mistake == Mistake::kDropsNan && reduction.kind == ReduceKind::kMax) {
      ForEachElement<float>(outputs[0], [](float& x) {
        if (std::isnan(x)) x = 0;
      });
    }
    return status;
  }

  absl::Status MatMul(minimal::Stream& stream, Launcher& launcher,
                      const Operand& a, const Operand& b,
                      const Operand& c) override {
    Operand wrong = a;
    const int m = a.rank - 2, k = a.rank - 1;
    if (mistake == Mistake::kIgnoresTransposition && a.dim(m) == a.dim(k) &&
        a.stride(m) == 1) {
      std::swap(wrong.stride(m), wrong.stride(k));
    }
    return Host::MatMul(stream, launcher, wrong, b, c);
  }

  absl::Status Scatter(minimal::Stream& stream, Launcher& launcher,
                       ScatterKind kind, const Operand& indices,
                       const Operand& updates, const Operand& output) override {
    Operand wrong_indices = indices, wrong_updates = updates;
    if (mistake == Mistake::kTakesFirstUpdate && indices.dim(0) > 0) {
      for (Operand* operand : {&wrong_indices, &wrong_updates}) {
        operand->Advance((operand->dim(0) - 1) * operand->stride(0));
        operand->stride(0) = -operand->stride(0);
      }
    }
    return Host::Scatter(stream, launcher, kind, wrong_indices, wrong_updates,
                         output);
  }

  absl::Status Scan(minimal::Stream& stream, Launcher& launcher,
                    ReduceKind kind, const Operand& input,
                    const Operand& output) override {
    if (mistake == Mistake::kIgnoresKindOfScan) kind = ReduceKind::kSum;
    return Host::Scan(stream, launcher, kind, input, output);
  }

  absl::Status Sort(minimal::Stream& stream, Launcher& launcher,
                    const Operand& input, const Operand& values,
                    const Operand& indices) override {
    absl::Status status = Host::Sort(stream, launcher, input, values, indices);
    if (mistake == Mistake::kSortsWithoutIndices) {
      ForEachElement<int32_t>(indices, [](int32_t& i) { i = 0; });
    }
    return status;
  }

 private:
  static tfplug::testing::Dims DimsOf(const Operand& view) {
    return tfplug::testing::Dims(view.dims.begin(),
                                 view.dims.begin() + view.rank);
  }
};

absl::Status Check(double seconds = 0, bool has_denormals = true) {
  tfplug::Fixture<minimal::Platform> fixture;
  Backend backend;
  BackendConformanceOptions options;
  options.seconds = seconds;  // if 0, each subject once
  options.has_denormals = has_denormals;
  return CheckBackend(backend, fixture.device(), options);
}

TEST_CASE("the backend of the host on the minimal device") {
  tfplug::Fixture<minimal::Platform> fixture;
  Backend backend;
  BackendConformanceOptions options;
  options.seconds = 0;  // each subject once
  // A wrong opcode is not found on every operand.
  for (int round = 0; round < 6; ++round) {
    options.seed += 1000;
    CHECK(CheckBackend(backend, fixture.device(), options) == absl::OkStatus());
  }
}

TEST_CASE("each mistake is found on the smallest operands") {
  struct Case {
    Mistake mistake;
    const char* named;
  };
  const Case cases[] = {
      {Mistake::kIgnoresScalars, "kScalar"},
      {Mistake::kIgnoresStartOfIndex, "kIndex"},
      {Mistake::kClampsIndices, "and an axis of"},
      {Mistake::kStoresOneOutput, "select(x2, x0, x1)"},
      {Mistake::kWritesBesideOutputs, "Memory beside operand"},
      {Mistake::kFlushesDenormals, " is 0 instead of "},
      {Mistake::kAddsInexactly, "Map to add(x0, x1) as double"},
      {Mistake::kDropsNan, " is 0 instead of nan"},
      {Mistake::kSkipsEmptyReductions, "0] with strides"},
      {Mistake::kTakesFirstUpdate, "Scatter of kind kSet"},
      {Mistake::kIgnoresKindOfScan, "Scan of kind kProduct"},
      {Mistake::kIgnoresTransposition, "MatMul"},
      {Mistake::kSortsWithoutIndices, "Sort"},
      {Mistake::kFails, "It returned UNAVAILABLE: no program with two inputs"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.named);
    mistake = each.mistake;
    const absl::Status status = Check(/*seconds=*/20);
    mistake = Mistake::kNone;
    CHECK(absl::IsInternal(status));
    const std::string text(status.message());
    CHECK_MESSAGE(text.find(each.named) != std::string::npos, text);
  }
}

TEST_CASE("the distance of two numbers in units in the last place") {
  const auto distance = [](DataType type, uint64_t a, uint64_t b) {
    return tfplug::testing::UlpDistance(type, a, b);
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const uint64_t one : {0x3ff0000000000000, 0x3ff0000000000100}) {
    for (const uint64_t ulps : {0, 1, 2, 16, 255, 256, 257, 513}) {
      CAPTURE(ulps);
      CHECK(distance(DataType::kDouble, one, one + ulps) == ulps);
      CHECK(distance(DataType::kDouble, one + ulps, one) == ulps);
    }
  }
  constexpr uint64_t kSign = uint64_t{1} << 63;
  CHECK(distance(DataType::kDouble, 0, kSign) == 0);
  CHECK(distance(DataType::kDouble, 3, kSign | 4) == 7);
  CHECK(distance(DataType::kDouble, 0x7ff0000000000000, 0xfff0000000000000) ==
        2.0 * 0x7ff0000000000000);
  CHECK(distance(DataType::kDouble, 0x7ff8000000000000, 0xfff8000000000001) ==
        0);
  CHECK(distance(DataType::kDouble, 0x7ff8000000000000, 0) == kInfinity);
  CHECK(distance(DataType::kFloat, 0x3f800000, 0x3f800003) == 3);
  CHECK(distance(DataType::kHalf, 0x8001, 1) == 2);
  CHECK(distance(DataType::kInt64, 5, 6) == kInfinity);
}

TEST_CASE("a crash names the launch") {
  mistake = Mistake::kCrashes;
  int status = 0;
  const std::string text = tfplug::CaptureStderr([&] {
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGSEGV, SIG_DFL);  // not doctest's
      tfplug::Fixture<minimal::Platform> fixture;
      Backend backend;
      CheckBackend(backend, fixture.device(), {}).IgnoreError();
      _exit(0);
    }
    waitpid(child, &status, 0);
  });
  mistake = Mistake::kNone;
  CAPTURE(text);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV));
  CHECK(text.find("\nthe backend does not conform. The launch: Map to ") !=
        std::string::npos);
  CHECK(text.find("\noperand 0: ") != std::string::npos);
  CHECK(text.find("\nThe process crashes. Does code") != std::string::npos);
}

TEST_CASE("the time for a backend that compiles is limited") {
  tfplug::Fixture<minimal::Platform> fixture;
  Backend backend;
  BackendConformanceOptions options;
  options.seconds = 20;
  mistake = Mistake::kFails;
  options.most_seconds = 0;  // nothing is checked
  CHECK(CheckBackend(backend, fixture.device(), options) == absl::OkStatus());
  options.most_seconds = 20;
  CHECK(absl::IsInternal(CheckBackend(backend, fixture.device(), options)));
  mistake = Mistake::kNone;
}

TEST_CASE("the report says what was checked") {
  tfplug::Fixture<minimal::Platform> fixture;
  Backend backend;
  tfplug::testing::BackendConformanceReport report;
  BackendConformanceOptions options;
  options.report = &report;
  options.seconds = 0;
  CHECK(CheckBackend(backend, fixture.device(), options) == absl::OkStatus());
  CHECK(report.subjects > 300);
  CHECK(report.checked == report.subjects);
  CHECK(report.launches == report.subjects);
  options.most_seconds = 0;
  CHECK(CheckBackend(backend, fixture.device(), options) == absl::OkStatus());
  CHECK(report.subjects > 300);
  CHECK(report.checked == 0);
  CHECK(report.launches == 0);
  options.seconds = options.most_seconds = 0.05;
  CHECK(CheckBackend(backend, fixture.device(), options) == absl::OkStatus());
  CHECK(report.checked > 0);
  CHECK(report.checked <= report.launches);
}

TEST_CASE("a function that others call is reported itself, with its error") {
  tfplug::Fixture<minimal::Platform> fixture;
  Backend backend;
  BackendConformanceOptions options;
  options.seconds = options.most_seconds = 3600;  // in a random order
  mistake = Mistake::kExponentsInexactly;
  for (options.seed = 1; options.seed <= 4; ++options.seed) {
    const absl::Status status =
        CheckBackend(backend, fixture.device(), options);
    const std::string text(status.message());
    CHECK_MESSAGE(text.find("Map to exp(x0)") != text.npos, text);
    CHECK_MESSAGE(text.find(" ulps; 3 are allowed).") != text.npos, text);
  }
  mistake = Mistake::kNone;
}

TEST_CASE("hardware without denormal numbers") {
  mistake = Mistake::kFlushesDenormals;
  CHECK(Check(/*seconds=*/0, /*has_denormals=*/false) == absl::OkStatus());
  mistake = Mistake::kNone;
}

}  // namespace
}  // namespace backend_conformance_test
