// SPDX-License-Identifier: Apache-2.0
// A driver that defines a symbol that the process exports, too, like a driver
// with its own copy of LLVM in a process with TensorFlow.
extern "C" {

__attribute__((visibility("default"), noinline)) int test_driver_collision() {
  return 2;
}

__attribute__((visibility("default"))) int test_driver_value(int x) {
  return x + test_driver_collision();
}
}
