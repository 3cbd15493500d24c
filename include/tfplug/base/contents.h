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
// The records are ELF notes of the owner "tfplug", which strip keeps and
// `readelf --notes` shows.
#define TFPLUG_CONTAINS(name, version, license)   \
  __asm__(                                        \
      ".pushsection .note.tfplug,\"a\",%note\n"   \
      ".balign 4\n"                               \
      ".long 7, 2f - 1f, 1\n"                     \
      ".asciz \"tfplug\"\n"                       \
      ".balign 4\n"                               \
      "1: .asciz \"" name " " version " " license \
      "\"\n"                                      \
      "2: .balign 4\n"                            \
      ".popsection");                             \
  static_assert(true, "")

// The value of a macro as a string literal.
#define TFPLUG_TEXT(macro) TFPLUG_INTERNAL_TEXT(macro)
#define TFPLUG_INTERNAL_TEXT(value) #value

#endif  // TFPLUG_BASE_CONTENTS_H_
