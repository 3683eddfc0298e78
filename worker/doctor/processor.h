// Checks of what computes: the kernels and the bf16 products that this
// processor allows, and how many cores workers may really use.
#ifndef TROUPE_WORKER_DOCTOR_PROCESSOR_H_
#define TROUPE_WORKER_DOCTOR_PROCESSOR_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "worker/doctor/finding.h"

namespace troupe {

Finding CheckInstructionSet();
Finding CheckCores();

// `kernels` is what the CPU device chooses: "baseline", "avx2", "avx512"
// or "avx512_bf16".
struct InstructionSet {
  std::string kernels;
  std::string cpu_flags;  // separated by blanks
};
Finding JudgeInstructionSet(const InstructionSet& set);

// The first processor's "flags" in the text of /proc/cpuinfo; empty where there
// are none.
std::string CpuFlags(absl::string_view cpuinfo);

// `quota`: cores that the control group allows; empty: all.
Finding JudgeCores(int cores, std::optional<double> quota);

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_PROCESSOR_H_
