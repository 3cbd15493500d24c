// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_VALIDATE_H_
#define TFPLUG_TESTING_INTERNAL_VALIDATE_H_

#include <cstddef>
#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tfplug/abi/abi.h"

#pragma GCC visibility push(hidden)

// TensorFlow's checks when it loads a device plug-in; a failed check aborts the
// process there. Here they are as strict as in the strictest release (the
// newest releases need no timers, for instance), and also require the functions
// that TensorFlow calls without checking for null.
namespace tfplug::testing {

struct Field {
  const char* name;
  bool is_set;
};

inline absl::Status RequireFields(const char* struct_name, size_t struct_size,
                                  std::initializer_list<Field> fields) {
  if (struct_size == 0) {
    return absl::FailedPreconditionError(std::string(struct_name) +
                                         "::struct_size is 0");
  }
  for (const Field& field : fields) {
    if (field.is_set) continue;
    return absl::FailedPreconditionError(std::string(struct_name) +
                                         "::" + field.name + " is null");
  }
  return absl::OkStatus();
}

// Requires the form [A-Z][A-Z_]*.
inline absl::Status ValidateDeviceType(absl::string_view field,
                                       absl::string_view type) {
  bool ok = !type.empty() && type[0] != '_';
  for (const char c : type) ok = ok && (c == '_' || (c >= 'A' && c <= 'Z'));
  if (ok) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "SP_Platform::" + std::string(field) + " is '" + std::string(type) +
      "', but must begin with a capital letter and contain only capital "
      "letters and underscores");
}

inline absl::Status Validate(
    const capi::SE_PlatformRegistrationParams& params) {
  return RequireFields(
      "SE_PlatformRegistrationParams", params.struct_size,
      {{"destroy_platform", params.destroy_platform != nullptr},
       {"destroy_platform_fns", params.destroy_platform_fns != nullptr}});
}

inline absl::Status Validate(const capi::SP_Platform& platform) {
  absl::Status status = RequireFields(
      "SP_Platform", platform.struct_size,
      {{"name", platform.name != nullptr}, {"type", platform.type != nullptr}});
  if (status.ok()) status = ValidateDeviceType("name", platform.name);
  if (status.ok()) status = ValidateDeviceType("type", platform.type);
  return status;
}

inline absl::Status Validate(const capi::SP_PlatformFns& fns) {
  return RequireFields(
      "SP_PlatformFns", fns.struct_size,
      {{"get_device_count", fns.get_device_count != nullptr},
       {"create_device", fns.create_device != nullptr},
       {"destroy_device", fns.destroy_device != nullptr},
       {"create_device_fns", fns.create_device_fns != nullptr},
       {"destroy_device_fns", fns.destroy_device_fns != nullptr},
       {"create_stream_executor", fns.create_stream_executor != nullptr},
       {"destroy_stream_executor", fns.destroy_stream_executor != nullptr},
       {"create_timer_fns", fns.create_timer_fns != nullptr},
       {"destroy_timer_fns", fns.destroy_timer_fns != nullptr}});
}

// All functions of SP_DeviceFns are optional.
inline absl::Status Validate(const capi::SP_DeviceFns& fns) {
  return RequireFields("SP_DeviceFns", fns.struct_size, {});
}

inline absl::Status Validate(const capi::SP_TimerFns& fns) {
  return RequireFields("SP_TimerFns", fns.struct_size,
                       {{"nanoseconds", fns.nanoseconds != nullptr}});
}

// `size` is the size of TensorFlow's struct, which determines its fields.
inline absl::Status Validate(const capi::SP_StreamExecutor& se, size_t size,
                             bool supports_unified_memory) {
  const bool no_fills =
      size < offsetof(capi::SP_StreamExecutor, create_stream_with_options);
  return RequireFields(
      "SP_StreamExecutor", se.struct_size,
      {{"allocate", se.allocate != nullptr},
       {"deallocate", se.deallocate != nullptr},
       {"host_memory_allocate", se.host_memory_allocate != nullptr},
       {"host_memory_deallocate", se.host_memory_deallocate != nullptr},
       {"unified_memory_allocate",
        !supports_unified_memory || se.unified_memory_allocate != nullptr},
       {"unified_memory_deallocate",
        !supports_unified_memory || se.unified_memory_deallocate != nullptr},
       {"get_allocator_stats", se.get_allocator_stats != nullptr},
       {"device_memory_usage", se.device_memory_usage != nullptr},
       {"create_stream", se.create_stream != nullptr},
       {"destroy_stream", se.destroy_stream != nullptr},
       {"create_stream_dependency", se.create_stream_dependency != nullptr},
       {"get_stream_status", se.get_stream_status != nullptr},
       {"create_event", se.create_event != nullptr},
       {"destroy_event", se.destroy_event != nullptr},
       {"get_event_status", se.get_event_status != nullptr},
       {"record_event", se.record_event != nullptr},
       {"wait_for_event", se.wait_for_event != nullptr},
       {"create_timer", se.create_timer != nullptr},
       {"destroy_timer", se.destroy_timer != nullptr},
       {"start_timer", se.start_timer != nullptr},
       {"stop_timer", se.stop_timer != nullptr},
       {"memcpy_dtoh", se.memcpy_dtoh != nullptr},
       {"memcpy_htod", se.memcpy_htod != nullptr},
       {"memcpy_dtod", se.memcpy_dtod != nullptr},
       {"sync_memcpy_dtoh", se.sync_memcpy_dtoh != nullptr},
       {"sync_memcpy_htod", se.sync_memcpy_htod != nullptr},
       {"sync_memcpy_dtod", se.sync_memcpy_dtod != nullptr},
       {"block_host_for_event", se.block_host_for_event != nullptr},
       {"synchronize_all_activity", se.synchronize_all_activity != nullptr},
       {"mem_zero", no_fills || se.mem_zero != nullptr},
       {"memset", no_fills || se.memset != nullptr},
       {"memset32", no_fills || se.memset32 != nullptr},
       {"host_callback", se.host_callback != nullptr}});
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_VALIDATE_H_
