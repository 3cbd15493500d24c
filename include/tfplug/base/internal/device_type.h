// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_DEVICE_TYPE_H_
#define TFPLUG_BASE_INTERNAL_DEVICE_TYPE_H_

#include <string_view>
#include <type_traits>

#pragma GCC visibility push(hidden)

namespace tfplug::internal {

// Returns whether TensorFlow accepts `name` as a platform name or device type:
// [A-Z][A-Z_]*. The argument is a C string, because g++ -fsanitize=undefined
// rejects the null check of absl::string_view in constant expressions.
constexpr bool IsDeviceType(const char* name) {
  if (*name == '\0' || *name == '_') return false;
  for (; *name != '\0'; ++name) {
    if (*name != '_' && (*name < 'A' || *name > 'Z')) return false;
  }
  return true;
}

// Returns whether `type` contains "CPU". TensorFlow's graph optimizers treat
// every such device as the CPU, and replace its ops with ops for which only the
// CPU has kernels.
constexpr bool IsTakenForCpu(const char* type) {
  for (; *type != '\0'; ++type) {
    if (type[0] == 'C' && type[1] == 'P' && type[2] == 'U') return true;
  }
  return false;
}

// The first mistake in the kDeviceType of an author's class. Registration macros
// assert each of them themselves, so that the compiler begins with the sentence.
enum class DeviceTypeMistake { kNone, kMissing, kMalformed, kCpu };

template <class T, class = void>
inline constexpr DeviceTypeMistake kDeviceTypeMistake =
    DeviceTypeMistake::kMissing;
template <class T>
inline constexpr DeviceTypeMistake
    kDeviceTypeMistake<T, std::enable_if_t<IsDeviceType(T::kDeviceType) ||
                                           !IsDeviceType(T::kDeviceType)>> =
        !IsDeviceType(T::kDeviceType) ? DeviceTypeMistake::kMalformed
        : IsTakenForCpu(T::kDeviceType) &&
                std::string_view(T::kDeviceType) != "CPU"
            ? DeviceTypeMistake::kCpu
            : DeviceTypeMistake::kNone;

}  // namespace tfplug::internal

// Calls `refuse(type, mistake, text)` for each mistake. Each header has a
// `refuse` of its own, because g++ begins with all files through which the place
// of an assertion is included: the sentence would come after the fifth line.
#define TFPLUG_INTERNAL_DEVICE_TYPE_MISTAKES(refuse, type)                    \
  refuse(type, kMissing,                                                      \
         "tfplug: this class has no public `static constexpr char "           \
         "kDeviceType[]`") refuse(type, kMalformed,                           \
                                  "tfplug: a device type must begin with a "  \
                                  "capital letter and consist "               \
                                  "of capital letters and underscores")       \
      refuse(type, kCpu,                                                      \
             "tfplug: a plug-in's device type must not contain \"CPU\"; for " \
             "TensorFlow's own device, use \"CPU\"")

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_DEVICE_TYPE_H_
