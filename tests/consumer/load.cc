// SPDX-License-Identifier: Apache-2.0
// Loads a plug-in as TensorFlow does, in a process without TensorFlow.
#include <dlfcn.h>

#include <cstdio>

int main(int, char** argv) {
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr || dlsym(library, "SE_InitPlugin") == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  return 0;
}
