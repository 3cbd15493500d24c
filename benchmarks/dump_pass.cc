// SPDX-License-Identifier: Apache-2.0
// A graph optimizer for the CPU that changes nothing, but writes each graph to
// the directory TFPLUG_DUMP, as 0.pb, 1.pb and so on. Uses only the C API, so
// that dump_graphs.py can build it with one command.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tfplug/abi/enums.h"
#include "tfplug/abi/tf_buffer.h"
#include "tfplug/abi/tp_optimizer.h"
#include "tfplug/abi/tp_optimizer_configs.h"
#include "tfplug/abi/tp_optimizer_registration_params.h"

namespace {

using namespace tfplug::capi;

std::atomic<int> graphs = 0;

void SetStatus(TF_Status* status, TF_Code code, const char* message) {
  using Function = void (*)(TF_Status*, TF_Code, const char*);
  static const auto set =
      reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "TF_SetStatus"));
  set(status, code, message);
}

void* Create() { return &graphs; }
void Destroy(void*) {}

void Optimize(void*, const TF_Buffer* graph, const TF_GrapplerItem*, TF_Buffer*,
              TF_Status* status) {
  if (const char* folder = std::getenv("TFPLUG_DUMP")) {
    const std::string path =
        std::string(folder) + "/" + std::to_string(graphs++) + ".pb";
    std::FILE* file = std::fopen(path.c_str(), "wb");
    const bool written =
        file != nullptr &&
        std::fwrite(graph->data, 1, graph->length, file) == graph->length;
    if (file == nullptr || std::fclose(file) != 0 || !written) {
      return SetStatus(status, TF_INTERNAL, ("cannot write " + path).c_str());
    }
  }
  SetStatus(status, TF_ABORTED, "the graph is unchanged");
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void TF_InitGraph(
    TP_OptimizerRegistrationParams* params, TF_Status* status) {
  params->struct_size = TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE;
  params->device_type = "CPU";
  params->optimizer->struct_size = TP_OPTIMIZER_STRUCT_SIZE;
  params->optimizer->create_func = Create;
  params->optimizer->optimize_func = Optimize;
  params->optimizer->destroy_func = Destroy;
  SetStatus(status, TF_OK, "");
}
