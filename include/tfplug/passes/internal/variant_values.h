// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_VARIANT_VALUES_H_
#define TFPLUG_PASSES_INTERNAL_VARIANT_VALUES_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/data_type.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/node.h"
#include "tfplug/graph/ranges.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Proves what a variant is: a list of tensors, a map, or an optional, such as
// the next elements of a dataset or the values that nested gradients of
// branches keep.
//
// Examines the value and all values that are the same one, or of the same kind,
// because an op forwards, adds or merges them. The origin of some of them may
// be unknown: they may be arguments of the function.
class VariantValues {
 public:
  // Ops whose outputs are of the same kind as all their variant inputs.
  static bool Forwards(absl::string_view op) {
    static constexpr absl::string_view kOps[] = {
        "Identity", "StopGradient",  "PreventGradient", "Snapshot", "Enter",
        "Exit",     "NextIteration", "Switch",          "_SwitchN", "Merge",
        "AddN",     "ZerosLike"};
    return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
  }

  // Returns the type of a list's elements; none if the graph does not show
  // that the value is a list, or of which type. One of the values must be
  // produced or read by an op on lists, and none by an op on others.
  static std::optional<DataType> ElementType(Output value) {
    VariantValues values;
    values.Add(value);
    values.Examine(/*all=*/false);
    if (values.is_other_) return std::nullopt;
    return values.element_type_;
  }

  // Optionals that may be the same ones.
  struct Optionals {
    std::vector<Node> carriers;  // Nodes that forward them, such as a Switch.
    std::vector<Node> others;    // Nodes that make or use them.
  };
  static std::vector<Optionals> OnOptionals(Graph& graph) {
    std::vector<Optionals> found;
    std::set<std::pair<uint32_t, int>> seen;
    for (const absl::string_view op : kOptionalMakers) {
      if (!graph.has_op(op)) continue;
      for (Node node : graph.nodes(op)) {
        if (seen.count({node.id(), 0}) > 0) continue;
        VariantValues values;
        values.Add(node);
        values.Examine(/*all=*/true);
        seen.insert(values.seen_.begin(), values.seen_.end());
        found.push_back(values.AsOptionals());
      }
    }
    return found;
  }

  // Returns the nodes that forward, add or merge maps, such as the Identity of
  // one.
  static std::vector<Node> OnMaps(Graph& graph) {
    VariantValues values;
    for (const char* op :
         {"TensorMapInsert", "TensorMapErase", "TensorMapLookup",
          "TensorMapHasKey", "TensorMapSize", "TensorMapStackKeys"}) {
      if (!graph.has_op(op)) continue;
      for (Node node : graph.nodes(op)) {
        values.Add(node.input(0));
        if (node.op() == "TensorMapInsert" || node.op() == "TensorMapErase") {
          values.Add({node, 0});
        }
      }
    }
    values.Examine(/*all=*/true);
    std::vector<Node> nodes;
    for (const Output& value : values.examined_) {
      const absl::string_view op = value.node.op();
      if (Forwards(op) || op == "IdentityN") nodes.push_back(value.node);
    }
    return nodes;
  }

 private:
  // Returns whether output 0 of the op is a list.
  static bool MakesList(absl::string_view op) {
    static constexpr absl::string_view kOps[] = {
        "EmptyTensorList",      "TensorListReserve",
        "TensorListFromTensor", "TensorListPushBack",
        "TensorListPopBack",    "TensorListSetItem",
        "TensorListResize",     "TensorListScatter",
        "TensorListScatterV2",  "TensorListScatterIntoExistingList",
        "TensorListSplit"};
    return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
  }
  // Returns whether input 0 of the op is a list.
  static bool ReadsList(absl::string_view op) {
    static constexpr absl::string_view kOps[] = {
        "TensorListElementShape", "TensorListLength",
        "TensorListPushBack",     "TensorListPopBack",
        "TensorListGetItem",      "TensorListSetItem",
        "TensorListStack",        "TensorListGather",
        "TensorListConcat",       "TensorListConcatV2",
        "TensorListResize",       "TensorListScatterIntoExistingList"};
    return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
  }
  static constexpr absl::string_view kOptionalMakers[] = {
      "IteratorGetNextAsOptional", "OptionalFromValue", "OptionalNone"};
  static bool MakesOptional(absl::string_view op) {
    return std::find(std::begin(kOptionalMakers), std::end(kOptionalMakers),
                     op) != std::end(kOptionalMakers);
  }
  static bool ReadsOptional(absl::string_view op) {
    return op == "OptionalGetValue" || op == "OptionalHasValue";
  }

  // Examines the values and all that are of the same kind; unless `all`, only
  // until one of them is no list.
  void Examine(bool all) {
    while (!pending_.empty() && (all || !is_other_)) {
      const Output next = pending_.back();
      pending_.pop_back();
      examined_.push_back(next);
      ExamineOrigin(next);
      ExamineUses(next);
    }
  }
  void Add(Output value) {
    if (value && seen_.emplace(value.node.id(), value.port).second) {
      pending_.push_back(value);
    }
  }

  void ExamineOrigin(Output value) {
    const absl::string_view op = value.node.op();
    if (Forwards(op)) {
      // The other input of a Switch is its condition.
      const bool is_switch = op == "Switch" || op == "_SwitchN";
      const int count = is_switch ? 1 : value.node.num_inputs();
      for (int i = 0; i < count; ++i) Add(value.node.input(i));
    } else if (op == "IdentityN") {
      Add(value.node.input(value.port));
    } else if (value.port == 0 && MakesList(op)) {
      NoteList(value.node);
    } else {
      is_other_ |= MakesOptional(op) || absl::StartsWith(op, "TensorMap") ||
                   op == "EmptyTensorMap";
    }
  }

  void ExamineUses(Output value) {
    for (const Use& use : value.node.uses(value.port)) {
      const absl::string_view op = use.node.op();
      if (op == "Switch" && use.input == 0) {
        Add({use.node, 0});
        Add({use.node, 1});
      } else if (op == "_SwitchN" && use.input == 0) {
        for (const Use& after : use.node.uses()) {
          if (!after.is_control()) Add(after.node.input(after.input));
        }
      } else if (Forwards(op)) {
        Add({use.node, 0});
      } else if (op == "IdentityN") {
        Add({use.node, use.input});
      } else if (use.input == 0 && ReadsList(op)) {
        NoteList(use.node);
      } else if (use.input == 0) {
        is_other_ |= ReadsOptional(op) || absl::StartsWith(op, "TensorMap");
      }
    }
  }

  Optionals AsOptionals() const {
    Optionals optionals;
    for (const Output& value : examined_) {
      (Forwards(value.node.op()) ? optionals.carriers : optionals.others)
          .push_back(value.node);
      for (const Use& use : value.node.uses(value.port)) {
        if (!Forwards(use.node.op())) optionals.others.push_back(use.node);
      }
    }
    return optionals;
  }

  void NoteList(Node op) {
    const auto type = op.GetAttr<DataType>("element_dtype");
    if (!type.ok()) return;  // Such as TensorListLength.
    is_other_ |= element_type_.has_value() && *element_type_ != *type;
    element_type_ = *type;
  }

  std::set<std::pair<uint32_t, int>> seen_;
  std::vector<Output> pending_, examined_;
  std::optional<DataType> element_type_;
  bool is_other_ = false;
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_VARIANT_VALUES_H_
