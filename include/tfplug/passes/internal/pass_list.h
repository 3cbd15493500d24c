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
  static const std::string* const name = [](const std::string& text) {
    const size_t begin = text.find("T = ") + 4;
    return new std::string(text, begin,
                           text.find_first_of(";]", begin) - begin);
  }(__PRETTY_FUNCTION__);
  return name->c_str();
}

// The first mistake in the class of a pass. Registration macros assert each of
// them themselves, so that the compiler begins with the sentence.
enum class PassMistake { kNone, kBase, kAbstract, kConstructor };

template <class PassT>
constexpr PassMistake PassMistakeOf() {
  if constexpr (!std::is_convertible_v<PassT*, GraphPass*>) {
    return PassMistake::kBase;
  } else if constexpr (std::is_abstract_v<PassT>) {
    return PassMistake::kAbstract;
  } else if constexpr (!std::is_default_constructible_v<PassT>) {
    return PassMistake::kConstructor;
  } else {
    return PassMistake::kNone;
  }
}

template <class PassT>
graph_internal::PassEntry MakePassEntry() {
  return {ClassName<PassT>(), []() -> std::unique_ptr<GraphPass> {
            return std::make_unique<PassT>();
          }};
}

// Marks the end of the list of passes that the macro builds.
struct EndOfPasses {};

// The classes of an author's passes, in the order in which they run.
template <class... PassTs>
struct PassList {
  // Returns whether a pass has this mistake.
  static constexpr bool Has([[maybe_unused]] PassMistake mistake) {
    return ((!std::is_same_v<PassTs, EndOfPasses> &&
             PassMistakeOf<PassTs>() == mistake) ||
            ...);
  }

  static void AppendTo(std::vector<graph_internal::PassEntry>& entries) {
    (Append<PassTs>(entries), ...);
  }

 private:
  template <class PassT>
  static void Append(std::vector<graph_internal::PassEntry>& entries) {
    // The compiler lists the functions that an abstract class lacks.
    if constexpr (PassMistakeOf<PassT>() == PassMistake::kNone ||
                  PassMistakeOf<PassT>() == PassMistake::kAbstract) {
      entries.push_back(MakePassEntry<PassT>());
    }
  }
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_PASS_LIST_H_
