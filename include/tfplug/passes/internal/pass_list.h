// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_PASS_LIST_H_
#define TFPLUG_PASSES_INTERNAL_PASS_LIST_H_

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/internal/pipeline.h"

#pragma GCC visibility push(hidden)

namespace tfplug::passes_internal {

// Returns a class's name as spelled in the source: "my_plugin::FuseBiasAdd".
template <class T>
const char* ClassName() {
  // g++: "const char* ...ClassName() [with T = ns::Name]"; clang++: "... [T =
  // ns::Name]".
  static const std::string* const name = [](std::string text) {
    const size_t begin = text.find("T = ") + 4;
    return new std::string(text, begin,
                           text.find_first_of(";]", begin) - begin);
  }(__PRETTY_FUNCTION__);
  return name->c_str();
}

template <class PassT>
graph_internal::PassEntry MakePassEntry() {
  static_assert(std::is_base_of_v<GraphPass, PassT>,
                "tfplug: a graph pass must be a class derived from "
                "tfplug::GraphPass");
  static_assert(!std::is_abstract_v<PassT>,
                "tfplug: this pass does not override Run(Graph&, const "
                "PassContext&); see the compiler's note below");
  static_assert(std::is_default_constructible_v<PassT>,
                "tfplug: a graph pass needs a public constructor without "
                "arguments");
  return {ClassName<PassT>(), []() -> std::unique_ptr<GraphPass> {
            return std::make_unique<PassT>();
          }};
}

// Marks the end of the list of passes that the macro builds.
struct EndOfPasses {};

// The classes of an author's passes, in the order in which they run.
template <class... PassTs>
struct PassList {
  static void AppendTo(std::vector<graph_internal::PassEntry>& entries) {
    (Append<PassTs>(entries), ...);
  }

 private:
  template <class PassT>
  static void Append(std::vector<graph_internal::PassEntry>& entries) {
    if constexpr (!std::is_same_v<PassT, EndOfPasses>) {
      entries.push_back(MakePassEntry<PassT>());
    }
  }
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_PASS_LIST_H_
