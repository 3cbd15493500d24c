// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_COMPILED_H_
#define TFPLUG_COMPILED_COMPILED_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/compiled/check_target.h"
#include "tfplug/compiled/disk_cache.h"
#include "tfplug/compiled/failure.h"
#include "tfplug/compiled/map_source.h"
#include "tfplug/compiled/matmul_source.h"
#include "tfplug/compiled/plan_cache.h"
#include "tfplug/compiled/program.h"
#include "tfplug/compiled/program_cache.h"
#include "tfplug/compiled/reduce_source.h"
#include "tfplug/compiled/split.h"
#include "tfplug/ir/loops.h"
#include "tfplug/ir/unsupported.h"
#include "tfplug/ir/views.h"
#include "tfplug/primitives/backend.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// A backend whose primitives are generated source in a C-like language. Derive
// from it, with the author's class of streams and a class derived from Program,
// and override four functions. Threads: any, also for one program at once.
template <class StreamT, class ProgramT>
class CompiledBackend : public Backend<StreamT> {
 public:
  static_assert(std::is_base_of_v<tfplug::Program, ProgramT>,
                "tfplug: derive the programs of a compiled backend from "
                "tfplug::Program");

  // Returns the programs of the stream's device: a member of the author's
  // device, constructed from a Target.
  virtual ProgramCache& Programs(StreamT& stream) = 0;

  // Compiles the source of one kernel. Returns the binary, which is stored in
  // the cache on disk, or an error with the compiler's output.
  virtual absl::StatusOr<std::string> Compile(StreamT& stream,
                                              const std::string& source) = 0;

  // Loads a binary that Compile returned, perhaps in another process, and finds
  // the kernel `entry`.
  virtual absl::StatusOr<std::unique_ptr<ProgramT>> Load(
      StreamT& stream, const std::string& binary, const char* entry) = 0;

  // Enqueues the kernel. Copies the arguments before it returns.
  virtual absl::Status Launch(StreamT& stream, ProgramT& program,
                              const Grid& grid,
                              const KernelArguments& arguments) = 0;

  absl::Status Map(StreamT& stream, const Expression& expression,
                   Operands inputs, Operands outputs) override {
    return PlanAndMap<compiled_internal::PlanKey>(stream, expression, inputs,
                                                  outputs, nullptr);
  }
  absl::Status Reduce(StreamT& stream, const Reduction& reduction,
                      Operands inputs, Operands outputs) override {
    return PlanAndReduce(stream, nullptr, reduction, inputs, outputs, nullptr);
  }

  // Run Map and Reduce for operands of any rank, which they may simplify in
  // place; the Launcher calls these instead. The second launch of operands with
  // the same dimensions and strides skips most of the work.
  absl::Status MapLoops(StreamT& stream, const Expression& expression,
                        absl::Span<Operand> inputs,
                        absl::Span<Operand> outputs) {
    const compiled_internal::PlanKey key(compiled_internal::Primitive::kMap,
                                         expression.id(), inputs, outputs);
    const auto* const known = Programs(stream).plans().Find(key);
    if (known != nullptr) return Repeat(stream, *known, inputs, outputs);
    if (!SimplifyLoops(inputs, outputs)) return absl::OkStatus();
    return PlanAndMap(stream, expression, inputs, outputs, &key);
  }
  // Does the same for arrays, whose dimensions and strides are not compared.
  // `self` is the author's backend, for a launch without a virtual call.
  template <class B>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static absl::Status MapFlat(
      B& self, StreamT& stream, const Expression& expression,
      const FlatOperands& operands) {
    const auto* const known = self.B::Programs(stream).plans().Find(
        compiled_internal::FlatKey(expression.id(), operands));
    if (ABSL_PREDICT_TRUE(known != nullptr)) {
      const compiled_internal::RepeatedLaunch launch(*known, operands);
      return self.B::Launch(stream, static_cast<ProgramT&>(*known->program),
                            known->grid, launch.arguments());
    }
    return self.PlanAndMapFlat(stream, expression, operands);
  }
  absl::Status ReduceLoops(StreamT& stream, Launcher& launcher,
                           const Reduction& reduction,
                           absl::Span<Operand> inputs,
                           absl::Span<Operand> outputs) {
    const compiled_internal::PlanKey key(compiled_internal::Primitive::kReduce,
                                         reduction.id(), inputs, outputs);
    const auto* const known = Programs(stream).plans().Find(key);
    if (known != nullptr) return Repeat(stream, *known, inputs, outputs);
    if (!SimplifyLoops(inputs, outputs)) return absl::OkStatus();
    return PlanAndReduce(stream, &launcher, reduction, inputs, outputs, &key);
  }

  // Multiplies float matrices of one type, or half-precision ones to floats;
  // other types use the default.
  absl::Status MatMul(StreamT& stream, Launcher& launcher, const Operand& a,
                      const Operand& b, const Operand& c) override {
    if (!IsFloat(a.type) || b.type != a.type ||
        (c.type != a.type && c.type != ComputeType(a.type)) ||
        c.rank == kMaxViewRank) {  // A launch has one dimension more.
      return Backend<StreamT>::MatMul(stream, launcher, a, b, c);
    }
    if (c.num_elements() == 0) return absl::OkStatus();
    const auto parts =
        compiled_internal::PartsOfMatMul(Programs(stream).target(), a, c);
    if (ABSL_PREDICT_FALSE(parts.count > 1)) {
      return compiled_internal::MultiplyInParts(launcher, parts, a, b, c);
    }
    return Multiply(stream, a, b, nullptr, {}, absl::MakeConstSpan(&c, 1));
  }
  absl::Status MatMulMap(StreamT& stream, Launcher& launcher, const Operand& a,
                         const Operand& b, const Expression& expression,
                         Operands inputs, Operands outputs) override {
    // The parameters of batches with many operands may be too large.
    if (IsFloat(a.type) && b.type == a.type && outputs[0].num_elements() > 0 &&
        outputs[0].rank < kMaxViewRank &&
        compiled_internal::PartsOfMatMul(Programs(stream).target(), a,
                                         outputs[0])
                .count == 1) {
      const auto status = Multiply(stream, a, b, &expression, inputs, outputs);
      if (!absl::IsUnimplemented(status)) return status;
    }
    return Backend<StreamT>::MatMulMap(stream, launcher, a, b, expression,
                                       inputs, outputs);
  }

 private:
  // Launches a product that is stored if the expression is null.
  absl::Status Multiply(StreamT& stream, const Operand& a, const Operand& b,
                        const Expression* expression, Operands inputs,
                        Operands outputs) {
    const Operand& c = outputs[0];
    const Target& target = Programs(stream).target();
    const int m = c.rank - 2;
    absl::InlinedVector<Operand, 4> all = {
        ir::WithDim(a, m + 1, c.dim(m + 1)),
        ir::WithDim(ir::WithDimLast(b, m), m, c.dim(m))};
    const int64_t depth = all[0].dim(c.rank);
    for (const Operand& input : inputs) {
      all.push_back(input);
      all.back().AddDim(depth, 0);
    }
    const compiled_internal::PlanKey key(
        expression != nullptr ? compiled_internal::Primitive::kMatMulMap
                              : compiled_internal::Primitive::kMatMul,
        compiled_internal::CodeOfMatMul(expression, a.type, c.type), all,
        outputs);
    const auto* const known = Programs(stream).plans().Find(key);
    if (known != nullptr) return Repeat(stream, *known, all, outputs);
    TFPLUG_RETURN_IF_ERROR(compiled_internal::CheckTarget(target));
    compiled_internal::LaunchPlan plan(target, c.rank, c.rank + 1, all,
                                       outputs);
    TFPLUG_RETURN_IF_ERROR(
        compiled_internal::PlanMatMul(target, expression, plan));
    return LaunchPlanned(stream, plan, &key, "matmul", {expression}, [&] {
      return compiled_internal::MatMulSource(target, plan, expression);
    });
  }

  // Plan a launch and carry it out. The plan is cached for `key`, unless that is
  // null.
  template <class Key>
  absl::Status PlanAndMap(StreamT& stream, const Expression& expression,
                          Operands inputs, Operands outputs, const Key* key) {
    const Target& target = Programs(stream).target();
    TFPLUG_RETURN_IF_ERROR(compiled_internal::CheckTarget(target));
    const int rank = outputs[0].rank;
    compiled_internal::LaunchPlan plan(target, rank, rank, inputs, outputs);
    TFPLUG_RETURN_IF_ERROR(
        compiled_internal::PlanMap(target, expression.id(), plan));
    return LaunchPlanned(stream, plan, key, "map", {&expression}, [&] {
      return compiled_internal::MapSource(target, plan, expression);
    });
  }
  [[gnu::noinline]] absl::Status PlanAndMapFlat(StreamT& stream,
                                                const Expression& expression,
                                                const FlatOperands& operands) {
    const compiled_internal::FlatKey key(expression.id(), operands);
    if (!primitives::CountsMatch(operands, expression)) {
      return primitives::WrongOperands();
    }
    if (operands.size == 0) return absl::OkStatus();
    const ir::FlatViews views(expression, operands);
    return PlanAndMap(stream, expression, views.inputs(), views.outputs(),
                      &key);
  }
  absl::Status PlanAndReduce(StreamT& stream, Launcher* launcher,
                             const Reduction& reduction, Operands inputs,
                             Operands outputs,
                             const compiled_internal::PlanKey* key) {
    const Target& target = Programs(stream).target();
    TFPLUG_RETURN_IF_ERROR(compiled_internal::CheckTarget(target));
    const int kept = outputs[0].rank;
    const int rank = inputs.empty() ? kept : inputs[0].rank;
    compiled_internal::LaunchPlan plan(target, kept, rank, inputs, outputs);
    int dim;
    const auto parts = compiled_internal::PartsOfReduce(target, plan, &dim);
    if (parts.count > 1 && launcher != nullptr) {
      return compiled_internal::ReduceInParts(*launcher, parts, dim, reduction,
                                              inputs, outputs);
    }
    TFPLUG_RETURN_IF_ERROR(
        compiled_internal::PlanReduce(target, reduction.id(), plan));
    return LaunchPlanned(
        stream, plan, key, "reduce", {&reduction.map, &reduction.finish}, [&] {
          return compiled_internal::ReduceSource(target, plan, reduction)
              .Make();
        });
  }

  absl::Status Repeat(StreamT& stream,
                      const compiled_internal::KnownLaunch& known,
                      Operands inputs, Operands outputs) {
    const compiled_internal::RepeatedLaunch launch(known, inputs, outputs);
    return Launch(stream, static_cast<ProgramT&>(*known.program), known.grid,
                  launch.arguments());
  }

  // Launches the plan's program, which is built from make_source() at the first
  // launch; it has the expressions `parts`, of which some may be null.
  template <class Key, class MakeSource>
  absl::Status LaunchPlanned(StreamT& stream,
                             compiled_internal::LaunchPlan& plan,
                             const Key* key, const char* entry,
                             std::initializer_list<const Expression*> parts,
                             MakeSource make_source) {
    ProgramCache& programs = Programs(stream);
    Program* program = programs.Find(plan.key());
    if (ABSL_PREDICT_FALSE(program == nullptr)) {
      TFPLUG_RETURN_IF_ERROR(CheckOpcodes(parts));
      TFPLUG_ASSIGN_OR_RETURN(program, programs.FindOrBuild(plan.key(), [&] {
        return BuildProgram(stream, make_source(), entry);
      }));
    }
    if (key != nullptr) {
      programs.plans().Add(
          *key, {program, plan.grid(), plan.num_offsets() > 0,
                 compiled_internal::KnownParameters(plan.CommonParameters())});
    }
    return Launch(stream, static_cast<ProgramT&>(*program), plan.grid(),
                  plan.arguments());
  }

  absl::Status CheckOpcodes(
      std::initializer_list<const Expression*> parts) const {
    for (const Expression* const part : parts) {
      if (part == nullptr) continue;
      const std::string missing =
          ir::FindUnsupported(*part, [&](Opcode opcode, DataType type) {
            return this->SupportsOpcode(opcode, type);
          });
      if (missing.empty()) continue;
      return absl::UnimplementedError(absl::StrCat(
          "the device does not compute ", missing,
          " correctly (Backend::SupportsOpcode); place the op on the CPU"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<tfplug::Program>> BuildProgram(
      StreamT& stream, const std::string& source, const char* entry) {
    const Target& target = Programs(stream).target();
    TFPLUG_RETURN_IF_ERROR(compiled_internal::CheckLanguage(*target.language));
    const compiled_internal::CachedBinary cached(target, source);
    if (const std::string binary = cached.Read(); !binary.empty()) {
      auto program = Load(stream, binary, entry);
      // A driver may refuse a binary of its own: it is then compiled again.
      if (program.ok()) return *std::move(program);
    }
    const absl::StatusOr<std::string> binary = Compile(stream, source);
    if (!binary.ok()) {
      return compiled_internal::CompilationFailed(binary.status(), source,
                                                  entry);
    }
    absl::StatusOr<std::unique_ptr<ProgramT>> program =
        Load(stream, *binary, entry);
    if (!program.ok()) {  // drivers compile intermediate code here
      return compiled_internal::CompilationFailed(program.status(), source,
                                                  entry);
    }
    cached.Write(*binary);
    return *std::move(program);
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_COMPILED_H_
