#include "worker/doctor/memory.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/file_text.h"
#include "worker/collective/shared_memory/memory_domain.h"
#include "worker/doctor/cgroup.h"

namespace troupe {
namespace {

// Parameters, gradients and AdamW's two moments of GPT-2 124M, in f32.
constexpr int64_t kMemoryWanted = int64_t{2} << 30;

}  // namespace

Finding JudgeMemory(const MemoryAmounts& memory) {
  Finding finding = {.text = absl::StrCat(MemoryText(memory.available_bytes),
                                          " available of ",
                                          MemoryText(memory.total_bytes))};
  if (memory.cgroup_bytes.has_value() &&
      *memory.cgroup_bytes < memory.total_bytes) {
    absl::StrAppend(&finding.text, "; the control group allows ",
                    MemoryText(*memory.cgroup_bytes));
    if (*memory.cgroup_bytes < memory.available_bytes) {
      finding.state = FindingState::kWarn;
      absl::StrAppend(&finding.text,
                      ", but workers take 80 % of what is available");
      finding.advice = absl::StrCat(
          "troupe up --device-memory, with all workers' together under ",
          MemoryText(*memory.cgroup_bytes / 10 * 8));
      return finding;
    }
  }
  if (memory.available_bytes < kMemoryWanted) {
    finding.state = FindingState::kWarn;
    absl::StrAppend(&finding.text,
                    "; training GPT-2 124M takes 2.0 GiB before activations");
    finding.advice = "end other programs, or train smaller models";
  }
  return finding;
}

int64_t MeminfoBytes(absl::string_view meminfo, absl::string_view key) {
  for (const absl::string_view line : absl::StrSplit(meminfo, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(": "), absl::SkipEmpty());
    int64_t kilobytes = 0;
    if (words.size() >= 2 && words[0] == key &&
        absl::SimpleAtoi(words[1], &kilobytes)) {
      return kilobytes * 1024;
    }
  }
  return 0;
}

Finding JudgeSharedMemory(const std::string& domain) {
  if (!domain.empty()) {
    return {.text = "ranks of this machine and user talk through it"};
  }
  return {.state = FindingState::kFail,
          .text =
              "memfd_create, /proc/PID/fd or pidfd_open is refused; ranks "
              "of this machine talk through sockets instead, slower",
          .advice =
              "use Linux 5.3 or later, with /proc mounted; in a "
              "container, let its seccomp filter pass these calls"};
}

Finding CheckMemory() {
  const std::string meminfo = FileText("/proc/meminfo").value_or("");
  return JudgeMemory({.total_bytes = MeminfoBytes(meminfo, "MemTotal"),
                      .available_bytes = MeminfoBytes(meminfo, "MemAvailable"),
                      .cgroup_bytes = ReadCgroupLimits("").memory_bytes});
}

Finding CheckSharedMemoryStays() {
  if (!MemoryDomain().empty()) return {};
  return {.state = FindingState::kFail,
          .text =
              "no memory can be shared with the ranks of this machine any more "
              "(memfd_create, /proc/PID/fd or pidfd_open fails, and did not "
              "when the worker started)"};
}

Finding CheckSharedMemory() { return JudgeSharedMemory(MemoryDomain()); }

}  // namespace troupe
