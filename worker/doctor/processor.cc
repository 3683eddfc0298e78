#include "worker/doctor/processor.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "ops/cpu/device.h"
#include "worker/doctor/cgroup.h"

namespace troupe {
namespace {

// oneDNN's choice, which ops/cpu/bf16_product.h tells.
std::string Bf16Text(const InstructionSet& set) {
  const std::set<std::string> flags =
      absl::StrSplit(set.cpu_flags, ' ', absl::SkipEmpty());
  if (!absl::StartsWith(set.kernels, "avx512")) {
    return "bf16 products are computed in f32";
  }
  if (flags.count("amx_bf16") > 0) return "bf16 products by AMX";
  if (flags.count("avx512_bf16") > 0) {
    return "bf16 products by avx512_bf16, no AMX";
  }
  return "neither avx512_bf16 nor AMX: bf16 saves memory, not time";
}

}  // namespace

Finding JudgeInstructionSet(const InstructionSet& set) {
  Finding finding = {
      .text = absl::StrCat(set.kernels, " kernels; ", Bf16Text(set))};
  if (set.kernels == "baseline") {
    finding.state = FindingState::kWarn;
    finding.advice =
        "without AVX2 all is slower; in a virtual machine, let it see the "
        "host's processor";
  }
  return finding;
}

std::string CpuFlags(absl::string_view cpuinfo) {
  for (const absl::string_view line : absl::StrSplit(cpuinfo, '\n')) {
    const size_t colon = line.find(": ");
    if (line.substr(0, 5) == "flags" && colon != line.npos) {
      return std::string(line.substr(colon + 2));
    }
  }
  return "";
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

Finding CheckInstructionSet() {
  std::stringstream cpuinfo;
  cpuinfo << std::ifstream("/proc/cpuinfo").rdbuf();
  return JudgeInstructionSet({.kernels = CpuInstructionSets().back(),
                              .cpu_flags = CpuFlags(cpuinfo.str())});
}

Finding CheckCores() {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return JudgeCores(std::max(1, cores), ReadCgroupLimits("").cores);
}

}  // namespace troupe
