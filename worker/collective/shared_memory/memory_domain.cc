#include "worker/collective/shared_memory/memory_domain.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "worker/collective/shared_memory/segment.h"

namespace troupe {
namespace {

bool CanOpenSegments() {
  const absl::StatusOr<SharedSegment> made = SharedSegment::Create(4096);
  return made.ok() && SharedSegment::Open(made->address()).ok();
}

bool CanWatchProcesses() {
  const int file = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  if (file >= 0) close(file);
  return file >= 0;
}

}  // namespace

std::string MemoryDomain() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat processes;
  if (boot.empty() || stat("/proc/self/ns/pid", &processes) != 0 ||
      !CanOpenSegments() || !CanWatchProcesses()) {
    return "";
  }
  return absl::StrCat("boot ", boot, " pids ", processes.st_ino, " user ",
                      geteuid());
}

}  // namespace troupe
