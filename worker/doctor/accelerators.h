// Checks of GPUs: NVIDIA's driver, and the libraries NCCL and cuDNN. They are
// looked for as they are loaded at run time, without their headers, so that a
// build without CUDA tells of them too. Troupe computes on CPUs as well, so
// nothing that is missing is a fault.
#ifndef TROUPE_WORKER_DOCTOR_ACCELERATORS_H_
#define TROUPE_WORKER_DOCTOR_ACCELERATORS_H_

#include <string>
#include <vector>

#include "ops/cuda/facts.h"
#include "worker/doctor/finding.h"

namespace troupe {

Finding CheckCuda();
Finding CheckNccl();
Finding CheckCudnn();

struct CudaDriver {
  std::string missing;  // why libcuda.so.1 cannot be loaded; empty: it can
  bool has_device_file = false;   // /dev/nvidia0
  std::string error;              // of the driver's start; empty: none
  int version = 0;                // 12040 is 12.4
  std::vector<std::string> gpus;  // names, or GpuText
  bool used = false;              // this build computes on GPUs
};
Finding JudgeCuda(const CudaDriver& driver);

// "NVIDIA H200, 139.8 GiB, GPU-5ad1..., PCIe 32.0 GT/s x16".
std::string GpuText(const GpuFacts& facts);

// NCCL or cuDNN.
struct GpuLibrary {
  std::string missing;  // why it cannot be loaded; empty: it can
  int version = 0;      // as the library says it
  bool used = false;    // this build uses it
};
Finding JudgeNccl(const GpuLibrary& library);
Finding JudgeCudnn(const GpuLibrary& library);

// "2.21.5" of 22105; before 2.9 the same was written 2806 for "2.8.6".
std::string NcclVersionText(int version);

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_ACCELERATORS_H_
