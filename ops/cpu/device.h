// The CPU as a Device. Ops divide their work over a fixed number of threads
// (OpenMP's pool of the calling thread, shared with oneDNN) and pick the widest
// instruction set of this machine when the device is made: baseline x86-64,
// AVX2 (x86-64-v3), AVX-512 (x86-64-v4), or that with products of bf16 pairs.
// Each op has finished when it returns.
#ifndef TROUPE_OPS_CPU_DEVICE_H_
#define TROUPE_OPS_CPU_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "ops/device.h"

namespace troupe {

struct CpuDeviceOptions {
  int threads = 1;
  // "baseline", "avx2", "avx512" or "avx512_bf16"; empty: the widest there is.
  // Naming one that this machine lacks fails a CHECK: the tests ask
  // CpuInstructionSets first.
  std::string instruction_set;
};

std::unique_ptr<Device> NewCpuDevice(const CpuDeviceOptions& options);

// Those that this machine can run, narrowest first.
std::vector<std::string> CpuInstructionSets();

}  // namespace troupe

#endif  // TROUPE_OPS_CPU_DEVICE_H_
