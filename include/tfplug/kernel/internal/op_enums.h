// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_INTERNAL_OP_ENUMS_H_
#define TFPLUG_KERNEL_INTERNAL_OP_ENUMS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/numeric/bits.h"

#pragma GCC visibility push(hidden)

// The arguments and attributes of typed ops (ops/*.h) are enumerators, grouped
// by kind: tfplug::ops::SumOp::Inputs has `input` and `reduction_indices`, and
// their values are their indices. Names and kinds are derived from the
// compiler's spelling of the enumerators, so that unused ones cost no compile
// time.
namespace tfplug::kernel_internal {

// Return the compiler's spelling of a function with this template argument:
// "... [with T = tfplug::X; ...]" (g++), "... [T = tfplug::X]" (Clang). What
// surrounds the argument has the same length for all, and loops over pointers
// take the compiler a fraction of the time of std::string_view's functions.
template <class T>
constexpr std::string_view FunctionOf() {
  return __PRETTY_FUNCTION__;
}
template <auto value>
constexpr std::string_view FunctionOf() {
  return __PRETTY_FUNCTION__;
}
constexpr std::string_view ArgumentIn(std::string_view function,
                                      std::string_view other, size_t start,
                                      size_t other_size) {
  return std::string_view(function.data() + start,
                          function.size() - other.size() + other_size);
}
inline constexpr size_t kTypeStart = FunctionOf<void>().rfind("void");
inline constexpr size_t kValueStart = FunctionOf<true>().rfind("true");

// Returns "tfplug::X".
template <class T>
constexpr std::string_view SpellingOf() {
  return ArgumentIn(FunctionOf<T>(), FunctionOf<void>(), kTypeStart, 4);
}
template <auto value>
constexpr std::string_view SpellingOf() {
  return ArgumentIn(FunctionOf<value>(), FunctionOf<true>(), kValueStart, 4);
}

// Return "C" and "a::b" for "a::b::C".
constexpr std::string_view LastName(std::string_view spelling) {
  const char* const end = spelling.data() + spelling.size();
  const char* name = end;
  while (name != spelling.data() && name[-1] != ':') --name;
  return std::string_view(name, static_cast<size_t>(end - name));
}
constexpr std::string_view ScopeOf(std::string_view spelling) {
  const size_t end = spelling.rfind("::");
  return spelling.substr(0, end == spelling.npos ? 0 : end);
}

// Returns whether E is one of the enumerations of a typed op.
template <class E>
constexpr bool IsOpEnum() {
  if constexpr (std::is_enum_v<E>) {
    constexpr std::string_view kOps = "tfplug::ops::";
    return SpellingOf<E>().substr(0, kOps.size()) == kOps;
  } else {
    return false;
  }
}
template <class E>
using IfOpEnum = std::enable_if_t<IsOpEnum<E>()>;

// The kind of the enumerators of E: "Inputs", "Outputs", "Bools", ...
template <class E>
inline constexpr std::string_view kKind = LastName(SpellingOf<E>());

// Return whether enumerators of this kind are inputs, or outputs. An argument
// has a fixed index (Inputs), follows a list, so that its index depends on the
// node (LateInputs), is a list (InputLists), or is a reference (RefInputs).
constexpr bool IsInput(std::string_view kind) {
  return kind == "Inputs" || kind == "LateInputs" || kind == "InputLists" ||
         kind == "RefInputs";
}
constexpr bool IsOutput(std::string_view kind) {
  return kind == "Outputs" || kind == "LateOutputs" || kind == "OutputLists" ||
         kind == "RefOutputs";
}

// A NUL-terminated name, for the C API.
template <size_t size>
struct NameText {
  char text[size + 1] = {};
  constexpr explicit NameText(std::string_view name) {
    for (size_t i = 0; i < size; ++i) text[i] = name[i];
  }
};

// docs/guide/typed_ops.md has the rules that map C++ names to TensorFlow's.
//
// SumOp -> Sum, InternalFusedMatMulOp -> _FusedMatMul
template <class O>
struct OpName {
  static constexpr std::string_view kSpelling = LastName(SpellingOf<O>());
  static constexpr std::string_view kPrefix = "Internal";
  static constexpr bool kIsInternal =
      kSpelling.substr(0, kPrefix.size()) == kPrefix;
  // The "l" of the prefix becomes the underscore.
  static constexpr size_t kStart = kIsInternal ? kPrefix.size() - 1 : 0;
  static constexpr size_t kSize = kSpelling.size() - kStart - 2;
  static constexpr NameText<kSize> Make() {
    NameText<kSize> name(kSpelling.substr(kStart, kSize));
    if (kIsInternal) name.text[0] = '_';
    return name;
  }
  static constexpr auto kName = Make();
};

// reduction_indices -> reduction_indices, template_ -> template, and for type
// attributes Tidx_attr -> Tidx
template <auto enumerator>
struct EnumeratorName {
  static constexpr std::string_view Plain() {
    std::string_view name = LastName(SpellingOf<enumerator>());
    if (name.back() == '_') name.remove_suffix(1);
    constexpr std::string_view kind = kKind<decltype(enumerator)>;
    constexpr std::string_view kSuffix = "_attr";
    if (kind == "Types" || kind == "TypeLists") {
      name.remove_suffix(kSuffix.size());
    }
    return name;
  }
  static constexpr NameText<Plain().size()> kName{Plain()};
};

// Returns "tfplug::ops::SumOp::input, (tfplug::ops::SumOp::Inputs)1}...": a value
// that is not an enumerator is spelled as a cast. One function for many values
// compiles faster than one for each.
template <class E, E... values>
constexpr const char* SpellingsOf() {
  const char* at = __PRETTY_FUNCTION__;
  while (*at != '{' && *at != '<') ++at;
  return at + 1;
}
// Returns a bit for each value below sizeof...(i), set if it is an enumerator.
template <class E, int... i>
constexpr uint64_t FindEnumerators(std::integer_sequence<int, i...>) {
  const char* at = SpellingsOf<E, static_cast<E>(i)...>();
  uint64_t found = 0;
  for (size_t value = 0; value < sizeof...(i); ++value) {
    if (*at != '(') found |= uint64_t{1} << value;
    if (value + 1 == sizeof...(i)) break;
    while (*at != ',') ++at;
    at += 2;  // the comma and a space
  }
  return found;
}
// No op has more arguments or attributes of one kind.
inline constexpr int kMaxEnumerators = 64;
// Tries `end` values, and twice as many if the upper half had enumerators: each
// costs compile time. The generator of ops/*.h checks that none is missed.
template <class E, int end = 8>
constexpr uint64_t FindAllEnumerators() {
  constexpr uint64_t kFound =
      FindEnumerators<E>(std::make_integer_sequence<int, end>());
  if constexpr (end == kMaxEnumerators ||
                (kFound != 0 && kFound >> (end / 2) == 0)) {
    return kFound;
  } else {
    return FindAllEnumerators<E, 2 * end>();
  }
}
template <class E>
inline constexpr uint64_t kEnumerators = FindAllEnumerators<E>();

template <class E>
inline constexpr int kEnumeratorCount = absl::popcount(kEnumerators<E>);

template <class E, int i>
constexpr const char* NameAt() {
  constexpr uint64_t kBit = uint64_t{1} << i;
  if constexpr ((kEnumerators<E> & kBit) != 0) {
    return EnumeratorName<static_cast<E>(i)>::kName.text;
  } else {
    return nullptr;
  }
}
template <class E, int... i>
constexpr std::array<const char*, sizeof...(i)> NamesOf(
    std::integer_sequence<int, i...>) {
  return {NameAt<E, i>()...};
}
// TensorFlow's names by the values of the enumerators; null for other values.
template <class E>
inline constexpr auto kNames = NamesOf<E>(
    std::make_integer_sequence<int, absl::bit_width(kEnumerators<E>)>());

// Returns TensorFlow's name for an argument or attribute.
template <class E>
constexpr const char* NameOf(E enumerator) {
  return kNames<E>[static_cast<size_t>(enumerator)];
}

// Return the index of an input or output. If the index is not constant, the
// call does not compile.
template <class E>
constexpr int InputIndex(E argument) {
  constexpr std::string_view kKind = kernel_internal::kKind<E>;
  static_assert(IsInput(kKind), "tfplug: an input of the op is expected here");
  static_assert(kKind != "InputLists",
                "tfplug: this input is a list of tensors; use GetInputList or "
                "GetInputRange");
  static_assert(kKind != "LateInputs",
                "tfplug: this input comes after a list, so its index depends "
                "on the node; use GetInputRange");
  static_assert(kKind != "RefInputs",
                "tfplug: this input is a reference to a variable of "
                "TensorFlow 1, which plug-ins cannot read");
  return static_cast<int>(argument);
}
template <class E>
constexpr int OutputIndex(E argument) {
  constexpr std::string_view kKind = kernel_internal::kKind<E>;
  static_assert(IsOutput(kKind),
                "tfplug: an output of the op is expected here");
  static_assert(kKind != "OutputLists" && kKind != "LateOutputs",
                "tfplug: this output is a list or comes after one, so its "
                "index depends on the node; pass the index as an int");
  static_assert(kKind != "RefOutputs",
                "tfplug: this output is a reference to a variable of "
                "TensorFlow 1, which plug-ins cannot set");
  return static_cast<int>(argument);
}
// Returns the name of an input, for functions that look it up.
template <class E>
constexpr const char* InputName(E argument) {
  static_assert(IsInput(kKind<E>),
                "tfplug: an input of the op is expected here");
  return NameOf(argument);
}

}  // namespace tfplug::kernel_internal

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_INTERNAL_OP_ENUMS_H_
