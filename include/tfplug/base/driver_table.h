// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_DRIVER_TABLE_H_
#define TFPLUG_BASE_DRIVER_TABLE_H_

#include <pthread.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tfplug/base/internal/fork_check.h"
#include "tfplug/base/load_driver.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// A function of a driver whose address is found at run time, with its name for
// error messages.
struct DriverSymbol {
  const char* name;
  void* address;          // null until it has been found
  void* in_forked_child;  // replaces the address; null if it stays
};

namespace internal {

// The error code of functions after a fork; no driver has it.
inline constexpr int kForkedCode = -0x666f726b;

// A list of functions.
class DriverSymbols {
 public:
  DriverSymbols() = default;
  DriverSymbols(const DriverSymbols&) = delete;
  DriverSymbols& operator=(const DriverSymbols&) = delete;

  void Add(DriverSymbol* symbol) { symbols_.push_back(symbol); }

 protected:
  ~DriverSymbols() = default;

  // Returns the functions of the table, in the order of their declaration.
  absl::Span<DriverSymbol* const> symbols() const { return symbols_; }

  // Finds all functions by their names. NOT_FOUND if the library lacks one.
  absl::Status FindAll(const Driver& library) {
    for (DriverSymbol* const symbol : symbols_) {
      void (*function)();
      absl::Status status = library.Get(symbol->name, &function);
      if (!status.ok()) return status;
      symbol->address = reinterpret_cast<void*>(function);
    }
    return absl::OkStatus();
  }

  // Loads the first of the libraries that can be loaded (LoadDriver) and finds all
  // functions. Those of forked children will fail.
  absl::Status LoadAll(const std::vector<std::string>& names,
                       const DriverOptions& options) {
    const absl::StatusOr<Driver> library = LoadDriver(names, options);
    if (!library.ok()) return library.status();
    absl::Status status = FindAll(*library);
    if (status.ok()) FailInForkedChildren();
    return status;
  }

  // Makes the functions that return an error code fail in forked children of
  // the process, which have none of the driver's threads: most calls would wait
  // for one forever. Functions with other results stay as they are. Call it
  // once, when a device is first used, for a table that lives as long as the
  // process; AskInChild counts devices without using them.
  void FailInForkedChildren() {
    Protected().push_back(this);
    if (Protected().size() == 1) {
      pthread_atfork(nullptr, nullptr, [] {
        for (DriverSymbols* const table : Protected()) table->Fail();
      });
    }
  }

 private:
  static std::vector<DriverSymbols*>& Protected() {
    static auto* const tables = new std::vector<DriverSymbols*>;
    return *tables;
  }
  void Fail() {
    for (DriverSymbol* const symbol : symbols_) {
      if (symbol->in_forked_child != nullptr) {
        symbol->address = symbol->in_forked_child;
      }
    }
  }

  std::vector<DriverSymbol*> symbols_;
};

}  // namespace internal

// A member of a DriverTable: calls the function with this signature.
template <class Signature>
class DriverFunction;
template <class Result, class... Parameters>
class DriverFunction<Result(Parameters...)> : public DriverSymbol {
 public:
  DriverFunction(internal::DriverSymbols& table, const char* function_name)
      : DriverSymbol{function_name, nullptr, InForkedChild()} {
    table.Add(this);
  }

  Result operator()(Parameters... arguments) const {
    return reinterpret_cast<Result (*)(Parameters...)>(address)(arguments...);
  }

 private:
  static void* InForkedChild() {
    if constexpr (std::is_integral_v<Result> || std::is_enum_v<Result>) {
      return reinterpret_cast<void*>(+[](Parameters...) {
        return static_cast<Result>(internal::kForkedCode);
      });
    }
    return nullptr;
  }
};

// The functions of a driver that return error codes of type `Code`, of which 0
// is success. Derive from it, with a member for each function:
//
//   class Vendor final : public tfplug::DriverTable<vendorResult> {
//    public:
//     absl::Status Load() {
//       TFPLUG_ASSIGN_OR_RETURN(tfplug::Driver library,
//                               tfplug::LoadDriver({"libvendor.so.2"}));
//       return FindAll(library);
//     }
//
//     tfplug::DriverFunction<decltype(::vendorInit)> vendorInit{*this,
//                                                               "vendorInit"};
//
//    private:
//     absl::Status ToStatus(vendorResult code, const char* function) const
//         override;
//   };
//
// Threads: any, once the functions have been found.
template <class Code>
class DriverTable : public internal::DriverSymbols {
 public:
  // Calls a function and converts its result to a status.
  template <class... Parameters>
  absl::Status Call(const DriverFunction<Code(Parameters...)>& function,
                    std::common_type_t<Parameters>... arguments) const {
    const Code code = function(arguments...);
    return Check(code, function.name);  // reads the name after the call
  }

  // Calls a function whose last argument is the address of its result.
  template <class T, class... Parameters, class... Arguments>
  absl::StatusOr<T> Get(const DriverFunction<Code(Parameters...)>& function,
                        const Arguments&... arguments) const {
    T result = {};
    const Code code = function(arguments..., &result);
    if (ABSL_PREDICT_FALSE(code != Code{})) return Error(code, function.name);
    return result;
  }

  // Calls a function that makes an object of another one, an OwnedChild.
  template <class Signature, class Info, class Owned>
  absl::Status Create(const DriverFunction<Signature>& function,
                      typename Owned::Parent parent, const Info& info,
                      Owned& owned) const {
    owned.parent = parent;
    return Call(function, parent, &info, nullptr, &owned.object);
  }

  // Returns the status of a code that `function` returned.
  absl::Status Check(Code code, const char* function) const {
    if (ABSL_PREDICT_TRUE(code == Code{})) return absl::OkStatus();
    return Error(code, function);
  }

  // Returns the status of a code that is an error.
  [[gnu::cold, gnu::noinline]] absl::Status Error(Code code,
                                                  const char* function) const {
    if (static_cast<int64_t>(code) ==
        static_cast<int64_t>(static_cast<Code>(internal::kForkedCode))) {
      return internal::ForkedError(function);
    }
    return ToStatus(code, function);
  }

 protected:
  ~DriverTable() = default;

  // Returns the status of a code of the driver, with the name of the function.
  // RESOURCE_EXHAUSTED if memory has run out: TensorFlow may then retry.
  virtual absl::Status ToStatus(Code code, const char* function) const = 0;

  // Returns such a status for the driver of an API, such as "Vulkan"; `meaning`
  // follows the code.
  static absl::Status DriverError(const char* function, const char* api,
                                  Code code, bool is_full,
                                  const char* meaning = "") {
    const std::string text =
        std::string(function) + " returned " + api + "'s error " +
        std::to_string(static_cast<int64_t>(code)) + meaning;
    return is_full ? absl::ResourceExhaustedError(text)
                   : absl::InternalError(text);
  }
};

// Owns an object of a driver that `table.*release` destroys, such as
//
//   using Queue = tfplug::OwnedHandle<cl_command_queue, cl,
//                                     &Driver::clReleaseCommandQueue>;
template <class Handle, auto& table, auto release>
struct ReleaseHandle {
  void operator()(Handle handle) const { (table.*release)(handle); }
};
template <class Handle, auto& table, auto release>
using OwnedHandle = std::unique_ptr<std::remove_pointer_t<Handle>,
                                    ReleaseHandle<Handle, table, release>>;

// Owns an object that `(table.*destroy)(parent, object, nullptr)` destroys, as
// those of a VkDevice, or none:
//
//   template <class Object, auto destroy>
//   using Owned = tfplug::OwnedChild<VkDevice, Object, vk, destroy>;
//   Owned<VkBuffer, &Driver::DestroyBuffer> buffer;
template <class ParentT, class Object, auto& table, auto destroy>
struct OwnedChild {
  using Parent = ParentT;

  OwnedChild() = default;
  OwnedChild(const OwnedChild&) = delete;
  OwnedChild& operator=(const OwnedChild&) = delete;
  ~OwnedChild() {
    if (object != Object{}) (table.*destroy)(parent, object, nullptr);
  }
  operator Object() const {  // NOLINT(google-explicit-constructor)
    return object;
  }

  Parent parent = {};
  Object object = {};
};

// Owns an object that `(table.*destroy)(object, nullptr)` destroys, as a VkDevice,
// or none.
template <class Object, auto& table, auto destroy>
struct OwnedRoot {
  OwnedRoot() = default;
  OwnedRoot(const OwnedRoot&) = delete;
  OwnedRoot& operator=(const OwnedRoot&) = delete;
  ~OwnedRoot() {
    if (object != Object{}) (table.*destroy)(object, nullptr);
  }
  operator Object() const {  // NOLINT(google-explicit-constructor)
    return object;
  }

  Object object = {};
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_DRIVER_TABLE_H_
