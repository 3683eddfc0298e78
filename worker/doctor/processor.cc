#include "worker/doctor/processor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ops/cpu/device.h"
#include "proto/base/cores.h"
#include "worker/doctor/cgroup.h"

namespace troupe {
namespace {

std::string Bf16Text(const std::string& kernels) {
  if (kernels == "amx") return "bf16 products by AMX";
  if (kernels == "avx512_bf16") return "bf16 products by avx512_bf16, no AMX";
  return "bf16 products are computed in f32: bf16 saves memory, not time";
}

}  // namespace

Finding JudgeInstructionSet(const UsedInstructions& used) {
  Finding finding = {
      .text = absl::StrCat(used.kernels, " kernels; ", Bf16Text(used.kernels),
                           "; fp16 products are computed in f32")};
  if (!used.limit.empty()) {
    finding.state = FindingState::kWarn;
    absl::StrAppend(&finding.text, "; held by TROUPE_MAX_ISA=", used.limit);
    finding.advice = "unset TROUPE_MAX_ISA";
  } else if (used.kernels == "baseline") {
    finding.state = FindingState::kWarn;
    finding.advice =
        "without AVX2 all is slower; in a virtual machine, let it see the "
        "host's processor";
  }
  return finding;
}

Finding JudgeCores(int cores, std::optional<double> quota) {
  const std::string count =
      absl::StrCat(cores, cores == 1 ? " core" : " cores");
  if (!quota.has_value() || *quota >= cores) return {.text = count};
  return {.state = FindingState::kWarn,
          .text = absl::StrFormat(
              "%s, of which the control group allows %.1f; the default number "
              "of threads counts all, and they would wait for each other",
              count, *quota),
          .advice = absl::StrCat("troupe up --workers 1 --threads ",
                                 std::max(1, static_cast<int>(*quota)))};
}

Finding JudgeThreads(int asked, const CpuThreads& threads) {
  const auto count = [](int of) {
    return absl::StrCat(of, of == 1 ? " thread" : " threads");
  };
  if (threads.granted >= asked) return {.text = count(threads.granted)};
  const std::string held_by =
      threads.held_by.empty() ? "" : absl::StrCat("; ", threads.held_by);
  return {.state = FindingState::kWarn,
          .text = absl::StrCat("OpenMP grants ", count(threads.granted), " of ",
                               asked, held_by),
          .advice =
              "unset OMP_THREAD_LIMIT and OMP_MAX_ACTIVE_LEVELS, and say "
              "troupe up --threads N"};
}

Finding CheckInstructionSet() {
  const absl::Status limit = CheckCpuInstructionSetLimit();
  if (!limit.ok()) {
    return {.state = FindingState::kFail,
            .text = std::string(limit.message()),
            .advice = "unset TROUPE_MAX_ISA"};
  }
  return JudgeInstructionSet({.kernels = CpuInstructionSets().back(),
                              .limit = CpuInstructionSetLimit()});
}

Finding CheckCores() {
  return JudgeCores(UsableCoreCount(), ReadCgroupLimits("").cores);
}

Finding CheckThreads() {
  const int asked = UsableCoreCount();
  return JudgeThreads(asked, GrantedCpuThreads(asked));
}

}  // namespace troupe
