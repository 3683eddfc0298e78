#include "proto/trust/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "proto/base/shell_word.h"
#include "proto/base/status.h"
#include "storage/disk/directory.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/new_file.h"

namespace troupe {
namespace {

constexpr size_t kBytesMax = 1 << 20;
constexpr mode_t kPrivateDirectory = 0700;
constexpr mode_t kPrivateFile = 0600;
constexpr mode_t kEverybody = 0007;

absl::StatusOr<std::string> ReadFile(const std::string& path, bool is_secret) {
  // Not waiting for the process that should write into a pipe.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat(path, ": open"));
  struct stat info = {};
  std::string bytes;
  absl::Status status;
  if (fstat(fd, &info) != 0) {
    status = ErrnoStatus(errno, absl::StrCat(path, ": stat"));
  } else if (!S_ISREG(info.st_mode)) {
    status = absl::InvalidArgumentError(absl::StrCat(path, " is no file"));
  } else if (is_secret && (info.st_mode & kEverybody) != 0) {
    status = absl::FailedPreconditionError(absl::StrCat(
        path, " is a secret that everybody on this machine may ",
        "use; make a new one, and keep it: chmod 600 ", ShellWord(path)));
  }
  char part[4096];
  while (status.ok()) {
    const ssize_t count = read(fd, part, sizeof(part));
    if (count == 0) break;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      status = ErrnoStatus(errno, absl::StrCat(path, ": read"));
    } else if (bytes.size() + count > kBytesMax) {
      status = absl::InvalidArgumentError(
          absl::StrCat(path, " has more than ", kBytesMax, " bytes"));
    } else {
      bytes.append(part, count);
    }
  }
  close(fd);
  if (!status.ok()) return status;
  return bytes;
}

}  // namespace

absl::Status MakePrivateDirectory(const std::string& path) {
  RETURN_IF_ERROR(MakeDirectories(ParentDirectory(path)));
  if (mkdir(path.c_str(), kPrivateDirectory) == 0) return SyncName(path);
  if (errno != EEXIST) {
    return ErrnoStatus(errno, absl::StrCat(path, ": mkdir"));
  }
  if (chmod(path.c_str(), kPrivateDirectory) != 0) {
    return ErrnoStatus(errno, absl::StrCat(path, ": chmod"));
  }
  return absl::OkStatus();
}

absl::Status WritePrivateFile(const std::string& path,
                              absl::string_view bytes) {
  return ReplaceFile(path, bytes, kPrivateFile);
}

absl::StatusOr<std::string> ReadPrivateFile(const std::string& path) {
  return ReadFile(path, /*is_secret=*/true);
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  return ReadFile(path, /*is_secret=*/false);
}

}  // namespace troupe
