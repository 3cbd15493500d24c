// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_LIKE_DRIVER_FUNCTIONS_H_
#define CUDA_LIKE_DRIVER_FUNCTIONS_H_

// The functions of CUDA's driver API that the plug-in calls, as of CUDA 12.0:
// X(name, suffix, parameters). libcuda.so.1 exports name##suffix;
// cuGetProcAddress takes the name and a version of CUDA. The plug-in's table,
// the emulated driver's exports and the comparison with cuda.h are made from
// this list. It uses no types itself.
#define CUDA_LIKE_DRIVER_FUNCTIONS(X)                                        \
  X(cuInit, , (unsigned flags))                                              \
  X(cuDriverGetVersion, , (int* version))                                    \
  X(cuGetErrorName, , (CUresult error, const char** name))                   \
  X(cuGetErrorString, , (CUresult error, const char** text))                 \
  X(cuDeviceGetCount, , (int* count))                                        \
  X(cuDeviceGet, , (CUdevice * device, int ordinal))                         \
  X(cuDeviceGetName, , (char* name, int size, CUdevice device))              \
  X(cuDeviceGetAttribute, ,                                                  \
    (int* value, CUdevice_attribute attribute, CUdevice device))             \
  X(cuDeviceTotalMem, _v2, (size_t * bytes, CUdevice device))                \
  X(cuDeviceGetPCIBusId, , (char* id, int size, CUdevice device))            \
  X(cuDeviceCanAccessPeer, , (int* can, CUdevice device, CUdevice peer))     \
  X(cuDevicePrimaryCtxRetain, , (CUcontext * context, CUdevice device))      \
  X(cuDevicePrimaryCtxRelease, _v2, (CUdevice device))                       \
  X(cuCtxSetCurrent, , (CUcontext context))                                  \
  X(cuCtxSynchronize, , ())                                                  \
  X(cuCtxGetStreamPriorityRange, , (int* least, int* greatest))              \
  X(cuCtxEnablePeerAccess, , (CUcontext peer, unsigned flags))               \
  X(cuMemGetInfo, _v2, (size_t * free, size_t * total))                      \
  X(cuMemAlloc, _v2, (CUdeviceptr * address, size_t bytes))                  \
  X(cuMemFree, _v2, (CUdeviceptr address))                                   \
  X(cuMemAllocManaged, ,                                                     \
    (CUdeviceptr * address, size_t bytes, unsigned flags))                   \
  X(cuMemHostAlloc, , (void** memory, size_t bytes, unsigned flags))         \
  X(cuMemFreeHost, , (void* memory))                                         \
  X(cuMemcpyHtoDAsync, _v2,                                                  \
    (CUdeviceptr dst, const void* src, size_t bytes, CUstream stream))       \
  X(cuMemcpyDtoHAsync, _v2,                                                  \
    (void* dst, CUdeviceptr src, size_t bytes, CUstream stream))             \
  X(cuMemcpyAsync, ,                                                         \
    (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream))       \
  X(cuMemsetD8Async, ,                                                       \
    (CUdeviceptr dst, unsigned char value, size_t count, CUstream stream))   \
  X(cuMemsetD32Async, ,                                                      \
    (CUdeviceptr dst, unsigned value, size_t count, CUstream stream))        \
  X(cuStreamCreateWithPriority, ,                                            \
    (CUstream * stream, unsigned flags, int priority))                       \
  X(cuStreamDestroy, _v2, (CUstream stream))                                 \
  X(cuStreamQuery, , (CUstream stream))                                      \
  X(cuStreamSynchronize, , (CUstream stream))                                \
  X(cuStreamWaitEvent, , (CUstream stream, CUevent event, unsigned flags))   \
  X(cuStreamAddCallback, ,                                                   \
    (CUstream stream, CUstreamCallback callback, void* argument,             \
     unsigned flags))                                                        \
  X(cuStreamBeginCapture, _v2, (CUstream stream, CUstreamCaptureMode mode))  \
  X(cuStreamEndCapture, , (CUstream stream, CUgraph * graph))                \
  X(cuGraphInstantiateWithFlags, ,                                           \
    (CUgraphExec * executable, CUgraph graph, unsigned long long flags))     \
  X(cuGraphDestroy, , (CUgraph graph))                                       \
  X(cuGraphExecDestroy, , (CUgraphExec executable))                          \
  X(cuGraphLaunch, , (CUgraphExec executable, CUstream stream))              \
  X(cuEventCreate, , (CUevent * event, unsigned flags))                      \
  X(cuEventDestroy, _v2, (CUevent event))                                    \
  X(cuEventRecord, , (CUevent event, CUstream stream))                       \
  X(cuEventQuery, , (CUevent event))                                         \
  X(cuEventSynchronize, , (CUevent event))                                   \
  X(cuEventElapsedTime, , (float* milliseconds, CUevent begin, CUevent end)) \
  X(cuModuleLoadData, , (CUmodule * module, const void* image))              \
  X(cuModuleUnload, , (CUmodule module))                                     \
  X(cuModuleGetFunction, ,                                                   \
    (CUfunction * function, CUmodule module, const char* name))              \
  X(cuLaunchKernel, ,                                                        \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, \
     unsigned block_x, unsigned block_y, unsigned block_z,                   \
     unsigned shared_bytes, CUstream stream, void** arguments, void** extra))

// The functions of NVRTC, CUDA's compiler, in the same form.
#define CUDA_LIKE_COMPILER_FUNCTIONS(X)                                   \
  X(nvrtcVersion, , (int* major, int* minor))                             \
  X(nvrtcCreateProgram, ,                                                 \
    (nvrtcProgram * program, const char* source, const char* name,        \
     int headers, const char* const* contents, const char* const* names)) \
  X(nvrtcDestroyProgram, , (nvrtcProgram * program))                      \
  X(nvrtcCompileProgram, ,                                                \
    (nvrtcProgram program, int count, const char* const* options))        \
  X(nvrtcGetCUBINSize, , (nvrtcProgram program, size_t * bytes))          \
  X(nvrtcGetCUBIN, , (nvrtcProgram program, char* cubin))                 \
  X(nvrtcGetProgramLogSize, , (nvrtcProgram program, size_t * bytes))     \
  X(nvrtcGetProgramLog, , (nvrtcProgram program, char* log))

// The functions of cuBLAS, as of CUDA 12.0: X(name, parameters). The product is
// that of columns: a matrix of m rows has element (i, j) at i + j * lda.
#define CUDA_LIKE_BLAS_FUNCTIONS(X)                                       \
  X(cublasCreate_v2, (cublasHandle_t * handle))                           \
  X(cublasDestroy_v2, (cublasHandle_t handle))                            \
  X(cublasSetStream_v2, (cublasHandle_t handle, CUstream stream))         \
  X(cublasSetWorkspace_v2,                                                \
    (cublasHandle_t handle, void* memory, size_t bytes))                  \
  X(cublasSetMathMode, (cublasHandle_t handle, cublasMath_t mode))        \
  X(cublasGemmStridedBatchedEx_64,                                        \
    (cublasHandle_t handle, cublasOperation_t transa,                     \
     cublasOperation_t transb, int64_t m, int64_t n, int64_t k,           \
     const void* alpha, const void* a, cudaDataType a_type, int64_t lda,  \
     long long stride_a, const void* b, cudaDataType b_type, int64_t ldb, \
     long long stride_b, const void* beta, void* c, cudaDataType c_type,  \
     int64_t ldc, long long stride_c, int64_t count,                      \
     cublasComputeType_t compute, cublasGemmAlgo_t algorithm))

// The functions with another result: X(name, result, parameters).
#define CUDA_LIKE_BLAS_TEXTS(X)                                \
  X(cublasGetStatusName, const char*, (cublasStatus_t status)) \
  X(cublasGetStatusString, const char*, (cublasStatus_t status))

#endif  // CUDA_LIKE_DRIVER_FUNCTIONS_H_
