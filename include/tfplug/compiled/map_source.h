// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_MAP_SOURCE_H_
#define TFPLUG_COMPILED_MAP_SOURCE_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tfplug/compiled/kernel_source.h"

#pragma GCC visibility push(hidden)

// Map as a kernel. A group computes a block of the innermost dimension, in one
// or several rows, the elements of the other dimensions: the position of a row
// is computed once. It computes a block of all elements instead if rows are
// shorter than a group, or, where items run in loops, than 4 elements.
namespace tfplug::compiled_internal {

// Elements that each item computes.
inline constexpr int kMapSteps = 4;

enum MapVariant : uint32_t { kMapRows = 1, kMapElements = 2 };

struct MapLaunch {
  MapVariant variant;
  int64_t rows, row_size;

  MapLaunch(const Target& target, const LaunchPlan& plan) {
    const int rank = plan.rank();
    int64_t total = 1;
    for (int d = 0; d < rank; ++d) total *= plan.size(d);
    row_size = rank == 0 ? 1 : plan.size(rank - 1);
    const int64_t shortest = target.RunsItemsInLoops() ? 4 : target.group_size;
    variant = rank > 1 && row_size < shortest ? kMapElements : kMapRows;
    if (variant == kMapElements) row_size = total;
    rows = total / row_size;
  }
};

// Fills the plan of a Map.
inline absl::Status PlanMap(const Target& target, uint64_t code,
                            LaunchPlan& plan) {
  const MapLaunch launch(target, plan);
  const int64_t block = int64_t{target.group_size} * kMapSteps;
  const int64_t blocks = (launch.row_size + block - 1) / block;
  const int64_t rows_per_group = std::max<int64_t>(block / launch.row_size, 1);
  const int64_t row_groups =
      (launch.rows + rows_per_group - 1) / rows_per_group;
  absl::Status status =
      plan.Fill(Primitive::kMap, code, launch.variant,
                std::max(row_groups * rows_per_group, blocks * row_groups) +
                    blocks * block);
  if (!status.ok()) return status;
  plan.AddExtra(launch.rows);
  plan.AddExtra(launch.row_size);
  plan.AddExtra(blocks);
  plan.AddExtra(rows_per_group);
  return plan.SetGroups(blocks * row_groups);
}

// Returns the statements of one element: indices d0, ... are known, and `inner`
// replaces the innermost one.
inline std::string MapElement(KernelSource& kernel,
                              const Expression& expression, int rank,
                              const std::string& inner) {
  ExpressionSource values(expression, "v", kernel.parts());
  const auto offset = [&](size_t k) {
    return kernel.Offset(k, 0, rank, inner);
  };
  std::string text = values.Statements(
      [&](int k) {
        return kernel.Load(static_cast<size_t>(k),
                           offset(static_cast<size_t>(k)));
      },
      [&](int k, const std::string& i) {
        return kernel.LoadElement(static_cast<size_t>(k),
                                  offset(static_cast<size_t>(k)), i);
      });
  const size_t inputs = expression.inputs().size();
  for (size_t k = 0; k < expression.outputs().size(); ++k) {
    text += kernel.Store(inputs + k, offset(inputs + k), values.Output(k));
  }
  return text;
}

// Returns the source of a Map whose plan was filled.
inline std::string MapSource(const Target& target, const LaunchPlan& plan,
                             const Expression& expression) {
  KernelSource kernel(target, "map", plan);
  const int rank = plan.rank();
  const MapLaunch launch(target, plan);
  kernel.Extra("rows");
  kernel.Extra("row_size");
  kernel.Extra("blocks");
  kernel.Extra("rows_per_group");
  const std::string block = absl::StrCat(
      "const idx first = group % blocks * (GROUP * ", kMapSteps, ");\n");
  const std::string steps = absl::StrCat(
      "UNROLL\nfor (int step = 0; step < ", kMapSteps,
      "; ++step) {\nconst idx start = first + step * GROUP;\n"
      "FOR_ITEMS(row_size - start)\nconst idx e = start + item;\n");
  if (launch.variant == kMapElements) {
    return kernel.Finish(absl::StrCat(
        block, steps, kernel.Unflatten("e", 0, rank),
        MapElement(kernel, expression, rank, ""), "END_ITEMS\n}\n"));
  }
  const std::string element = absl::StrCat(
      steps, MapElement(kernel, expression, rank, "e"), "END_ITEMS\n}\n");
  if (rank < 2) return kernel.Finish(absl::StrCat(block, element));
  return kernel.Finish(
      absl::StrCat(block,
                   "const idx first_row = group / blocks * rows_per_group;\n"
                   "for (idx row = first_row; row < rows && row < first_row + "
                   "rows_per_group; ++row) {\n",
                   kernel.Unflatten("row", 0, rank - 1), element, "}\n"));
}

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_MAP_SOURCE_H_
