// SPDX-License-Identifier: Apache-2.0
// A library like lib/stubs/libcuda.so of NVIDIA's toolkit, with which programs
// are linked where there is no driver: each function returns error 34.
extern "C" __attribute__((visibility("default"))) int cuGetProcAddress_v2(
    const char* /*symbol*/, void** /*function*/, int /*version*/,
    unsigned long long /*flags*/, int* /*found*/) {
  return 34;
}
