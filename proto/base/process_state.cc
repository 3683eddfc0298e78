#include "proto/base/process_state.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace troupe {
namespace {

// The fields of /proc/PID/stat from the third on ("S", ...); empty where there
// is no such process. The second, "(name)", may hold anything, blanks and
// parentheses too, so what follows begins after the last parenthesis.
std::vector<std::string> StatFields(int64_t pid) {
  if (pid <= 0) return {};
  std::ifstream in(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  if (!std::getline(in, line)) return {};
  const size_t close = line.rfind(')');
  if (close == std::string::npos) return {};
  return absl::StrSplit(line.substr(close + 1), ' ', absl::SkipEmpty());
}

}  // namespace

ProcessId Identify(int64_t pid) {
  constexpr size_t kStartField = 22 - 3;
  ProcessId process{.pid = pid, .start_ticks = 0};
  const std::vector<std::string> fields = StatFields(pid);
  if (fields.size() > kStartField &&
      !absl::SimpleAtoi(fields[kStartField], &process.start_ticks)) {
    process.start_ticks = 0;
  }
  return process;
}

bool IsRunning(int64_t pid) {
  constexpr size_t kThreadsField = 20 - 3;
  const std::vector<std::string> fields = StatFields(pid);
  if (fields.size() <= kThreadsField || fields[0] == "X") return false;
  if (fields[0] != "Z") return true;
  // The first thread is often the first to go; what the process holds, locks
  // on files among it, it holds until the last one has.
  int threads = 0;
  return absl::SimpleAtoi(fields[kThreadsField], &threads) && threads > 1;
}

bool IsRunning(const ProcessId& process) {
  return process.start_ticks != 0 && IsRunning(process.pid) &&
         Identify(process.pid) == process;
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name[0] == '\0' ? "localhost" : name;
}

ProcessSpace ThisProcessSpace() {
  ProcessSpace space = {.host = HostName()};
  std::ifstream("/proc/sys/kernel/random/boot_id") >> space.boot;
  struct stat pids;
  if (stat("/proc/self/ns/pid", &pids) == 0) {
    space.pids = pids.st_ino;
  } else {
    space.boot = "";
  }
  return space;
}

bool EndWithParent(int64_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  // It may have gone before the kernel was asked.
  return getppid() == parent;
}

}  // namespace troupe
