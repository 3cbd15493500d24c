// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PATTERNS_INTERNAL_NEW_OP_H_
#define TFPLUG_PATTERNS_INTERNAL_NEW_OP_H_

#include <algorithm>
#include <cstdio>
#include <list>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tfplug/base/internal/environment.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/op_signature.h"
#include "tfplug/patterns/internal/replacement.h"

#pragma GCC visibility push(hidden)

namespace tfplug::patterns_internal {

// TensorFlow's definition of the op of a new node, compared with the attributes
// that the rule sets. It is the same for all matches.
struct NewOp {
  // An attribute that the rule does not set, or that it copies from a node that
  // may lack it.
  struct Missing {
    const OpSignature::Attr* attr;
    bool may_be_copied;
    bool follows_from_inputs;
  };
  const ReplacementTree* tree;
  const OpSignature* signature = nullptr;
  std::string problem;  // Why the op cannot be used; empty: it can.
  std::vector<Missing> missing;
};

class NewOps {
 public:
  const NewOp& Get(const ReplacementTree& tree, const PassContext& context) {
    for (const NewOp& op : ops_) {
      if (op.tree == &tree) return op;
    }
    const NewOp& op = ops_.emplace_back(LookUp(tree, context));
    if (!op.problem.empty() && internal::IsFusionLogged()) {
      std::fprintf(stderr, "tfplug: no rule creates %s: %s\n", tree.op.c_str(),
                   op.problem.c_str());
    }
    return op;
  }

 private:
  static NewOp LookUp(const ReplacementTree& tree, const PassContext& context) {
    NewOp op = {&tree, nullptr, "", {}};
    const absl::StatusOr<const OpSignature*> signature =
        context.functions().GetSignature(tree.op);
    if (!signature.ok()) {
      op.problem = "TensorFlow cannot look up op " + tree.op + ": " +
                   std::string(signature.status().message());
      return op;
    }
    op.signature = *signature;
    for (const NewAttr& attr : tree.attrs) {
      if (!attr.if_known && op.signature->FindAttr(attr.name) == nullptr) {
        op.problem =
            "this TensorFlow's " + tree.op + " has no attribute " + attr.name;
        return op;
      }
    }
    for (const OpSignature::Attr& attr : op.signature->attrs) {
      bool is_set = false, is_copied = false;
      for (const NewAttr& set : tree.attrs) {
        if (set.name != attr.name) continue;
        (set.copy_from != nullptr ? is_copied : is_set) = true;
      }
      if (is_set) continue;
      op.missing.push_back(
          {&attr, is_copied, FollowsFromInputs(*op.signature, attr.name)});
    }
    // Lengths of lists come first, because types follow from them.
    std::stable_partition(op.missing.begin(), op.missing.end(),
                          [](const NewOp::Missing& missing) {
                            return missing.attr->type == "int";
                          });
    return op;
  }
  static bool FollowsFromInputs(const OpSignature& signature,
                                const std::string& attr) {
    for (const OpSignature::Arg& arg : signature.inputs) {
      if (arg.type_attr == attr || arg.number_attr == attr ||
          arg.type_list_attr == attr) {
        return true;
      }
    }
    return false;
  }

  std::list<NewOp> ops_;
};

}  // namespace tfplug::patterns_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PATTERNS_INTERNAL_NEW_OP_H_
