// A driver without a GPU: what cuDNN looks up while it plans, each of which
// says that it has done what it was asked to. cuInit says that there is no GPU,
// so that nobody takes it for more.
#define TROUPE_DRIVER_DOES(name) \
  extern "C" int name() { return 0; }

extern "C" int cuInit(unsigned) { return 100; }  // CUDA_ERROR_NO_DEVICE

extern "C" int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

extern "C" int cuDeviceGetCount(int* count) {
  *count = 0;
  return 0;
}

TROUPE_DRIVER_DOES(cuCtxGetCurrent)
TROUPE_DRIVER_DOES(cuCtxGetDevice)
TROUPE_DRIVER_DOES(cuCtxGetLimit)
TROUPE_DRIVER_DOES(cuCtxPopCurrent)
TROUPE_DRIVER_DOES(cuCtxPushCurrent)
TROUPE_DRIVER_DOES(cuDeviceGet)
TROUPE_DRIVER_DOES(cuDeviceGetAttribute)
TROUPE_DRIVER_DOES(cuDevicePrimaryCtxRelease)
TROUPE_DRIVER_DOES(cuDevicePrimaryCtxReset)
TROUPE_DRIVER_DOES(cuDevicePrimaryCtxRetain)
TROUPE_DRIVER_DOES(cuFuncGetAttribute)
TROUPE_DRIVER_DOES(cuFuncSetAttribute)
TROUPE_DRIVER_DOES(cuGetErrorName)
TROUPE_DRIVER_DOES(cuGetErrorString)
TROUPE_DRIVER_DOES(cuKernelGetAttribute)
TROUPE_DRIVER_DOES(cuKernelSetAttribute)
TROUPE_DRIVER_DOES(cuLaunchCooperativeKernel)
TROUPE_DRIVER_DOES(cuLaunchKernel)
TROUPE_DRIVER_DOES(cuLaunchKernelEx)
TROUPE_DRIVER_DOES(cuLibraryGetKernel)
TROUPE_DRIVER_DOES(cuLibraryLoadData)
TROUPE_DRIVER_DOES(cuLibraryLoadFromFile)
TROUPE_DRIVER_DOES(cuLibraryUnload)
TROUPE_DRIVER_DOES(cuLinkAddData)
TROUPE_DRIVER_DOES(cuLinkAddData_v2)
TROUPE_DRIVER_DOES(cuLinkAddFile_v2)
TROUPE_DRIVER_DOES(cuLinkComplete)
TROUPE_DRIVER_DOES(cuLinkCreate)
TROUPE_DRIVER_DOES(cuLinkCreate_v2)
TROUPE_DRIVER_DOES(cuLinkDestroy)
TROUPE_DRIVER_DOES(cuMemcpyDtoH_v2)
TROUPE_DRIVER_DOES(cuModuleGetFunction)
TROUPE_DRIVER_DOES(cuModuleGetGlobal_v2)
TROUPE_DRIVER_DOES(cuModuleLoadData)
TROUPE_DRIVER_DOES(cuModuleLoadDataEx)
TROUPE_DRIVER_DOES(cuModuleLoadFatBinary)
TROUPE_DRIVER_DOES(cuModuleUnload)
TROUPE_DRIVER_DOES(cuOccupancyMaxActiveBlocksPerMultiprocessor)
TROUPE_DRIVER_DOES(cuOccupancyMaxPotentialClusterSize)
TROUPE_DRIVER_DOES(cuStreamGetCtx)
TROUPE_DRIVER_DOES(cuStreamSynchronize)
TROUPE_DRIVER_DOES(cuTensorMapEncodeTiled)
