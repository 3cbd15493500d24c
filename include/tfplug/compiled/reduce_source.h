// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_REDUCE_SOURCE_H_
#define TFPLUG_COMPILED_REDUCE_SOURCE_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tfplug/compiled/kernel_source.h"

#pragma GCC visibility push(hidden)

// Reduce as a kernel. The result does not depend on timing: each item combines
// elements at fixed distances, and the items of a group combine their totals in
// a tree. split.h divides long sums.
namespace tfplug::compiled_internal {

enum ReduceVariant : uint32_t {
  // GPU: a group computes `columns` outputs; items with equal index modulo
  // `columns` share one.
  kReduceTile,
  // CPU: a group computes a block of outputs in the innermost kept dimension.
  kReduceColumns,
  // CPU: a group computes one output, along the innermost reduced dimension.
  kReduceRow,
  // Independent items: each computes one output.
  kReduceItem,
};

struct ReduceLaunch {
  ReduceVariant variant = kReduceTile;
  int columns = 1;  // outputs that a group computes
  int64_t outputs = 1, reduced = 1;
  int64_t row_size = 1;  // outputs along the innermost kept dimension

  ReduceLaunch(const Target& target, const LaunchPlan& plan) {
    const int kept = plan.kept(), rank = plan.rank();
    for (int d = 0; d < kept; ++d) outputs *= plan.size(d);
    for (int d = kept; d < rank; ++d) reduced *= plan.size(d);
    if (kept > 0) row_size = plan.size(kept - 1);
    const int64_t reduced_inner = rank > kept ? plan.size(rank - 1) : 1;
    const bool is_along_rows = HasUnitStride(plan, rank - 1);
    const bool is_along_columns = HasUnitStride(plan, kept - 1);
    if (target.HasIndependentItems()) {
      variant = kReduceItem;
      columns = target.group_size;
    } else if (target.is_cpu) {
      const bool is_row =
          rank > kept && (is_along_rows && !is_along_columns
                              ? reduced_inner >= 16 || reduced_inner > row_size
                              : reduced_inner > row_size);
      variant = is_row ? kReduceRow : kReduceColumns;
      columns = is_row ? 1 : target.group_size;
    } else if (reduced <= 32 || (is_along_columns && outputs >= 65536)) {
      columns = target.group_size;
    } else {
      const int in_step =
          std::min(std::max(target.subgroup_size, 32), target.group_size);
      columns = is_along_columns || reduced < 128 ? in_step : 1;
    }
  }

 private:
  static bool HasUnitStride(const LaunchPlan& plan, int d) {
    if (d < 0) return false;
    for (size_t k = 0; k < plan.num_inputs(); ++k) {
      const Operand& operand = plan.operand(k);
      if (operand.has_memory() && d < operand.rank && operand.stride(d) == 1) {
        return true;
      }
    }
    return false;
  }
};

// Fills the plan of a Reduce.
inline absl::Status PlanReduce(const Target& target, uint64_t code,
                               LaunchPlan& plan) {
  const ReduceLaunch launch(target, plan);
  const int64_t blocks =
      (launch.row_size + launch.columns - 1) / launch.columns;
  const int64_t groups =
      launch.variant == kReduceTile || launch.variant == kReduceItem
          ? (launch.outputs + launch.columns - 1) / launch.columns
          : launch.outputs / launch.row_size * blocks;
  const uint32_t variant =
      8u + launch.variant + 8u * static_cast<uint32_t>(launch.columns);
  absl::Status status = plan.Fill(
      Primitive::kReduce, code, variant,
      launch.outputs + launch.reduced + int64_t{2} * target.group_size);
  if (!status.ok()) return status;
  plan.AddExtra(launch.outputs);
  plan.AddExtra(launch.reduced);
  plan.AddExtra(blocks);
  return plan.SetGroups(groups);
}

// Writes the parts of a Reduce.
class ReduceSource {
 public:
  ReduceSource(const Target& target, const LaunchPlan& plan,
               const Reduction& reduction)
      : launch_(target, plan),
        kernel_(target, "reduce", plan),
        reduction_(reduction),
        kept_(plan.kept()),
        rank_(plan.rank()),
        type_(ComputeType(reduction.type())),
        total_type_(SourceType(type_, false)) {
    kernel_.Extra("outputs");
    kernel_.Extra("reduced");
    kernel_.Extra("blocks");
  }

  std::string Make() {
    const std::string begin = absl::StrCat(
        "PER_ITEM(", total_type_, ", total);\nFOR_ITEMS(GROUP) AT(total) = ",
        ConstantText(type_, ReduceIdentity(reduction_.kind, type_),
                     kernel_.parts()),
        "; END_ITEMS\n");
    switch (launch_.variant) {
      case kReduceColumns:
        return kernel_.Finish(absl::StrCat(begin, Columns()));
      case kReduceRow:
        return kernel_.Finish(absl::StrCat(begin, Row()));
      case kReduceItem:
        return kernel_.Finish(absl::StrCat(begin, Item()));
      default:
        return kernel_.Finish(absl::StrCat(begin, Tile()));
    }
  }

 private:
  std::string Columns() {
    const int inner = kept_ - 1;
    const std::string i = inner < 0 ? "" : "e";
    const std::string bound =
        inner < 0 ? "1" : kernel_.Size(inner) + " - first";
    std::string text = "const idx first = group % blocks * GROUP;\n";
    text += kernel_.Unflatten("group / blocks", 0, inner);
    std::string ends;
    text += Loops(rank_, &ends);
    absl::StrAppend(&text, "FOR_ITEMS(", bound,
                    ")\nconst idx e = first + item;\n", Add(i, ""),
                    "END_ITEMS\n", ends);
    absl::StrAppend(&text, "FOR_ITEMS(", bound,
                    ")\nconst idx e = first + item;\n",
                    FinishOne("AT(total)", i), "END_ITEMS\n");
    return text;
  }

  std::string Row() {
    const int inner = rank_ - 1;
    std::string text = kernel_.Unflatten("group", 0, kept_);
    std::string ends;
    text += Loops(inner, &ends);
    const std::string size = kernel_.Size(inner);
    absl::StrAppend(&text, "for (idx first = 0; first < ", size,
                    "; first += GROUP) {\nFOR_ITEMS(", size,
                    " - first)\nconst idx r = first + item;\n", Add("", "r"),
                    "END_ITEMS\n}\n", ends);
    return absl::StrCat(text, Tree(1), "FOR_ITEMS(1)\n",
                        FinishOne("parts[item]", ""), "END_ITEMS\n");
  }

  std::string Item() {
    std::string ends;
    const std::string loops = Loops(rank_, &ends);
    return absl::StrCat("FOR_ITEMS(outputs - group * GROUP)\n",
                        kernel_.Unflatten("(group * GROUP + item)", 0, kept_),
                        loops, Add("", ""), ends, FinishOne("AT(total)", ""),
                        "END_ITEMS\n");
  }

  std::string Tile() {
    const int columns = launch_.columns;
    const std::string at = absl::StrCat("const idx e = group * ", columns,
                                        " + item % ", columns, ";\n");
    std::string text = absl::StrCat(
        "FOR_ITEMS(GROUP)\n", at, "if (e < outputs) {\n",
        kernel_.Unflatten("e", 0, kept_), "for (idx r = item / ", columns,
        "; r < reduced; r += GROUP / ", columns, ") {\n",
        kernel_.Unflatten("r", kept_, rank_), Add("", ""), "}\n}\nEND_ITEMS\n",
        Tree(columns), "FOR_ITEMS(", columns, ")\n", at, "if (e < outputs) {\n",
        kernel_.Unflatten("e", 0, kept_), FinishOne("parts[item]", ""),
        "}\nEND_ITEMS\n");
    return text;
  }

  // Returns the begin of loops over the reduced dimensions before `end`, and
  // appends their ends.
  std::string Loops(int end, std::string* ends) {
    std::string text;
    for (int d = kept_; d < end; ++d) {
      absl::StrAppend(&text, "for (idx d", d, " = 0; d", d, " < ",
                      kernel_.Size(d), "; ++d", d, ") {\n");
      *ends += "}\n";
    }
    return text;
  }

  // Combines the items' totals of each column.
  std::string Tree(int columns) {
    return absl::StrCat(
        kernel_.Shared(total_type_, "parts", "GROUP"),
        "FOR_ITEMS(GROUP) parts[item] = AT(total); END_ITEMS\nSYNC\nfor (int "
        "half_ = GROUP / 2; half_ >= ",
        columns, "; half_ /= 2) {\nFOR_ITEMS(half_) parts[item] = ",
        Combine("parts[item]", "parts[item + half_]"),
        "; END_ITEMS\nSYNC\n}\n");
  }

  std::string Combine(const std::string& a, const std::string& b) {
    return DefinitionText(ir::CombineOpcode(reduction_.kind, type_), type_, a,
                          b, kernel_.parts());
  }

  // Adds the element at the current indices to the total.
  std::string Add(const std::string& kept_inner,
                  const std::string& reduced_inner) {
    const auto offset = [&](size_t k) {
      const std::string kept = kernel_.Offset(k, 0, kept_, kept_inner);
      const std::string rest = kernel_.Offset(k, kept_, rank_, reduced_inner);
      return rest == "0" ? kept : kept == "0" ? rest : kept + " + " + rest;
    };
    ExpressionSource values(reduction_.map, "v", kernel_.parts());
    std::string text = values.Statements(
        [&](int k) {
          const auto input = static_cast<size_t>(k);
          return kernel_.Load(input, offset(input));
        },
        [&](int k, const std::string& i) {
          const auto input = static_cast<size_t>(k);
          return kernel_.LoadElement(input, offset(input), i);
        });
    return absl::StrCat(
        text, "AT(total) = ", Combine("AT(total)", values.Value(0)), ";\n");
  }

  // Computes the outputs from a total.
  std::string FinishOne(const std::string& total, const std::string& inner) {
    const size_t first = reduction_.map.inputs().size();
    const auto input = [&](int k) {
      return first + static_cast<size_t>(k) - 1;
    };
    const auto offset = [&](size_t k) {
      return kernel_.Offset(k, 0, kept_, inner);
    };
    ExpressionSource values(reduction_.finish, "w", kernel_.parts());
    std::string text = values.Statements(
        [&](int k) {
          return k == 0 ? total : kernel_.Load(input(k), offset(input(k)));
        },
        [&](int k, const std::string& i) {
          return k == 0 ? total_type_ + "(0)"
                        : kernel_.LoadElement(input(k), offset(input(k)), i);
        });
    const size_t outputs = first + reduction_.finish.inputs().size() - 1;
    for (size_t k = 0; k < reduction_.finish.outputs().size(); ++k) {
      text += kernel_.Store(outputs + k, offset(outputs + k), values.Output(k));
    }
    return text;
  }

  const ReduceLaunch launch_;
  KernelSource kernel_;
  const Reduction& reduction_;
  const int kept_, rank_;
  const DataType type_;
  const std::string total_type_;
};

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_REDUCE_SOURCE_H_
