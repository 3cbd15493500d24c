/* SPDX-License-Identifier: Apache-2.0
 * A graph optimizer for the CPU in plain C, without tfplug, that turns off two
 * rewriters and changes no graph: a plug-in of somebody else. With FOREIGN_ABORTS_ON,
 * a string, it aborts on graphs that contain this, as one aborts on devices that it
 * does not know. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#ifdef FOREIGN_ABORTS_ON
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#endif

/* As in TensorFlow's tensorflow/c/experimental/grappler/grappler.h. */
enum { kDefault = 0, kOff = 1, kOn = 2, kAborted = 10 };

typedef struct TP_OptimizerConfigs {
  size_t struct_size;
  void* ext;
  int disable_model_pruning;
  int implementation_selector;
  int function_optimization;
  int common_subgraph_elimination;
  int arithmetic_optimization;
  int debug_stripper;
  int constant_folding;
  int shape_optimization;
  int auto_mixed_precision;
  int auto_mixed_precision_onednn_bfloat16;
  int auto_mixed_precision_mkl;
  int pin_to_host_optimization;
  int layout_optimizer;
  int remapping;
  int loop_optimization;
  int dependency_optimization;
  int auto_parallel;
  int memory_optimization;
  int scoped_allocator_optimization;
} TP_OptimizerConfigs;

typedef struct TP_Optimizer {
  size_t struct_size;
  void* ext;
  void* (*create_func)(void);
  void (*optimize_func)(void*, const void*, const void*, void*, void*);
  void (*destroy_func)(void*);
} TP_Optimizer;

typedef struct TP_OptimizerRegistrationParams {
  size_t struct_size;
  void* ext;
  int32_t major_version;
  int32_t minor_version;
  int32_t patch_version;
  const char* device_type;
  TP_OptimizerConfigs* optimizer_configs;
  TP_Optimizer* optimizer;
} TP_OptimizerRegistrationParams;

static void* Create(void) { return NULL; }
static void Destroy(void* optimizer) { (void)optimizer; }

static void Optimize(void* optimizer, const void* graph, const void* item,
                     void* optimized, void* status) {
#ifdef FOREIGN_ABORTS_ON
  const struct {
    const void* data;
    size_t length;
  }* const buffer = graph;
  if (memmem(buffer->data, buffer->length, FOREIGN_ABORTS_ON,
             strlen(FOREIGN_ABORTS_ON)) != NULL) {
    fputs("F0000 00:00:00.000000 1 devices.cc:9] Unsupported device type: "
          FOREIGN_ABORTS_ON "\n", stderr);
    abort();
  }
#endif
  /* TensorFlow's libraries may not be in the global scope. */
  void* const library =
      dlopen("libtensorflow_framework.so.2", RTLD_LAZY | RTLD_NOLOAD);
  void (*set_status)(void*, int, const char*) = NULL;
  *(void**)&set_status = dlsym(library, "TF_SetStatus");
  (void)optimizer, (void)graph, (void)item, (void)optimized;
  set_status(status, kAborted, "unchanged");
}

__attribute__((visibility("default"))) void TF_InitGraph(
    TP_OptimizerRegistrationParams* params, void* status) {
  (void)status;
  params->device_type = "CPU";
  params->optimizer_configs->remapping = kOff;
  params->optimizer_configs->layout_optimizer = kOff;
  params->optimizer->create_func = Create;
  params->optimizer->optimize_func = Optimize;
  params->optimizer->destroy_func = Destroy;
}
