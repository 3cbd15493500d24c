// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_KERNEL_SOURCE_H_
#define TFPLUG_COMPILED_KERNEL_SOURCE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
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
      : has_rows_(target.HasRows()),
        parts_(target),
        entry_(entry),
        plan_(plan) {
    VisitParameters(*this, plan);
  }

  SourceParts& parts() { return parts_; }

  // ---- Names ---------------------------------------------------------------

  std::string Size(int d) const { return absl::StrCat("n", d); }
  // Declares the next extra parameter, an index (LaunchPlan::AddExtra).
  std::string Extra(const char* name) {
    Declare(name);
    return name;
  }

  // Returns the offset in operand `k` for the indices d<begin>, ..., with
  // `inner` as the innermost one unless it is empty: "d0 * s2_0 + j".
  std::string Offset(size_t k, int begin, int end,
                     const std::string& inner = "") const {
    std::string text;
    for (int d = begin; d < end; ++d) {
      const std::string index =
          d == end - 1 && !inner.empty() ? inner : absl::StrCat("d", d);
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
        return WidenText(operand.type, Element(k, offset), parts_);
      case Operand::Kind::kIndex:
        return operand.type == DataType::kBool
                   ? absl::StrCat("i32(i64(c", k, ") + (", offset, ") != 0)")
                   : absl::StrCat(type, "(i64(c", k, ") + (", offset, "))");
      default:
        break;
    }
    if (ComputeType(operand.type) == DataType::kFloat) {
      return absl::StrCat("f32_of_bits(u32(c", k, "))");
    }
    if (operand.type == DataType::kDouble) {
      return absl::StrCat("f64_of_bits(c", k, ")");
    }
    if (operand.type == DataType::kBool) {
      return absl::StrCat("i32(c", k, " != 0)");
    }
    return absl::StrCat(type, "(c", k, ")");
  }
  // Returns element `i` of the axis of operand `k`, 0 if it is out of range.
  std::string LoadElement(size_t k, const std::string& offset,
                          const std::string& i) {
    const Operand& operand = plan_.operand(k);
    std::string zero = absl::StrCat(SourceType(operand.type, false), "(0)");
    if (!HasAxis(operand)) return zero;
    const std::string at =
        absl::StrCat(offset, " + idx(", i, ") * a", k, "_stride");
    return absl::StrCat("(", i, " >= 0 && ", i, " < a", k, "_size) ? ",
                        Load(k, at), " : ", zero);
  }
  std::string Store(size_t k, const std::string& offset,
                    const std::string& value) const {
    return absl::StrCat(
        absl::StrReplaceAll(language().store,
                            {{"$E", Element(k, offset)},
                             {"$V", value},
                             {"$X", absl::StrCat("x", k)},
                             {"$I", offset},
                             {"$T", SourceType(plan_.operand(k).type, true)}}),
        ";\n");
  }
  // Declares an array that the items of a group share.
  std::string Shared(const std::string& type, const char* name,
                     const std::string& size) {
    std::string text = absl::StrReplaceAll(
        language().shared, {{"$T", type}, {"$X", name}, {"$N", size}});
    if (!absl::StrContains(language().kernel, "$SHARED")) return text;
    shared_ += text;
    return "";
  }

  // Returns statements that compute d<begin>, ..., d<end - 1> from `flat`.
  std::string Unflatten(const std::string& flat, int begin, int end) const {
    if (end <= begin) return "";
    if (end == begin + 1) {
      return absl::StrCat("const idx d", begin, " = ", flat, ";\n");
    }
    std::string text = absl::StrCat("idx rest", begin, " = ", flat, ";\n");
    for (int d = end - 1; d > begin; --d) {
      absl::StrAppend(&text, "const idx d", d, " = rest", begin, " % ", Size(d),
                      "; rest", begin, " /= ", Size(d), ";\n");
    }
    return absl::StrCat(text, "const idx d", begin, " = rest", begin, ";\n");
  }

  // ---- The whole -----------------------------------------------------------

  std::string Finish(const std::string& body) {
    std::string guard;
    if (has_rows_) {
      guard = absl::StrCat("if (group >= ", Extra("groups"), ") return;\n");
    }
    const auto field = [](const char* type, const char* name, size_t size) {
      return size == 0 ? ""
                       : absl::StrCat("  ", type, " ", name, "[", size, "];\n");
    };
    std::string pointers;
    for (size_t i = 0; i < num_pointers_; ++i) {
      pointers +=
          absl::StrReplaceAll(language().pointer, {{"$K", absl::StrCat(i)}});
    }
    return absl::StrCat(
        parts_.Prelude(), "#define idx ",
        plan_.is_wide() ? "i64\n#define IS_WIDE\n" : "i32\n",
        absl::StrReplaceAll(
            language().kernel,
            {{"$ENTRY", entry_},
             {"$FIELDS",
              absl::StrCat(field("i64", "o", plan_.num_offsets()),
                           field("u64", "c", num_scalars_),
                           field("idx", "v", num_values_ + num_values_ % 2))},
             {"$COUNT", absl::StrCat(num_pointers_)},
             {"$POINTERS", pointers},
             {"$SHARED", shared_},
             {"$BODY", absl::StrCat(declarations_, guard, body)}}));
  }

  // ---- Called by VisitParameters -------------------------------------------

  void VisitPointer(size_t k, const Operand& operand) {
    const char* const type = SourceType(operand.type, true);
    declarations_ += absl::StrReplaceAll(language().operand,
                                         {{"$T", type},
                                          {"$X", absl::StrCat("x", k)},
                                          {"$K", absl::StrCat(num_pointers_)}});
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

  const Language& language() const { return parts_.language(); }
  std::string Element(size_t k, const std::string& offset) const {
    return absl::StrReplaceAll(
        language().element, {{"$X", absl::StrCat("x", k)},
                             {"$I", offset},
                             {"$T", SourceType(plan_.operand(k).type, true)}});
  }

  const bool has_rows_;
  SourceParts parts_;
  const char* const entry_;
  const LaunchPlan& plan_;
  std::string declarations_, shared_;
  size_t num_pointers_ = 0, num_scalars_ = 0, num_values_ = 0;
};

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_KERNEL_SOURCE_H_
