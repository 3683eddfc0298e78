#include "scheduler/store/state_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace troupe {
namespace {

absl::Status Refused(const std::string& directory, int error) {
  const std::string message =
      absl::StrCat("state directory ", directory, ": ", std::strerror(error));
  if (error == EACCES || error == EPERM || error == EROFS) {
    return absl::PermissionDeniedError(
        absl::StrCat(message, "; give one that this user may write (--state)"));
  }
  if (error == ENOSPC || error == EDQUOT) {
    return absl::ResourceExhaustedError(
        absl::StrCat(message, "; free some space"));
  }
  return absl::InternalError(message);
}

std::string ReadPid(int fd) {
  char text[32] = {};
  const ssize_t count = pread(fd, text, sizeof(text) - 1, 0);
  return count > 0 ? std::string(absl::StripAsciiWhitespace(text)) : "unknown";
}

}  // namespace

absl::StatusOr<std::unique_ptr<StateLock>> StateLock::Take(
    const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return Refused(directory, error.value());
  const std::string path = absl::StrCat(directory, "/lock");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return Refused(directory, errno);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int why = errno;
    const std::string pid = ReadPid(fd);
    close(fd);
    if (why != EWOULDBLOCK) return Refused(directory, why);
    return absl::FailedPreconditionError(absl::StrCat(
        "state directory ", directory, ": the scheduler with pid ", pid,
        " uses it; stop that one, or give this one another directory"));
  }
  auto lock = std::unique_ptr<StateLock>(new StateLock(fd));
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) !=
                                   static_cast<ssize_t>(pid.size())) {
    return Refused(directory, errno);
  }
  return lock;
}

StateLock::~StateLock() { close(fd_); }

}  // namespace troupe
