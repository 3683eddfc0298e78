// Checks of GPUs: NVIDIA's driver, and NCCL. Both are looked for as they are
// loaded at run time, without their headers. This build computes on CPUs only,
// so nothing that is missing is a fault.
#ifndef TROUPE_WORKER_DOCTOR_ACCELERATORS_H_
#define TROUPE_WORKER_DOCTOR_ACCELERATORS_H_

#include <string>
#include <vector>

#include "worker/doctor/finding.h"

namespace troupe {

Finding CheckCuda();
Finding CheckNccl();

struct CudaDriver {
  std::string missing;  // why libcuda.so.1 cannot be loaded; empty: it can
  bool has_device_file = false;   // /dev/nvidia0
  std::string error;              // of the driver's start; empty: none
  int version = 0;                // 12040 is 12.4
  std::vector<std::string> gpus;  // names
};
Finding JudgeCuda(const CudaDriver& driver);

struct NcclLibrary {
  std::string missing;  // why libnccl.so.2 cannot be loaded; empty: it can
  int version = 0;      // as ncclGetVersion says it
};
Finding JudgeNccl(const NcclLibrary& library);

// "2.21.5" of 22105; before 2.9 the same was written 2806 for "2.8.6".
std::string NcclVersionText(int version);

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_ACCELERATORS_H_
