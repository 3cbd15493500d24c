// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_INTERNAL_OS_H_
#define TFPLUG_BASE_INTERNAL_OS_H_

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <string>

#pragma GCC visibility push(hidden)

// For what runs before a sanitizer can check accesses, as a program's own dlsym,
// which sanitizers call when they start.
#define TFPLUG_INTERNAL_UNSANITIZED \
  __attribute__((no_sanitize("address", "thread", "undefined")))

// The operating system's shared libraries and addresses. No other header of
// tfplug includes <dlfcn.h>, <link.h> or <sys/mman.h>: a port to another system
// begins here. Every function may be called from any thread.
namespace tfplug::internal {

// A shared library of this process, as the system's loader refers to it.
using LibraryHandle = void*;

// Returns the address of a symbol that the whole process sees, or null.
inline void* FindGlobal(const char* symbol) {
  return dlsym(RTLD_DEFAULT, symbol);
}

// Returns the address of a symbol in a library or those that it needs, or null.
inline void* FindIn(LibraryHandle library, const char* symbol) {
  return dlsym(library, symbol);
}

// The library whose symbols are those that the whole process sees.
inline const LibraryHandle kGlobalScope = RTLD_DEFAULT;

// Returns the dlsym of the C library, for a program that defines its own, or null
// if its version is unknown.
TFPLUG_INTERNAL_UNSANITIZED inline auto LibcDlsym() {
  using Function = decltype(&dlsym);  // noexcept
  void* found = nullptr;
#if defined(__GLIBC__)
  const char* const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
  for (int i = 0; i < 3 && found == nullptr; ++i) {
    found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
  }
#endif
  return reinterpret_cast<Function>(found);
}

// Returns a library by name or path if it is loaded already, or null. The
// library stays loaded at least until CloseLibrary.
inline LibraryHandle FindLibrary(const char* name) {
  return dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}
inline void CloseLibrary(LibraryHandle library) { dlclose(library); }

// Loads a library, whose symbols others do not see. With `own_symbols_first`,
// it binds to its own symbols and those of its dependencies before those of the
// process, where libc can do that. Returns null on failure; LoaderError() then
// returns the loader's reason.
inline LibraryHandle OpenLibrary(const char* name, bool own_symbols_first) {
  int flags = RTLD_NOW | RTLD_LOCAL;
#if defined(RTLD_DEEPBIND)
  if (own_symbols_first) flags |= RTLD_DEEPBIND;
#else
  static_cast<void>(own_symbols_first);
#endif
  return dlopen(name, flags);
}
inline const char* LoaderError() {
  const char* const reason = dlerror();
  return reason == nullptr ? "the loader gives no reason" : reason;
}

// Returns the path of a loaded library, or `name` if the loader has none.
inline std::string PathOf(LibraryHandle library, const std::string& name) {
  link_map* map = nullptr;
  return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : name;
}

// Returns where the library that contains an address begins in memory, or null.
inline const void* LibraryBase(const void* address) {
  Dl_info info = {};
  return dladdr(address, &info) == 0 ? nullptr : info.dli_fbase;
}

// Returns the path of the library that contains an address, or null. The loader
// owns the result.
inline const char* LibraryPath(const void* address) {
  Dl_info info = {};
  return dladdr(address, &info) == 0 ? nullptr : info.dli_fname;
}

// Returns how many libraries the process has loaded so far.
inline unsigned long long CountLibraryLoads() {
  unsigned long long loads = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        *static_cast<unsigned long long*>(to) = info->dlpi_adds;
        return 1;
      },
      &loads);
  return loads;
}

// Calls visit(path, base) for each library of the process but the program. The
// loader's lock is held: `visit` must not load or look up anything.
template <class Visit>
void ForEachLibrary(Visit visit) {
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        // The program itself has no name.
        if (info->dlpi_name != nullptr && *info->dlpi_name != '\0') {
          (*static_cast<Visit*>(to))(
              info->dlpi_name, reinterpret_cast<const void*>(info->dlpi_addr));
        }
        return 0;
      },
      &visit);
}

// Reserves `size` bytes of addresses without memory, which nothing may access.
// Returns null if the process may not have that many.
inline void* ReserveAddresses(size_t size) {
  void* const base = mmap(nullptr, size, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return base == MAP_FAILED ? nullptr : base;
}
inline void ReleaseAddresses(void* base, size_t size) { munmap(base, size); }

// Gives whole pages of reserved addresses memory. Returns false if there is none.
inline bool AllowAccess(void* base, size_t size) {
  return mprotect(base, size, PROT_READ | PROT_WRITE) == 0;
}

// Asks for huge pages for memory that is aligned to one. Only a hint.
inline void PreferHugePages(void* memory, size_t size) {
#ifdef MADV_HUGEPAGE
  madvise(memory, size, MADV_HUGEPAGE);
#else
  static_cast<void>(memory);
  static_cast<void>(size);
#endif
}

// Faults in all whole pages of memory at once, which is faster than one after
// another, unless they are so few that a system call would take longer. Only a
// hint: older versions of Linux reject it, which is harmless.
inline void PopulatePages(void* memory, size_t size) {
#ifdef MADV_POPULATE_WRITE
  constexpr uintptr_t kPage = 4096;
  constexpr uintptr_t kSmall = 16 << 10;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = (begin + kPage - 1) & ~(kPage - 1);
  const uintptr_t last = (begin + size) & ~(kPage - 1);
  if (memory != nullptr && first + kSmall < last) {
    madvise(reinterpret_cast<void*>(first), last - first, MADV_POPULATE_WRITE);
  }
#else
  static_cast<void>(memory);
  static_cast<void>(size);
#endif
}

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_INTERNAL_OS_H_
