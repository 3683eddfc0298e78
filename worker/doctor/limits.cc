#include "worker/doctor/limits.h"

#include <sys/resource.h>
#include <sys/utsname.h>

#include <limits>
#include <tuple>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace troupe {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
static_assert(RLIM_INFINITY == kNoLimit);

// A rank holds a socket to each of its 63 peers for each group and lane that it
// communicates in; files, logs and gRPC are few beside them. Up to 64 such.
constexpr uint64_t kFilesWanted = 4096;
// Below this a handful of ranks fails.
constexpr uint64_t kFilesNeeded = 128;

// Two rings of a hundred KiB each are many times what an engine has.
constexpr uint64_t kLockWanted = 256 << 10;

}  // namespace

Finding JudgeFileLimit(const ResourceLimit& limit) {
  if (limit.soft == kNoLimit) return {.text = "no limit"};
  const std::string text = absl::StrCat(limit.soft, " open files");
  if (limit.soft >= kFilesWanted) return {.text = text};
  Finding finding = {
      .state =
          limit.soft < kFilesNeeded ? FindingState::kFail : FindingState::kWarn,
      .text = absl::StrCat(text, "; a job of 64 ranks wants ", kFilesWanted),
      .advice = absl::StrCat("ulimit -n ", kFilesWanted)};
  if (limit.hard < kFilesWanted) {
    finding.advice = absl::StrCat(
        "raise the hard limit of ", limit.hard,
        " (nofile in /etc/security/limits.conf, docker: --ulimit nofile=",
        kFilesWanted, ")");
  }
  return finding;
}

Finding JudgeLockLimit(const LockLimit& limit) {
  if (limit.bytes == kNoLimit) return {.text = "no limit"};
  const std::string text =
      absl::StrCat(MemoryText(static_cast<int64_t>(limit.bytes)),
                   " of memory may be locked");
  if (IsAtLeast(limit.kernel, {.major = 5, .minor = 12})) {
    return {.text = absl::StrCat(text,
                                 "; io_uring of this kernel needs none, but an "
                                 "nvme tier is faster where all memory that it "
                                 "moves may be")};
  }
  if (limit.bytes >= kLockWanted) return {.text = text};
  return {.state = FindingState::kWarn,
          .text = absl::StrCat(text, "; io_uring before Linux 5.12 wants ",
                               MemoryText(kLockWanted)),
          .advice =
              "ulimit -l unlimited (memlock in "
              "/etc/security/limits.conf)"};
}

bool IsAtLeast(absl::string_view release, const KernelVersion& version) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(release, absl::ByAnyChar(".-"));
  int major = 0, minor = 0;
  return words.size() >= 2 && absl::SimpleAtoi(words[0], &major) &&
         absl::SimpleAtoi(words[1], &minor) &&
         std::tie(major, minor) >= std::tie(version.major, version.minor);
}

Finding CheckFileLimit() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  return JudgeFileLimit({.soft = limit.rlim_cur, .hard = limit.rlim_max});
}

Finding CheckLockLimit() {
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  utsname system = {};
  uname(&system);
  return JudgeLockLimit({.bytes = limit.rlim_cur, .kernel = system.release});
}

}  // namespace troupe
