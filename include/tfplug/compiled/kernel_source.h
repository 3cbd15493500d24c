// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_KERNEL_SOURCE_H_
#define TFPLUG_COMPILED_KERNEL_SOURCE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tfplug/compiled/expression_source.h"
#include "tfplug/compiled/launch_plan.h"
#include "tfplug/compiled/prelude.h"

#pragma GCC visibility push(hidden)

namespace tfplug::compiled_internal {

// Writes one kernel: names of the operands' sizes and strides, loads and
// stores, the signature and the prelude. The values of sizes and strides are
// parameters, which LaunchPlan writes in the same order (VisitParameters).
class KernelSource {
 public:
  KernelSource(const Target& target, const char* entry, const LaunchPlan& plan)
      : target_(target), entry_(entry), plan_(plan) {
    VisitParameters(*this, plan);
  }

  uint32_t* needs() { return &needs_; }

  // ---- Names ---------------------------------------------------------------

  std::string Size(int d) const { return absl::StrCat("n", d); }
  // Declares the next extra parameter, an index (LaunchPlan::AddExtra).
  std::string Extra(const char* name) {
    Declare(name);
    return name;
  }

  // Returns the offset in operand `k` for the indices i<begin>, ..., with
  // other names for the innermost ones: "i0 * s2_0 + j".
  std::string Offset(size_t k, int begin, int end,
                     const std::string& inner = "") const {
    std::string text;
    for (int d = begin; d < end; ++d) {
      const std::string index =
          d == end - 1 && !inner.empty() ? inner : absl::StrCat("i", d);
      const StrideClass known = ClassOf(k, d);
      if (known == StrideClass::kZero) continue;
      absl::StrAppend(&text, text.empty() ? "" : " + ", index);
      if (known == StrideClass::kOther)
        absl::StrAppend(&text, " * s", k, "_", d);
    }
    return text.empty() ? "0" : text;
  }

  // Returns the element of operand `k` at an offset, as it is computed in.
  std::string Load(size_t k, const std::string& offset) {
    const Operand& operand = plan_.operand(k);
    const char* const type = SourceType(operand.type, false);
    switch (operand.kind) {
      case Operand::Kind::kMemory:
        return WidenText(operand.type, absl::StrCat("x", k, "[", offset, "]"),
                         &needs_);
      case Operand::Kind::kIndex:
        return operand.type == DataType::kBool
                   ? absl::StrCat("((i64)c", k, " + (", offset, ") != 0)")
                   : absl::StrCat("(", type, ")((i64)c", k, " + (", offset,
                                  "))");
      default:
        break;
    }
    if (ComputeType(operand.type) == DataType::kFloat) {
      return absl::StrCat("f32_of_bits((u32)c", k, ")");
    }
    if (operand.type == DataType::kDouble) {
      return absl::StrCat("f64_of_bits(c", k, ")");
    }
    if (operand.type == DataType::kBool) return absl::StrCat("(c", k, " != 0)");
    return absl::StrCat("(", type, ")c", k);
  }
  // Returns element `i` of the axis of operand `k`, 0 if it is out of range.
  std::string LoadElement(size_t k, const std::string& offset,
                          const std::string& i) {
    const Operand& operand = plan_.operand(k);
    if (!HasAxis(operand)) return "0";
    const std::string at =
        absl::StrCat(offset, " + (idx)", i, " * a", k, "_stride");
    return absl::StrCat("(", i, " >= 0 && ", i, " < a", k, "_size) ? ",
                        Load(k, at), " : 0");
  }
  std::string Store(size_t k, const std::string& offset,
                    const std::string& value) const {
    return absl::StrCat("x", k, "[", offset, "] = ", value, ";\n");
  }

  // Returns statements that compute i<begin>, ..., i<end - 1> from `flat`.
  std::string Unflatten(const std::string& flat, int begin, int end) const {
    if (end <= begin) return "";
    if (end == begin + 1) {
      return absl::StrCat("const idx i", begin, " = ", flat, ";\n");
    }
    std::string text = absl::StrCat("idx rest", begin, " = ", flat, ";\n");
    for (int d = end - 1; d > begin; --d) {
      absl::StrAppend(&text, "const idx i", d, " = rest", begin, " % ", Size(d),
                      "; rest", begin, " /= ", Size(d), ";\n");
    }
    return absl::StrCat(text, "const idx i", begin, " = rest", begin, ";\n");
  }

  // ---- The whole -----------------------------------------------------------

  std::string Finish(const std::string& body) {
    const bool is_opencl = target_.dialect == Dialect::kOpenCl;
    std::string text = absl::StrCat(
        Prelude(target_, needs_), "typedef ", plan_.is_wide() ? "i64" : "i32",
        " idx;\ntypedef struct {\n",
        plan_.num_offsets() == 0
            ? ""
            : absl::StrCat("  i64 o[", plan_.num_offsets(), "];\n"),
        num_scalars_ == 0 ? "" : absl::StrCat("  u64 c[", num_scalars_, "];\n"),
        "  idx v[", num_values_ + num_values_ % 2, "];\n} Parameters;\n");
    std::string pointers;
    for (size_t i = 0; i < num_pointers_; ++i) {
      absl::StrAppend(&pointers, "GLOBAL char* p", i, ", ");
    }
    if (is_opencl) {
      absl::StrAppend(&text,
                      "__kernel "
                      "__attribute__((reqd_work_group_size(ITEMS_PER_GROUP, 1, "
                      "1)))\nvoid ",
                      entry_, "(", pointers,
                      "const Parameters p) {\nconst idx group = "
                      "(idx)get_group_id(0);\n");
    } else {
      absl::StrAppend(
          &text,
          "#ifdef __CUDACC__\nextern \"C\" __global__ "
          "__launch_bounds__(GROUP) void ",
          entry_, "(", pointers,
          "const Parameters p) {\nconst idx group = (idx)blockIdx.x;\n",
          "#else\nextern \"C\" {\nextern const int ", entry_, "_pointers, ",
          entry_, "_parameters_size;\nconst int ", entry_,
          "_pointers = ", num_pointers_, ";\nconst int ", entry_,
          "_parameters_size = sizeof(Parameters);\n}\nextern \"C\" void ",
          entry_,
          "(const unsigned* group_index, void** arguments) {\n"
          "const idx group = (idx)*group_index;\n");
      for (size_t i = 0; i < num_pointers_; ++i) {
        absl::StrAppend(&text, "char* const p", i, " = *(char**)arguments[", i,
                        "];\n");
      }
      absl::StrAppend(&text,
                      "const Parameters p = *(const Parameters*)arguments[",
                      num_pointers_, "];\n#endif\n");
    }
    return absl::StrCat(text, declarations_, body, "}\n");
  }

  // ---- Called by VisitParameters -------------------------------------------

  void VisitPointer(size_t k, const Operand& operand) {
    const char* const type = SourceType(operand.type, true);
    absl::StrAppend(&declarations_, "GLOBAL ", type, "* x", k, " = (GLOBAL ",
                    type, "*)(p", num_pointers_);
    if (plan_.num_offsets() != 0) {
      absl::StrAppend(&declarations_, " + p.o[", num_pointers_, "]");
    }
    declarations_ += ");\n";
    ++num_pointers_;
  }
  void VisitScalar(size_t k, const Operand& /*operand*/) {
    absl::StrAppend(&declarations_, "const u64 c", k, " = p.c[", num_scalars_++,
                    "];\n");
  }
  void VisitSize(int d, int64_t /*size*/) { Declare(absl::StrCat("n", d)); }
  void VisitStride(size_t k, int d, int64_t /*stride*/) {
    Declare(absl::StrCat("s", k, "_", d));
  }
  void VisitAxis(size_t k, int64_t /*size*/, int64_t /*stride*/) {
    Declare(absl::StrCat("a", k, "_size"));
    Declare(absl::StrCat("a", k, "_stride"));
  }

 private:
  void Declare(const std::string& name) {
    absl::StrAppend(&declarations_, "const idx ", name, " = p.v[",
                    num_values_++, "];\n");
  }
  StrideClass ClassOf(size_t k, int d) const {
    return plan_.IsInner(d) ? ClassOfStride(plan_.operand(k).stride(d))
                            : StrideClass::kOther;
  }

  const Target& target_;
  const char* const entry_;
  const LaunchPlan& plan_;
  std::string declarations_;
  size_t num_pointers_ = 0, num_scalars_ = 0, num_values_ = 0;
  uint32_t needs_ = 0;
};

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_KERNEL_SOURCE_H_
