// Whether a thread waits for a lock, as the kernel knows: so that a test goes
// on once another thread has come to it.
#ifndef TROUPE_TESTS_STORAGE_DISK_IS_AWAITED_H_
#define TROUPE_TESTS_STORAGE_DISK_IS_AWAITED_H_

#include <sys/stat.h>

#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

namespace troupe {

// Whether anybody waits for a lock on the file.
inline bool IsAwaited(const std::string& path) {
  struct stat info;
  CHECK_EQ(stat(path.c_str(), &info), 0);
  const std::string inode = absl::StrCat(":", info.st_ino, " ");
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    if (absl::StrContains(line, "-> FLOCK") && absl::StrContains(line, inode)) {
      return true;
    }
  }
  return false;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_DISK_IS_AWAITED_H_
