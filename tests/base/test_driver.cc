// SPDX-License-Identifier: Apache-2.0
// A driver with a symbol that the process that loads it exports as well, like a
// driver with its own LLVM and TensorFlow.
extern "C" {

__attribute__((visibility("default"), noinline)) int test_driver_collision() {
  return 2;
}

__attribute__((visibility("default"))) int test_driver_value(int x) {
  return x + test_driver_collision();
}
}
