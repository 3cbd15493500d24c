// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_TESTING_RECORD_CALL_LOG_H_
#define TFPLUG_TESTS_TESTING_RECORD_CALL_LOG_H_

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>

#include "tfplug/abi/abi.h"
#include "tfplug/abi/functions.h"
#include "tfplug/base/internal/tensorflow.h"

// Writes a line for each call of a plug-in's C functions, in the file that
// $TFPLUG_PROBE_LOG names. Addresses are names in the order of their appearance:
// d0.s1 is the second stream of device 0, d0.m0+256 is in its first allocation.
namespace tfplug::record {

using namespace capi;  // NOLINT(google-build-using-namespace)

inline std::mutex& Mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

// Returns the value of a setting in "name=value,...", $TFPLUG_PROBE or that of
// one device type, $TFPLUG_PROBE_TYPE; "" if it has none.
inline std::string Setting(const std::string& name,
                           const std::string& type = "") {
  const char* const all =
      std::getenv(("TFPLUG_PROBE" + (type.empty() ? "" : "_" + type)).c_str());
  const std::string text = "," + std::string(all == nullptr ? "" : all) + ",";
  const size_t at = text.find("," + name + "=");
  if (at == std::string::npos) return "";
  const size_t from = at + name.size() + 2;
  return text.substr(from, text.find(',', from) - from);
}

// The names of the objects of one kind, such as streams.
class Names {
 public:
  explicit Names(const char* prefix) : prefix_(prefix) {}

  void Add(const SP_Device* device, const void* object, uint64_t size) {
    if (object == nullptr) return;
    const std::string own = "d" + std::to_string(device->ordinal) + ".";
    names_[reinterpret_cast<uintptr_t>(object)] = {
        own + prefix_ + std::to_string(counts_[device->ordinal]++), size};
  }
  void Remove(const void* object) {
    names_.erase(reinterpret_cast<uintptr_t>(object));
  }
  // Returns the name of the object that contains an address; "" if none does.
  std::string Find(const void* object) const {
    const auto address = reinterpret_cast<uintptr_t>(object);
    auto found = names_.upper_bound(address);
    if (found == names_.begin()) return "";
    --found;
    const uint64_t offset = address - found->first;
    if (offset >= found->second.size) return "";
    return found->second.name +
           (offset == 0 ? "" : "+" + std::to_string(offset));
  }

 private:
  struct Named {
    std::string name;
    uint64_t size;
  };
  const char* const prefix_;
  std::map<uintptr_t, Named> names_;
  std::map<int, int> counts_;
};
inline Names& StreamNames() {
  static auto* const names = new Names("s");
  return *names;
}
inline Names& EventNames() {
  static auto* const names = new Names("e");
  return *names;
}
inline Names& MemoryNames() {
  static auto* const names = new Names("m");
  return *names;
}
inline Names& HostMemoryNames() {
  static auto* const names = new Names("h");
  return *names;
}

// ---- The text of arguments ----------------------------------------------------

inline std::string Text(const SP_Device* device) {
  return "d" + std::to_string(device->ordinal);
}
inline std::string Text(SP_Stream stream) { return StreamNames().Find(stream); }
inline std::string Text(SP_Event event) { return EventNames().Find(event); }
inline std::string Text(const SP_DeviceMemoryBase* memory) {
  if (memory->opaque == nullptr) return "";  // such as that of allocate
  return MemoryNames().Find(memory->opaque) + "[" +
         std::to_string(memory->size) + "]";
}
inline std::string Text(const void* host) {
  if (host == nullptr) return "null";
  const std::string name = HostMemoryNames().Find(host);
  return name.empty() ? "host" : name;
}
inline std::string Text(const char* text) { return text; }
template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
std::string Text(T number) {
  return std::to_string(number);
}
inline std::string Text(SE_EventStatus status) {
  constexpr const char* kNames[] = {"unknown", "error", "pending", "complete"};
  return kNames[static_cast<int>(status)];
}
inline std::string Text(SP_DeviceMemoryBase* memory) {
  return Text(static_cast<const SP_DeviceMemoryBase*>(memory));
}
inline std::string Text(void* host) {
  return Text(static_cast<const void*>(host));
}
inline std::string Text(const SP_StreamOptions* options) {
  return options->has_priority == 0
             ? "no priority"
             : "priority " + std::to_string(options->priority);
}
inline std::string Text(uint8_t* buffer) {
  return buffer == nullptr ? "null" : "buffer";
}
inline std::string Text(SE_CreateDeviceParams* params) {
  return std::to_string(params->ordinal);
}
// What the function writes, or what no log has.
template <class T>
std::string Text(T*) {
  return "";
}

// Writes a line, in one piece, because several plug-ins may share the file.
inline void Write(const std::string& type, const std::string& line) {
  static const int file = [] {
    const char* const path = std::getenv("TFPLUG_PROBE_LOG");
    return path == nullptr
               ? -1
               : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  }();
  static const auto first = std::this_thread::get_id();
  const char* const thread =
      std::this_thread::get_id() == first ? "main " : "other ";
  const std::string text = thread + type + " " + line + "\n";
  if (file >= 0 && write(file, text.data(), text.size()) < 0) std::abort();
}

// Returns whether the setting fail=NAME:N (or NAME:all) is for this call, the
// N-th of a function.
inline bool IsToFail(const std::string& name, int call) {
  static const std::string fail = Setting("fail");
  if (fail.compare(0, name.size() + 1, name + ":") != 0) return false;
  const std::string which = fail.substr(name.size() + 1);
  return which == "all" || which == std::to_string(call);
}

// The device type of this plug-in.
std::string OwnType();

inline TF_Status* StatusOf() { return nullptr; }
template <class First, class... Rest>
TF_Status* StatusOf(First first, Rest... rest) {
  if constexpr (std::is_same_v<First, TF_Status*>) return first;
  return StatusOf(rest...);
}

// The function in a slot of a C struct: writes a line and calls `original`, or
// fails if the settings want it to.
template <auto member>
struct Logged;
template <class S, class R, class... A, R (*S::*member)(A...)>
struct Logged<member> {
  static inline R (*original)(A...);
  static inline const char* name;
  static inline int calls = 0;

  static R Call(A... a) {
    std::string line;
    TF_Status* const status = StatusOf(a...);
    const auto add = [&](const std::string& text) {
      if (!text.empty()) line += (line.empty() ? "" : ", ") + text;
    };
    std::unique_lock<std::mutex> lock(Mutex());
    (add(Text(a)), ...);
    line = std::string(name) + "(" + line + ")";
    const bool fails = IsToFail(name, ++calls);
    if constexpr (std::is_void_v<R>) {
      if (!fails) original(a...);
      if (fails) Fail(status, a...);
      line += After(a...);
      if (status != nullptr &&
          internal::tensorflow.TF_GetCode(status) != TF_OK) {
        line += " fails";
      }
      Write(OwnType(), line);
    } else {
      const R result = fails ? R{} : original(a...);
      Add(result, a...);
      std::string text = Text(result);
      Write(OwnType(), line + (text.empty() ? "" : " = " + text));
      return result;
    }
  }

 private:
  static void Fail(TF_Status* status, A... a) {
    if (status != nullptr) {
      return internal::tensorflow.TF_SetStatus(
          status, TF_INTERNAL,
          (std::string(name) + " was told to fail").c_str());
    }
    if constexpr (std::is_invocable_v<decltype(original), const SP_Device*,
                                      uint64_t, int64_t,
                                      SP_DeviceMemoryBase*>) {
      std::get<3>(std::make_tuple(a...))->opaque = nullptr;
    }
  }
  // Names what the function has created, forgets what it has destroyed, and
  // returns the text of the former.
  static std::string After(A... a) {
    const bool forgets = std::strstr(name, "destroy_") == name ||
                         std::strstr(name, "deallocate") != nullptr;
    std::string text;
    [[maybe_unused]] const SP_Device* device = nullptr;
    [[maybe_unused]] const auto add = [&](Names& names, const void* object,
                                          uint64_t size) {
      names.Add(device, object, size);
      text = " = " + (object == nullptr ? "null" : names.Find(object));
    };
    const auto see = [&](auto argument) {
      using T = decltype(argument);
      if constexpr (std::is_same_v<T, const SP_Device*>) device = argument;
      if constexpr (std::is_same_v<T, SP_Stream*>) {
        add(StreamNames(), *argument, 1);
      } else if constexpr (std::is_same_v<T, SP_Event*>) {
        add(EventNames(), *argument, 1);
      } else if constexpr (std::is_same_v<T, SP_Stream>) {
        if (forgets) StreamNames().Remove(argument);
      } else if constexpr (std::is_same_v<T, SP_Event>) {
        if (forgets) EventNames().Remove(argument);
      } else if constexpr (std::is_same_v<T, void*>) {
        if (forgets) HostMemoryNames().Remove(argument);
      } else if constexpr (std::is_same_v<T, SP_DeviceMemoryBase*>) {
        if (forgets) MemoryNames().Remove(argument->opaque);
        if (std::strcmp(name, "allocate") == 0) {
          add(MemoryNames(), argument->opaque, argument->size);
        }
      }
    };
    (see(a), ...);
    return text;
  }
  template <class T>
  static void Add(T result, A... a) {
    if constexpr (std::is_same_v<T, void*> && sizeof...(A) == 2) {
      const auto arguments = std::make_tuple(a...);
      HostMemoryNames().Add(std::get<0>(arguments), result,
                            static_cast<uint64_t>(std::get<1>(arguments)));
    }
  }
};

}  // namespace tfplug::record

#endif  // TFPLUG_TESTS_TESTING_RECORD_CALL_LOG_H_
