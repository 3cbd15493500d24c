// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_CHECK_TARGET_H_
#define TFPLUG_COMPILED_CHECK_TARGET_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/compiled/language.h"
#include "tfplug/compiled/math_functions.h"
#include "tfplug/compiled/program.h"

#pragma GCC visibility push(hidden)

// Mistakes of an author that a device's compiler does not see.
namespace tfplug::compiled_internal {

[[gnu::cold, gnu::noinline]] inline absl::Status WrongTarget(
    const Target& target) {
  if (target.language == nullptr) {
    return absl::FailedPreconditionError(
        "the programs of a device have no language: set Target::language, and "
        "call ProgramCache::SetTarget before the first launch");
  }
  if (target.most_groups < 1 || target.most_iterations < 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("Target::most_groups is ", target.most_groups,
                     " and Target::most_iterations ", target.most_iterations,
                     "; set the device's limits, or leave them out"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("Target::group_size is ", target.group_size,
                   "; it must be a power of two from 32 to 1024: call "
                   "Target::LimitGroupSize with the device's limit"));
}

// Returns an error if kernels for the target would compute nonsense.
inline absl::Status CheckTarget(const Target& target) {
  const int size = target.group_size;
  const bool is_right = target.language != nullptr && size >= 32 &&
                        size <= 1024 && (size & (size - 1)) == 0 &&
                        target.most_groups >= 1 && target.most_iterations >= 1;
  return ABSL_PREDICT_TRUE(is_right) ? absl::OkStatus() : WrongTarget(target);
}

using Words = std::initializer_list<absl::string_view>;

// Checks one template: it has each of the words `needed`, and of words in
// capitals only those and `others`, because nothing replaces another one.
inline absl::Status CheckTemplate(const char* name, absl::string_view text,
                                  Words needed, Words others) {
  std::string known;
  for (const Words words : {needed, others}) {
    for (const absl::string_view word : words) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", word);
    }
  }
  for (const absl::string_view word : needed) {
    if (absl::StrContains(text, word)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "Language::", name, " lacks ", word, "; its words are ", known));
  }
  const auto begins_with = [&](absl::string_view word) {
    return absl::StartsWith(text, word);
  };
  for (; !text.empty(); text.remove_prefix(1)) {
    if (text[0] != '$' ||
        std::any_of(needed.begin(), needed.end(), begins_with) ||
        std::any_of(others.begin(), others.end(), begins_with)) {
      continue;
    }
    size_t end = 1;
    while (end < text.size() && absl::ascii_isupper(text[end])) ++end;
    if (end == 1) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("Language::", name, " has ", text.substr(0, end),
                     ", which nothing replaces; its words are ", known));
  }
  return absl::OkStatus();
}

// Returns an error that names the template or the function that is wrong.
inline absl::Status CheckLanguage(const Language& language) {
  struct Template {
    const char* name;
    const std::string& text;
    Words needed, others;
  };
  for (const Template& each : std::initializer_list<Template>{
           {"kernel",
            language.kernel,
            {"$FIELDS", "$BODY"},
            {"$ENTRY", "$COUNT", "$POINTERS", "$SHARED"}},
           {"pointer", language.pointer, {}, {"$K"}},
           {"operand", language.operand, {"$X"}, {"$T", "$K"}},
           {"element", language.element, {"$X", "$I"}, {"$T"}},
           {"store", language.store, {"$V"}, {"$E", "$X", "$I", "$T"}},
           {"shared", language.shared, {"$X"}, {"$T", "$N"}},
           {"f32_function", language.f32_function, {"$F"}, {}},
           {"f64_function", language.f64_function, {"$F"}, {}}}) {
    TFPLUG_RETURN_IF_ERROR(
        CheckTemplate(each.name, each.text, each.needed, each.others));
  }
  if (language.functions == "*") return absl::OkStatus();
  for (const absl::string_view entry :
       absl::StrSplit(language.functions, ' ', absl::SkipEmpty())) {
    const size_t equals = entry.find('=');
    const absl::string_view name = entry.substr(0, equals);
    const bool is_known =
        std::any_of(std::begin(kMathFunctions), std::end(kMathFunctions),
                    [&](const MathText& row) { return name == row.name; });
    if (is_known && equals + 1 != entry.size() &&
        !absl::StrContains(entry, ',')) {
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "Language::functions has \"", entry,
        "\", which names no function that kernels call; write names of "
        "<math.h>, or rsqrt, as name or name=other, with spaces between them"));
  }
  return absl::OkStatus();
}

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_CHECK_TARGET_H_
