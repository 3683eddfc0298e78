#include "proto/base/file_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <system_error>

namespace troupe {
namespace {

rlimit Limit() {
  rlimit files = {.rlim_cur = 0, .rlim_max = 0};
  getrlimit(RLIMIT_NOFILE, &files);
  return files;
}

int64_t OpenFiles() {
  std::error_code error;  // none is counted where /proc is not there
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (error) return 0;
  return std::distance(begin(files), end(files)) - 1;  // one is the folder's
}

}  // namespace

FileLimit ReadFileLimit() {
  constexpr auto kMost =
      static_cast<rlim_t>(std::numeric_limits<int64_t>::max());
  return {.max = static_cast<int64_t>(std::min(Limit().rlim_cur, kMost)),
          .open = OpenFiles()};
}

FileLimit RaiseFileLimit() {
  rlimit files = Limit();
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  return ReadFileLimit();
}

}  // namespace troupe
