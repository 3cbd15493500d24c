// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_CONTENTS_H_
#define TFPLUG_BASE_CONTENTS_H_

// Records that the library contains a component, for `tfplug sbom`: its name
// and version, without spaces, and its license as an SPDX expression. Use it at
// namespace scope, for each library that the plug-in links statically; tfplug
// records itself, Abseil, Eigen and Protocol Buffers.
//
//   TFPLUG_CONTAINS("acme-runtime", "2.1", "LicenseRef-Acme");
//
// The records are in section .tfplug, which like .comment is not loaded; strip
// keeps it, and the linker keeps one of equal records.
#define TFPLUG_CONTAINS(name, version, license)         \
  __asm__(                                              \
      ".pushsection .tfplug,\"MS\",%progbits,1\n"       \
      ".asciz \"contains " name " " version " " license \
      "\"\n"                                            \
      ".popsection");                                   \
  static_assert(true, "")

// The value of a macro as a string literal.
#define TFPLUG_TEXT(macro) TFPLUG_INTERNAL_TEXT(macro)
#define TFPLUG_INTERNAL_TEXT(value) #value

#endif  // TFPLUG_BASE_CONTENTS_H_
