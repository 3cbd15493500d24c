// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_REFERENCE_H_
#define TFPLUG_GRAPH_INTERNAL_REFERENCE_H_

#include <cstddef>
#include <cstdint>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/internal/hash.h"
#include "tfplug/graph/internal/op_table.h"

#pragma GCC visibility push(hidden)

// The texts by which a node refers to its inputs.
namespace tfplug::graph_internal {

inline constexpr int32_t kControlPort = -1;

// A parsed "name", "name:port" or "^name". As in TensorFlow, digits after the
// last colon take precedence, so "^a:0" is output 0 of a node "^a". Ports wrap
// around at 2^32, and may therefore be negative here.
struct Reference {
  absl::string_view name;
  int32_t port;
};

// Parses any text; ParseReference() is faster for texts without a port. Adds
// one to `num_controls` for a control input.
inline Reference ParseReferenceWithPort(absl::string_view text,
                                        uint32_t* num_controls) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const char* digits = end;
  while (digits - begin > 1 && digits[-1] >= '0' && digits[-1] <= '9') --digits;
  if (digits - begin > 1 && digits[-1] == ':') {
    uint32_t port = 0, unit = 1;
    for (const char* digit = end; digit-- > digits; unit *= 10) {
      port += static_cast<uint32_t>(*digit - '0') * unit;
    }
    // TensorFlow tests the decimal unit to decide whether there were digits.
    // 10^32 is 0 modulo 2^32, so 32 or more digits are not parsed as a port.
    if (unit > 1) {
      return {absl::string_view(begin, static_cast<size_t>(digits - 1 - begin)),
              static_cast<int32_t>(port)};
    }
  }
  if (*begin == '^') {
    ++*num_controls;
    return {absl::string_view(begin + 1, text.size() - 1), kControlPort};
  }
  return {text, 0};
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline Reference ParseReference(
    absl::string_view text, uint32_t* num_controls) {
  // Most texts have no colon among their last eight characters and no digit
  // before the last seven, and hence no port.
  constexpr uint64_t kOnes = 0x0101010101010101;
  if (ABSL_PREDICT_FALSE(text.empty())) return {text, 0};
  if (ABSL_PREDICT_FALSE(text.size() < 8)) {
    return ParseReferenceWithPort(text, num_controls);
  }
  const char* const last = text.data() + text.size() - 8;
  // The highest bit of a byte becomes 1 for a colon, and for bytes above 0x7f.
  const uint64_t colons = (LoadWord<uint64_t>(last) ^ kOnes * ':') - kOnes;
  if ((colons & kOnes << 7) != 0 || (*last >= '0' && *last <= '9')) {
    return ParseReferenceWithPort(text, num_controls);
  }
  if (text.data()[0] == '^') {
    ++*num_controls;
    return {absl::string_view(text.data() + 1, text.size() - 1), kControlPort};
  }
  return {text, 0};
}

inline Reference ParseReference(absl::string_view text) {
  uint32_t ignored = 0;
  return ParseReference(text, &ignored);
}

// Parses a reference in a function's body: "argument", "name:output:index" or
// "^name". The text after the first colon is the name of a port. The port's
// index is the id of that text in `ports` plus one.
inline Reference ParseBodyReference(absl::string_view text, OpTable& ports) {
  if (!text.empty() && text.data()[0] == '^') {
    return {absl::string_view(text.data() + 1, text.size() - 1), kControlPort};
  }
  const size_t colon = text.find(':');
  if (colon == text.npos) return {text, 0};
  const uint32_t port = ports.Intern(text.substr(colon + 1));
  return {text.substr(0, colon), static_cast<int32_t>(port + 1)};
}

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_REFERENCE_H_
