// The CPU as a Device. Ops divide their work over a fixed number of threads
// (OpenMP's pool of the calling thread, shared with oneDNN) and pick the widest
// instruction set of this machine when the device is made: baseline x86-64,
// AVX2 (x86-64-v3), AVX-512 (x86-64-v4), that with products of bf16 pairs, or
// that with AMX. Each op has finished when it returns.
//
// TROUPE_MAX_ISA=avx2 in the environment, or another of the names below, holds
// the process to a narrower one, oneDNN included.
//
// A device has fewer threads than asked for where OpenMP grants fewer.
#ifndef TROUPE_OPS_CPU_DEVICE_H_
#define TROUPE_OPS_CPU_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ops/device.h"

namespace troupe {

struct CpuDeviceOptions {
  int threads = 1;
  // "baseline", "avx2", "avx512", "avx512_bf16" or "amx"; empty: the widest
  // there is. oneDNN, which makes products, always uses the widest.
  // Naming one that this machine lacks fails a CHECK: the tests ask
  // CpuInstructionSets first.
  std::string instruction_set;
};

// What OpenMP makes of a wish for threads.
struct CpuThreads {
  int granted = 1;
  // The variables of the environment that may be why they are fewer:
  // "OMP_THREAD_LIMIT=1", several with ", " between; empty: none is known.
  std::string held_by;
};
CpuThreads GrantedCpuThreads(int asked);

std::unique_ptr<Device> NewCpuDevice(const CpuDeviceOptions& options);

// Those that this process may use, narrowest first.
std::vector<std::string> CpuInstructionSets();

// What TROUPE_MAX_ISA says, empty where it says nothing, and whether it may. A
// CHECK fails where a device is made under a limit that it may not say.
std::string CpuInstructionSetLimit();
absl::Status CheckCpuInstructionSetLimit();

}  // namespace troupe

#endif  // TROUPE_OPS_CPU_DEVICE_H_
