// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_TENSORFLOW_H_
#define TFPLUG_TESTING_FAKE_TENSORFLOW_H_

#include <utility>

#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/testing/fake_device_functions.h"
#include "tfplug/testing/fake_rendezvous.h"
#include "tfplug/testing/internal/attribute_functions.h"
#include "tfplug/testing/internal/context_functions.h"
#include "tfplug/testing/internal/graph_functions.h"
#include "tfplug/testing/internal/output_functions.h"
#include "tfplug/testing/internal/string_functions.h"
#include "tfplug/testing/internal/tensor_functions.h"
#include "tfplug/testing/internal/variable_functions.h"
#include "tfplug/testing/kernel_registry.h"
#include "tfplug/testing/op_registry.h"
#include "tfplug/testing/shape_inference.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// Returns the fake's table of functions, and sets the result of TF_Version.
inline capi::Functions MakeFakeTensorFlow(const FakeOptions& options = {}) {
  capi::Functions functions;
  InstallDeviceFunctions(functions, options);
  InstallStringFunctions(functions);
  InstallTensorFunctions(functions);
  InstallAttributeFunctions(functions);
  InstallRegistryFunctions(functions);
  InstallContextFunctions(functions, options.release);
  InstallOutputFunctions(functions);
  InstallVariableFunctions(functions, options.release);
  InstallRendezvousFunctions(functions);
  InstallOpDefinitionFunctions(functions);
  InstallShapeInferenceFunctions(functions);
  InstallGraphFunctions(functions);
  RemoveFunctions(functions, options);
  return functions;
}

// Replaces TensorFlow, while the object exists, for plug-ins that are linked
// with the test:
//
//   tfplug::testing::ScopedFakeTensorFlow tensorflow;
//   auto host = tfplug::testing::Host::Register(&SE_InitPlugin);
//
// Construct the first one before any entry point of the plug-in is called.
// Plug-ins loaded with dlopen look functions up by themselves: see Host::Load.
// The destructor removes all registered kernels and ops.
class ScopedFakeTensorFlow {
 public:
  explicit ScopedFakeTensorFlow(const FakeOptions& options = {})
      : before_(
            std::exchange(internal::tensorflow, MakeFakeTensorFlow(options))) {}
  ScopedFakeTensorFlow(const ScopedFakeTensorFlow&) = delete;
  ScopedFakeTensorFlow& operator=(const ScopedFakeTensorFlow&) = delete;
  ~ScopedFakeTensorFlow() {
    KernelRegistry::Get().Clear();
    RegisteredOps().clear();
    internal::tensorflow = before_;
  }

 private:
  const capi::Functions before_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_FAKE_TENSORFLOW_H_
