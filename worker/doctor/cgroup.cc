#include "worker/doctor/cgroup.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/file_text.h"

namespace troupe {
namespace {

// Empty where there is no such file.
std::string Content(const std::string& path) {
  return FileText(path).value_or("");
}

template <typename T>
void Lower(std::optional<T>& limit, const std::optional<T>& other) {
  if (!other.has_value()) return;
  limit = limit.has_value() ? std::min(*limit, *other) : *other;
}

// The files of one group; those that are of the other version are not there.
void Apply(const std::string& folder, CgroupLimits& limits) {
  Lower(limits.cores, ParseCpuMax(Content(folder + "/cpu.max")));
  Lower(limits.cores,
        ParseCpuMax(absl::StrCat(Content(folder + "/cpu.cfs_quota_us"), " ",
                                 Content(folder + "/cpu.cfs_period_us"))));
  Lower(limits.memory_bytes, ParseMemoryMax(Content(folder + "/memory.max")));
  Lower(limits.memory_bytes,
        ParseMemoryMax(Content(folder + "/memory.limit_in_bytes")));
}

}  // namespace

CgroupLimits ReadCgroupLimits(const std::string& root) {
  CgroupLimits limits;
  std::istringstream lines(Content(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    // "0::/user.slice/a", or "4:cpu,cpuacct:/docker/b" in version 1.
    const std::vector<std::string> columns =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (columns.size() != 3) continue;
    std::string mount = root + "/sys/fs/cgroup";
    if (!columns[1].empty()) absl::StrAppend(&mount, "/", columns[1]);
    // In a container the path may be the host's; its root is ours then.
    std::string group = columns[2] == "/" ? "" : columns[2];
    while (true) {
      Apply(mount + group, limits);
      if (group.empty()) break;
      group.resize(std::min(group.rfind('/'), group.size() - 1));
    }
  }
  return limits;
}

std::optional<double> ParseCpuMax(absl::string_view text) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  double quota = 0, period = 0;
  if (words.size() != 2 || !absl::SimpleAtod(words[0], &quota) ||
      !absl::SimpleAtod(words[1], &period) || quota <= 0 || period <= 0) {
    return std::nullopt;
  }
  return quota / period;
}

std::optional<int64_t> ParseMemoryMax(absl::string_view text) {
  constexpr int64_t kNoLimit = int64_t{1} << 60;
  int64_t bytes = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &bytes) ||
      bytes >= kNoLimit) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace troupe
