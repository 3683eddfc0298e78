// Checks of what computes: the kernels and the bf16 products that this
// processor allows, how many cores workers may really use, and whether OpenMP
// grants a thread for each.
#ifndef TROUPE_WORKER_DOCTOR_PROCESSOR_H_
#define TROUPE_WORKER_DOCTOR_PROCESSOR_H_

#include <optional>
#include <string>

#include "ops/cpu/device.h"
#include "worker/doctor/finding.h"

namespace troupe {

Finding CheckInstructionSet();
Finding CheckCores();
Finding CheckThreads();

// `kernels` is what the CPU device chooses (ops/cpu/device.h): "baseline",
// "avx2", "avx512", "avx512_bf16" or "amx".
struct UsedInstructions {
  std::string kernels;
  std::string limit;  // what the environment holds it to; empty: nothing
};
Finding JudgeInstructionSet(const UsedInstructions& used);

// `quota`: cores that the control group allows; empty: all.
Finding JudgeCores(int cores, std::optional<double> quota);

// `asked`: the threads that a worker takes where nobody says how many.
Finding JudgeThreads(int asked, const CpuThreads& threads);

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_PROCESSOR_H_
