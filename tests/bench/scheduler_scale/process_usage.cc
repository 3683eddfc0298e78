#include "tests/bench/scheduler_scale/process_usage.h"

#include <unistd.h>

#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

namespace troupe {
namespace {

constexpr int64_t kKiB = 1024;

// Fields 14 and 15 of proc(5)'s stat, behind the name in parentheses.
double CpuSeconds(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::stringstream text;
  text << file.rdbuf();
  std::string all = text.str();
  CHECK(all.rfind(')') != std::string::npos) << "no process " << pid;
  std::istringstream fields(all.substr(all.rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  int64_t user = 0;
  int64_t system = 0;
  fields >> user >> system;
  return static_cast<double>(user + system) / sysconf(_SC_CLK_TCK);
}

}  // namespace

ProcessUsage UsageOf(pid_t pid) {
  ProcessUsage usage = {.cpu_seconds = CpuSeconds(pid)};
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  std::string name;
  int64_t value = 0;
  while (status >> name) {
    if (name == "VmRSS:" && status >> value) {
      usage.resident_bytes = value * kKiB;
    } else if (name == "VmHWM:" && status >> value) {
      usage.resident_bytes_max = value * kKiB;
    } else if (name == "Threads:" && status >> value) {
      usage.threads = static_cast<int>(value);
    }
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return usage;
}

}  // namespace troupe
