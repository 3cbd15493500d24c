// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_LANGUAGE_H_
#define TFPLUG_COMPILED_LANGUAGE_H_

#include <string>

#pragma GCC visibility push(hidden)

namespace tfplug {

// A language of generated kernels. languages.h has some; an author may write
// another one.
//
// Kernels are written in what C-like languages have in common: statements,
// arithmetic of operands of one type, conversions T(x), comparisons, as
// conditions or converted, and these terms, which the prelude defines. Each may be a
// macro. Not in templates are: decimal literals (1.5f), loops of `int`, indices
// of type idx and `int` in one expression, switch, and `c ? a : b`, which must
// compute only one of a and b: it keeps loads in range.
//
//   i8 ... i64, u8 ... u64, f32, f64   types; T(x) converts x to T
//   f32_of_bits(x), bits_of_f32(x)     the same bits as another type (u32)
//   f64_of_bits(x), bits_of_f64(x)     the same (u64)
//   FN                                 before the definition of a function
//   EXACT                              before a variable that is computed as it
//                                      is written, without fused operations
//   UNROLL                             before a loop to unroll
//   FOR_ITEMS(n) ... END_ITEMS         a phase: code that the first n items of
//                                      a group run, with the index `item`
//   PER_ITEM(type, x); AT(x)           a variable of each item that outlives a
//                                      phase
//   SYNC                               a barrier between phases
//
// A language with `has_vectors` runs the items in loops (kItemLoops in
// languages/c_parts.h) if IS_CPU is defined, which Target::is_cpu does, and has
// vectors of T = f32 and f64:
//
//   ALIGNED                            before an array that has vectors
//   VECTOR_T, LOAD_T(p), STORE_T(x, p) 16 (f32) or 8 (f64) elements
//   ADD_PRODUCT_T(c, a, b)             adds the product of number a and vector b
//
// An author's own macros, such as one in `element`, need other names than all
// these, also if the language has no vectors yet.
//
// Before the prelude, GROUP is defined, the number of items of a group; after
// it, idx, the type of indices: i32 or, with IS_WIDE defined, i64.
//
// The other members are templates: text in which some words are replaced.
struct Language {
  std::string header;  // the first lines of a source, such as #version
  std::string prelude;

  // The kernel. $ENTRY: its name. $FIELDS: members of the parameters `p`, each
  // an array, as in C. $COUNT: the number of pointers. $POINTERS: `pointer` for
  // each of them. $SHARED: declarations of shared arrays, if they are outside
  // of the function. $BODY: statements that use `group`, the index of the
  // group, of type idx.
  std::string kernel;
  // The text for one of the $POINTERS, whose index is $K.
  std::string pointer;
  // Declares $X, operand number $K in memory, with elements of type $T.
  std::string operand;
  // Element $I of operand $X, of type $T, whose values are loaded.
  std::string element = "$X[$I]";
  // Stores $V in element $E, an lvalue. Otherwise, such as "PUT_$T($X, $I, $V)".
  std::string store = "$E = $V";
  // Declares $X, an array of $N elements of type $T that a group shares.
  std::string shared = "SHARED($T, $X, $N);\n";

  // The functions of floats in <math.h>, and rsqrt, that the language has and
  // whose errors opcodes.def allows: their names, separated by spaces; also
  // name=other if it has another name. "*": all. For the others, kernels
  // contain a function (math_functions.h).
  std::string functions = "*";
  // The name of function $F for numbers of 32 and of 64 bits.
  std::string f32_function = "$F", f64_function = "$F";
  // The end of a literal of 64 bits.
  std::string f64_suffix;

  // Whether kernels for CPUs are loops over the items, with vectors. Otherwise,
  // those for Target::is_cpu have independent items: no shared memory, no SYNC.
  bool has_vectors = false;
  // Whether a device's memory is passed as handles of buffers, with an offset
  // for each (SetArguments).
  bool has_offsets = false;
  // Whether a call runs all items of a group, one after the other, on any
  // device; Grid::group_size is then 1.
  bool runs_groups = false;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_LANGUAGE_H_
