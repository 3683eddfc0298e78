// Checks of what computes: the kernels and the bf16 products that this
// processor allows, and how many cores workers may really use.
#ifndef TROUPE_WORKER_DOCTOR_PROCESSOR_H_
#define TROUPE_WORKER_DOCTOR_PROCESSOR_H_

#include <optional>
#include <string>

#include "worker/doctor/finding.h"

namespace troupe {

Finding CheckInstructionSet();
Finding CheckCores();

// `kernels` is what the CPU device chooses (ops/cpu/device.h): "baseline",
// "avx2", "avx512", "avx512_bf16" or "amx".
struct UsedInstructions {
  std::string kernels;
  std::string limit;  // what the environment holds it to; empty: nothing
};
Finding JudgeInstructionSet(const UsedInstructions& used);

// `quota`: cores that the control group allows; empty: all.
Finding JudgeCores(int cores, std::optional<double> quota);

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_PROCESSOR_H_
