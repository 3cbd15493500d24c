// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_CONSTRUCT_H_
#define TFPLUG_BASE_INTERNAL_CONSTRUCT_H_

#include <memory>
#include <new>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/internal/guard.h"

#pragma GCC visibility push(hidden)

// tfplug itself constructs and destroys the author's objects, so their exact
// types are fixed at compile time, and no call is virtual, not even that of the
// destructor.
namespace tfplug::internal {

template <class T>
inline constexpr bool kOverAligned =
    alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__;

template <class T>
void* NewBlock() {
  if constexpr (kOverAligned<T>) {
    return ::operator new(sizeof(T), std::align_val_t(alignof(T)));
  } else {
    return ::operator new(sizeof(T));
  }
}

template <class T>
void DeleteBlock(void* block) {
  if constexpr (kOverAligned<T>) {
    ::operator delete(block, std::align_val_t(alignof(T)));
  } else {
    ::operator delete(block);
  }
}

template <class T>
struct Deleter {
  void operator()(T* object) const {
    object->T::~T();
    DeleteBlock<T>(object);
  }
};
template <class T>
using Owned = std::unique_ptr<T, Deleter<T>>;

// Constructs a T from `arguments` if T has a constructor that takes them,
// otherwise with its default constructor. Deleter<T> destroys it.
template <class T, class... Arguments>
T* ConstructObject(Arguments&&... arguments) {
  static_assert(!std::is_abstract_v<T>,
                "tfplug: this class does not override every required hook; "
                "the compiler lists the missing ones (\"pure virtual\") below");
  static_assert(std::is_abstract_v<T> ||
                    std::is_constructible_v<T, Arguments...> ||
                    std::is_default_constructible_v<T>,
                "tfplug: this class needs a public constructor; the header of "
                "its base class lists the arguments that it may take");
  struct Memory {
    void* block = NewBlock<T>();
    ~Memory() {
      if (block != nullptr) DeleteBlock<T>(block);
    }
  } memory;
  T* object;
  if constexpr (std::is_constructible_v<T, Arguments...>) {
    object = ::new (memory.block) T(static_cast<Arguments&&>(arguments)...);
  } else {
    object = ::new (memory.block) T();
  }
  memory.block = nullptr;
  return object;
}
template <class T, class... Arguments>
Owned<T> Construct(Arguments&&... arguments) {
  return Owned<T>(ConstructObject<T>(static_cast<Arguments&&>(arguments)...));
}

// Constructs a T and calls its Init hook. Returns Init's error, if any.
template <class T, class... Arguments>
absl::StatusOr<Owned<T>> Create(Arguments&&... arguments) {
  Owned<T> object = Construct<T>(static_cast<Arguments&&>(arguments)...);
  if (absl::Status status = object->T::Init(); !status.ok()) return status;
  return object;
}

// Creates a T like Create, and stores it in TensorFlow's handle `*to`, which
// then owns it. Stores null on failure, including an exception.
template <class T, class Handle, class... Arguments>
absl::Status CreateHandle(Handle* to, Arguments&&... arguments) {
  struct Undo {
    Handle* to;
    T* object = nullptr;

    [[gnu::always_inline]] ~Undo() {
      if (to != nullptr) Run(to, object);
    }
    [[gnu::cold, gnu::noinline]] static void Run(Handle* to, T* object) {
      *to = nullptr;
      Owned<T>{object};
    }
  } undo{to};
  undo.object = ConstructObject<T>(static_cast<Arguments&&>(arguments)...);
  absl::Status status = undo.object->T::Init();
  if (ABSL_PREDICT_TRUE(status.ok())) {
    *to = reinterpret_cast<Handle>(undo.object);
    undo.to = nullptr;
  }
  return status;
}

// Destroys `object`, which a handle of TensorFlow's owned; does nothing for
// null. An exception of the destructor is logged with the name of the C field
// `slot`.
template <class T>
void Destroy(const char* slot, T* object) {
  if (object == nullptr) return;
  GuardOrLog(slot, [&] {
    Deleter<T>()(object);
    return absl::OkStatus();
  });
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_CONSTRUCT_H_
