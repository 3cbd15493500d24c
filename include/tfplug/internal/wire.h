// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_INTERNAL_WIRE_H_
#define TFPLUG_INTERNAL_WIRE_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

// As much of protocol buffers' wire format as the kernel side needs: to write a
// KernelDef, and to find an attribute in a NodeDef.
namespace tfplug::internal {

class WireReader {
 public:
  explicit WireReader(absl::string_view bytes) : rest_(bytes) {}

  // Goes to the next field. False at the end, and where the bytes are not a
  // message: see ok().
  bool Next() {
    if (rest_.empty() || !ok_) return false;
    const uint64_t tag = Varint();
    number_ = static_cast<int>(tag >> 3);
    switch (tag & 7) {
      case 0:
        varint_ = Varint();
        break;
      case 1:
        bytes_ = Take(8);
        break;
      case 2:
        bytes_ = Take(Varint());
        break;
      case 5:
        bytes_ = Take(4);
        break;
      default:
        ok_ = false;
    }
    return ok_;
  }
  bool ok() const { return ok_; }

  int number() const { return number_; }
  uint64_t varint() const { return varint_; }         // Of a number.
  absl::string_view bytes() const { return bytes_; }  // Of anything else.

 private:
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  absl::string_view Take(uint64_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      return {};
    }
    const absl::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  absl::string_view rest_;
  bool ok_ = true;
  int number_ = 0;
  uint64_t varint_ = 0;
  absl::string_view bytes_;
};

inline void AppendVarint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}
inline void AppendField(std::string& to, int number, uint64_t value) {
  AppendVarint(to, static_cast<uint64_t>(number) << 3);
  AppendVarint(to, value);
}
inline void AppendField(std::string& to, int number, absl::string_view value) {
  AppendVarint(to, static_cast<uint64_t>(number) << 3 | 2);
  AppendVarint(to, value.size());
  to.append(value.data(), value.size());
}

}  // namespace tfplug::internal

#endif  // TFPLUG_INTERNAL_WIRE_H_
