// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_H_
#define TFPLUG_TESTING_H_

// Everything for testing a plug-in in one process, without TensorFlow.
// ScopedFakeTensorFlow replaces the C API that TensorFlow exports. Host calls a
// device plug-in as TensorFlow does, HostDevice uses a device as TensorFlow does,
// Process loads several plug-ins, FakeKernel and KernelRun call a kernel,
// and GraphHost calls a graph optimizer. Fault makes calls fail, and LeakCheck
// detects leaks.
#include "tfplug/testing/bfc_allocator.h"
#include "tfplug/testing/event_manager.h"
#include "tfplug/testing/fake_context.h"
#include "tfplug/testing/fake_device.h"
#include "tfplug/testing/fake_kernel.h"
#include "tfplug/testing/fake_rendezvous.h"
#include "tfplug/testing/fake_stream.h"
#include "tfplug/testing/fake_tensorflow.h"
#include "tfplug/testing/fault.h"
#include "tfplug/testing/graph_host.h"
#include "tfplug/testing/grappler_item.h"
#include "tfplug/testing/host.h"
#include "tfplug/testing/host_device.h"
#include "tfplug/testing/kernel_registry.h"
#include "tfplug/testing/leak_check.h"
#include "tfplug/testing/log_capture.h"
#include "tfplug/testing/node.h"
#include "tfplug/testing/op_registry.h"
#include "tfplug/testing/op_spec.h"
#include "tfplug/testing/optimizer_settings.h"
#include "tfplug/testing/process.h"
#include "tfplug/testing/profiler_host.h"
#include "tfplug/testing/release.h"
#include "tfplug/testing/shape_inference.h"
#include "tfplug/testing/struct_sizes.h"
#include "tfplug/testing/tensor.h"

#endif  // TFPLUG_TESTING_H_
