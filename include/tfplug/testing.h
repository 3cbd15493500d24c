// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_H_
#define TFPLUG_TESTING_H_

// Everything for testing a plug-in in process, without TensorFlow:
// ScopedFakeTensorFlow stands in for the C API that TensorFlow exports, Host
// for what TensorFlow does with a device plug-in, CoreKernel and KernelRun for
// what it does with a kernel, GraphHost for what it does with a graph
// optimizer.
#include "tfplug/testing/fake_device.h"
#include "tfplug/testing/fake_graph.h"
#include "tfplug/testing/fake_kernel.h"
#include "tfplug/testing/fake_log.h"
#include "tfplug/testing/fake_status.h"
#include "tfplug/testing/fake_stream.h"
#include "tfplug/testing/fake_tensorflow.h"
#include "tfplug/testing/graph_host.h"
#include "tfplug/testing/host.h"
#include "tfplug/testing/release.h"
#include "tfplug/testing/struct_sizes.h"

#endif  // TFPLUG_TESTING_H_
