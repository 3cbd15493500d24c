/* SPDX-License-Identifier: Apache-2.0
 *
 * A device, a kernel and a graph pass in plain C, without tfplug and its headers,
 * for TensorFlow 2.7 and newer: correct, and so simple that all work is done
 * within the call. See check_test.py. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- As in TensorFlow's headers for C ------------------------------------------ */

typedef unsigned char TF_Bool;
typedef struct TF_Status TF_Status;
typedef struct TF_Tensor TF_Tensor;
typedef struct TF_KernelBuilder TF_KernelBuilder;
typedef struct TF_OpKernelContext TF_OpKernelContext;
typedef struct SP_Stream_st* SP_Stream;
typedef struct SP_Event_st* SP_Event;
typedef struct SP_Timer_st* SP_Timer;
enum { TF_OK = 0, TF_ABORTED = 10, TF_FLOAT = 1, SE_EVENT_COMPLETE = 3 };

void TF_SetStatus(TF_Status*, int code, const char* message);
TF_Status* TF_NewStatus(void);
void TF_DeleteStatus(TF_Status*);
int TF_GetCode(const TF_Status*);
TF_KernelBuilder* TF_NewKernelBuilder(
    const char* op, const char* device, void* (*create)(void*),
    void (*compute)(void*, TF_OpKernelContext*), void (*destroy)(void*));
void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder*, const char* attr,
                                     int type, TF_Status*);
void TF_RegisterKernelBuilder(const char*, TF_KernelBuilder*, TF_Status*);
void TF_GetInput(TF_OpKernelContext*, int, TF_Tensor**, TF_Status*);
TF_Tensor* TF_AllocateOutput(TF_OpKernelContext*, int index, int type,
                             const int64_t* dims, int rank, size_t size,
                             TF_Status*);
void TF_OpKernelContext_Failure(TF_OpKernelContext*, TF_Status*);
void TF_DeleteTensor(TF_Tensor*);
void* TF_TensorData(const TF_Tensor*);
size_t TF_TensorByteSize(const TF_Tensor*);
int TF_NumDims(const TF_Tensor*);
int64_t TF_Dim(const TF_Tensor*, int);

typedef struct {
  size_t struct_size;
  void* ext;
  int32_t ordinal;
  void* device_handle;
  const char *hardware_name, *device_vendor, *pci_bus_id;
} SP_Device;
typedef struct {
  size_t struct_size;
  void *ext, *opaque;
  uint64_t size, payload;
} Memory;
typedef struct {
  size_t struct_size;
  void* ext;
  void (*allocate)(const SP_Device*, uint64_t, int64_t, Memory*);
  void (*deallocate)(const SP_Device*, Memory*);
  void* (*host_memory_allocate)(const SP_Device*, uint64_t);
  void (*host_memory_deallocate)(const SP_Device*, void*);
  void *unified_memory_allocate, *unified_memory_deallocate;
  TF_Bool (*get_allocator_stats)(const SP_Device*, void*);
  TF_Bool (*device_memory_usage)(const SP_Device*, int64_t*, int64_t*);
  void (*create_stream)(const SP_Device*, SP_Stream*, TF_Status*);
  void (*destroy_stream)(const SP_Device*, SP_Stream);
  void (*create_stream_dependency)(const SP_Device*, SP_Stream, SP_Stream,
                                   TF_Status*);
  void (*get_stream_status)(const SP_Device*, SP_Stream, TF_Status*);
  void (*create_event)(const SP_Device*, SP_Event*, TF_Status*);
  void (*destroy_event)(const SP_Device*, SP_Event);
  int (*get_event_status)(const SP_Device*, SP_Event);
  void (*record_event)(const SP_Device*, SP_Stream, SP_Event, TF_Status*);
  void (*wait_for_event)(const SP_Device*, SP_Stream, SP_Event, TF_Status*);
  void (*create_timer)(const SP_Device*, SP_Timer*, TF_Status*);
  void (*destroy_timer)(const SP_Device*, SP_Timer);
  void (*start_timer)(const SP_Device*, SP_Stream, SP_Timer, TF_Status*);
  void (*stop_timer)(const SP_Device*, SP_Stream, SP_Timer, TF_Status*);
  void (*memcpy_dtoh)(const SP_Device*, SP_Stream, void*, const Memory*,
                      uint64_t, TF_Status*);
  void (*memcpy_htod)(const SP_Device*, SP_Stream, Memory*, const void*,
                      uint64_t, TF_Status*);
  void (*memcpy_dtod)(const SP_Device*, SP_Stream, Memory*, const Memory*,
                      uint64_t, TF_Status*);
  void (*sync_memcpy_dtoh)(const SP_Device*, void*, const Memory*, uint64_t,
                           TF_Status*);
  void (*sync_memcpy_htod)(const SP_Device*, Memory*, const void*, uint64_t,
                           TF_Status*);
  void (*sync_memcpy_dtod)(const SP_Device*, Memory*, const Memory*, uint64_t,
                           TF_Status*);
  void (*block_host_for_event)(const SP_Device*, SP_Event, TF_Status*);
  void (*block_host_until_done)(const SP_Device*, SP_Stream, TF_Status*);
  void (*synchronize_all_activity)(const SP_Device*, TF_Status*);
  void (*mem_zero)(const SP_Device*, SP_Stream, Memory*, uint64_t, TF_Status*);
  void (*memset)(const SP_Device*, SP_Stream, Memory*, uint8_t, uint64_t,
                 TF_Status*);
  void (*memset32)(const SP_Device*, SP_Stream, Memory*, uint32_t, uint64_t,
                   TF_Status*);
  TF_Bool (*host_callback)(const SP_Device*, SP_Stream,
                           void (*)(void*, TF_Status*), void*);
} SP_StreamExecutor;
typedef struct {
  size_t struct_size;
  void* ext;
  uint64_t (*nanoseconds)(SP_Timer);
} SP_TimerFns;
typedef struct {
  size_t struct_size;
  void* ext;
  void *get_numa_node, *get_memory_bandwidth, *get_gflops;
} SP_DeviceFns;
typedef struct {
  size_t struct_size;
  void* ext;
  int32_t ordinal;
  SP_Device* device;
} DeviceParams;
typedef struct {
  size_t struct_size;
  void* ext;
  SP_DeviceFns* device_fns;
} DeviceFnsParams;
typedef struct {
  size_t struct_size;
  void* ext;
  SP_StreamExecutor* stream_executor;
} ExecutorParams;
typedef struct {
  size_t struct_size;
  void* ext;
  const char *name, *type;
  TF_Bool supports_unified_memory, use_bfc_allocator, force_memory_growth;
} SP_Platform;
typedef struct {
  size_t struct_size;
  void* ext;
  void (*get_device_count)(const SP_Platform*, int*, TF_Status*);
  void (*create_device)(const SP_Platform*, DeviceParams*, TF_Status*);
  void (*destroy_device)(const SP_Platform*, SP_Device*);
  void (*create_device_fns)(const SP_Platform*, DeviceFnsParams*, TF_Status*);
  void (*destroy_device_fns)(const SP_Platform*, SP_DeviceFns*);
  void (*create_stream_executor)(const SP_Platform*, ExecutorParams*,
                                 TF_Status*);
  void (*destroy_stream_executor)(const SP_Platform*, SP_StreamExecutor*);
  void (*create_timer_fns)(const SP_Platform*, SP_TimerFns*, TF_Status*);
  void (*destroy_timer_fns)(const SP_Platform*, SP_TimerFns*);
} SP_PlatformFns;
typedef struct {
  size_t struct_size;
  void* ext;
  int32_t major_version, minor_version, patch_version;
  SP_Platform* platform;
  SP_PlatformFns* platform_fns;
  void (*destroy_platform)(SP_Platform*);
  void (*destroy_platform_fns)(SP_PlatformFns*);
} RegistrationParams;
typedef struct {
  const void* data;
  size_t length;
  void (*data_deallocator)(void*, size_t);
} TF_Buffer;
typedef struct {
  size_t struct_size;
  void* ext;
  void* (*create_func)(void);
  void (*optimize_func)(void*, const TF_Buffer*, const void*, TF_Buffer*,
                        TF_Status*);
  void (*destroy_func)(void*);
} TP_Optimizer;
typedef struct {
  size_t struct_size;
  void* ext;
  int32_t major_version, minor_version, patch_version;
  const char* device_type;
  void* configs;
  TP_Optimizer* optimizer;
} OptimizerParams;

/* ---- The device ------------------------------------------------------------------ */

struct SP_Stream_st {
  char unused;
};
struct SP_Event_st {
  char unused;
};
struct SP_Timer_st {
  uint64_t begin, end;
};
#define DEVICE const SP_Device* device

static void Ok(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

static void* Allocate(DEVICE, uint64_t size) {
  return size > UINT64_MAX - 255 ? NULL
                                 : aligned_alloc(256, (size + 255) / 256 * 256);
}
static void Free(DEVICE, void* memory) { free(memory); }
static void AllocateDevice(DEVICE, uint64_t size, int64_t space, Memory* mem) {
  mem->opaque = Allocate(device, size);
  mem->size = mem->opaque == NULL ? 0 : size;
}
static void FreeDevice(DEVICE, Memory* mem) { free(mem->opaque); }
static TF_Bool HasNoStatistics(DEVICE, void* stats) { return 0; }
static TF_Bool Usage(DEVICE, int64_t* free, int64_t* total) {
  *free = *total = INT64_C(1) << 30;
  return 1;
}
#define CREATE(Type)                                                       \
  static void Create##Type(DEVICE, SP_##Type* handle, TF_Status* status) { \
    *handle = calloc(1, sizeof(**handle));                                 \
    Ok(status);                                                            \
  }                                                                        \
  static void Destroy##Type(DEVICE, SP_##Type handle) { free(handle); }
CREATE(Stream)
CREATE(Event)
CREATE(Timer)
static void Depend(DEVICE, SP_Stream a, SP_Stream b, TF_Status* s) { Ok(s); }
static void OnStream(DEVICE, SP_Stream stream, TF_Status* s) { Ok(s); }
static void OnEvent(DEVICE, SP_Event event, TF_Status* s) { Ok(s); }
static void OnBoth(DEVICE, SP_Stream a, SP_Event b, TF_Status* s) { Ok(s); }
static void OnDevice(DEVICE, TF_Status* s) { Ok(s); }
static int EventStatus(DEVICE, SP_Event event) { return SE_EVENT_COMPLETE; }

static uint64_t Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
static void Start(DEVICE, SP_Stream stream, SP_Timer timer, TF_Status* s) {
  timer->begin = Now();
  Ok(s);
}
static void Stop(DEVICE, SP_Stream stream, SP_Timer timer, TF_Status* s) {
  timer->end = Now();
  Ok(s);
}
static uint64_t Nanoseconds(SP_Timer timer) {
  return timer->end - timer->begin;
}

static void ToHostNow(DEVICE, void* to, const Memory* from, uint64_t size,
                      TF_Status* s) {
  memcpy(to, from->opaque, size);
  Ok(s);
}
static void ToDeviceNow(DEVICE, Memory* to, const void* from, uint64_t size,
                        TF_Status* s) {
  memcpy(to->opaque, from, size);
  Ok(s);
}
static void BetweenNow(DEVICE, Memory* to, const Memory* from, uint64_t size,
                       TF_Status* s) {
  memmove(to->opaque, from->opaque, size);
  Ok(s);
}
static void ToHost(DEVICE, SP_Stream stream, void* to, const Memory* from,
                   uint64_t size, TF_Status* s) {
  ToHostNow(device, to, from, size, s);
}
static void ToDevice(DEVICE, SP_Stream stream, Memory* to, const void* from,
                     uint64_t size, TF_Status* s) {
  ToDeviceNow(device, to, from, size, s);
}
static void Between(DEVICE, SP_Stream stream, Memory* to, const Memory* from,
                    uint64_t size, TF_Status* s) {
  BetweenNow(device, to, from, size, s);
}
static void Zero(DEVICE, SP_Stream stream, Memory* to, uint64_t size,
                 TF_Status* s) {
  memset(to->opaque, 0, size);
  Ok(s);
}
static void Fill(DEVICE, SP_Stream stream, Memory* to, uint8_t pattern,
                 uint64_t size, TF_Status* s) {
  memset(to->opaque, pattern, size);
  Ok(s);
}
static void Fill32(DEVICE, SP_Stream stream, Memory* to, uint32_t pattern,
                   uint64_t size, TF_Status* s) {
  for (uint64_t i = 0; i + 4 <= size; i += 4) {
    memcpy((char*)to->opaque + i, &pattern, 4);
  }
  Ok(s);
}
static TF_Bool Callback(DEVICE, SP_Stream stream,
                        void (*task)(void*, TF_Status*), void* argument) {
  TF_Status* status = TF_NewStatus();
  task(argument, status);
  TF_DeleteStatus(status);
  return 1;
}

/* ---- Registration ---------------------------------------------------------------- */

static const SP_StreamExecutor kExecutor = {sizeof(SP_StreamExecutor),
                                            NULL,
                                            AllocateDevice,
                                            FreeDevice,
                                            Allocate,
                                            Free,
                                            NULL,
                                            NULL,
                                            HasNoStatistics,
                                            Usage,
                                            CreateStream,
                                            DestroyStream,
                                            Depend,
                                            OnStream,
                                            CreateEvent,
                                            DestroyEvent,
                                            EventStatus,
                                            OnBoth,
                                            OnBoth,
                                            CreateTimer,
                                            DestroyTimer,
                                            Start,
                                            Stop,
                                            ToHost,
                                            ToDevice,
                                            Between,
                                            ToHostNow,
                                            ToDeviceNow,
                                            BetweenNow,
                                            OnEvent,
                                            OnStream,
                                            OnDevice,
                                            Zero,
                                            Fill,
                                            Fill32,
                                            Callback};

static void Count(const SP_Platform* p, int* count, TF_Status* s) {
  *count = 1;
  Ok(s);
}
static void CreateDevice(const SP_Platform* p, DeviceParams* params,
                         TF_Status* s) {
  params->device->struct_size = sizeof(SP_Device);
  params->device->ordinal = params->ordinal;
  params->device->hardware_name = "plain C";
  Ok(s);
}
static void DestroyDevice(const SP_Platform* p, SP_Device* device) {}
static void CreateDeviceFns(const SP_Platform* p, DeviceFnsParams* params,
                            TF_Status* s) {
  params->device_fns->struct_size = sizeof(SP_DeviceFns);
  Ok(s);
}
static void DestroyDeviceFns(const SP_Platform* p, SP_DeviceFns* fns) {}
static void CreateExecutor(const SP_Platform* p, ExecutorParams* params,
                           TF_Status* s) {
  if (params->stream_executor->struct_size < sizeof(kExecutor)) {
    TF_SetStatus(s, 9, "TensorFlow 2.7 or newer is needed");
    return;
  }
  memcpy(params->stream_executor, &kExecutor, sizeof(kExecutor));
  Ok(s);
}
static void DestroyExecutor(const SP_Platform* p, SP_StreamExecutor* e) {}
static void CreateTimerFns(const SP_Platform* p, SP_TimerFns* fns,
                           TF_Status* s) {
  fns->struct_size = sizeof(*fns);
  fns->nanoseconds = Nanoseconds;
  Ok(s);
}
static void DestroyTimerFns(const SP_Platform* p, SP_TimerFns* fns) {}
static void DestroyPlatform(SP_Platform* platform) {}
static void DestroyPlatformFns(SP_PlatformFns* fns) {}

void SE_InitPlugin(RegistrationParams* params, TF_Status* status) {
  const SP_PlatformFns fns = {sizeof(fns),      NULL,           Count,
                              CreateDevice,     DestroyDevice,  CreateDeviceFns,
                              DestroyDeviceFns, CreateExecutor, DestroyExecutor,
                              CreateTimerFns,   DestroyTimerFns};
  params->struct_size = sizeof(*params);
  /* Up to the end of the last field: 2.8 has one less. */
  params->platform->struct_size =
      offsetof(SP_Platform, use_bfc_allocator) + sizeof(TF_Bool);
  params->platform->name = params->platform->type = "PLAIN_C";
  params->platform->use_bfc_allocator = 1;
  memcpy(params->platform_fns, &fns, sizeof(fns));
  params->destroy_platform = DestroyPlatform;
  params->destroy_platform_fns = DestroyPlatformFns;
  Ok(status);
}

/* ---- A kernel and a pass --------------------------------------------------------- */

static void* CreateRelu(void* construction) { return NULL; }
static void DeleteRelu(void* kernel) {}
static void ComputeRelu(void* kernel, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor *input = NULL, *output = NULL;
  TF_GetInput(context, 0, &input, status);
  if (TF_GetCode(status) == TF_OK) {
    int64_t dims[32];
    const int rank = TF_NumDims(input);
    const size_t size = TF_TensorByteSize(input);
    for (int i = 0; i < rank && i < 32; ++i) dims[i] = TF_Dim(input, i);
    output = TF_AllocateOutput(context, 0, TF_FLOAT, dims, rank, size, status);
    for (size_t i = 0; TF_GetCode(status) == TF_OK && i < size / 4; ++i) {
      const float x = ((const float*)TF_TensorData(input))[i];
      ((float*)TF_TensorData(output))[i] = x < 0 ? 0 : x; /* NaN stays. */
    }
  }
  if (TF_GetCode(status) != TF_OK) TF_OpKernelContext_Failure(context, status);
  if (output != NULL) TF_DeleteTensor(output);
  if (input != NULL) TF_DeleteTensor(input);
  TF_DeleteStatus(status);
}

void TF_InitKernel(void) {
  TF_Status* status = TF_NewStatus();
  TF_KernelBuilder* builder = TF_NewKernelBuilder("Relu", "PLAIN_C", CreateRelu,
                                                  ComputeRelu, DeleteRelu);
  TF_KernelBuilder_TypeConstraint(builder, "T", TF_FLOAT, status);
  TF_RegisterKernelBuilder("Relu", builder, status);
  TF_DeleteStatus(status);
}

static void Optimize(void* optimizer, const TF_Buffer* graph, const void* item,
                     TF_Buffer* result, TF_Status* status) {
  TF_SetStatus(status, TF_ABORTED, "nothing to do");
}

void TF_InitGraph(OptimizerParams* params, TF_Status* status) {
  params->struct_size = sizeof(*params);
  params->device_type = "PLAIN_C";
  params->optimizer->struct_size = sizeof(*params->optimizer);
  params->optimizer->optimize_func = Optimize;
  Ok(status);
}
