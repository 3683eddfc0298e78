#include "storage/disk/file_lock.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/base/process_state.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/path_calls.h"

namespace troupe {
namespace {

constexpr size_t kHolderBytesMax = 512;
// Who only asks lets go at once, unless it was stopped meanwhile.
constexpr absl::Duration kAskersMax = absl::Seconds(10);

std::string HolderOf(int fd) {
  char text[kHolderBytesMax];
  const ssize_t count = pread(fd, text, sizeof(text), 0);
  if (count <= 0) return "another process";
  const absl::string_view all(text, count);
  return std::string(absl::StripAsciiWhitespace(all.substr(0, all.find('\n'))));
}

// Why flock said no.
absl::Status Refusal(int error, int fd, const std::string& path) {
  if (error == EWOULDBLOCK) return absl::FailedPreconditionError(HolderOf(fd));
  if (error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP) {
    return absl::UnimplementedError(
        absl::StrCat(path, ": the file system has no locks"));
  }
  return ErrnoStatus(error, absl::StrCat(path, ": flock"));
}

// Whether the open file is still the one of this name.
bool IsAt(int fd, const std::string& path) {
  struct stat open_file;
  struct stat named;
  return fstat(fd, &open_file) == 0 && StatPath(path, &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

absl::Status WriteHolder(int fd, const std::string& path,
                         absl::string_view holder) {
  errno = 0;
  const std::string line =
      absl::StrCat(holder.substr(0, kHolderBytesMax - 1), "\n");
  if (ftruncate(fd, 0) == 0 && pwrite(fd, line.data(), line.size(), 0) ==
                                   static_cast<ssize_t>(line.size())) {
    return absl::OkStatus();
  }
  return ErrnoStatus(errno == 0 ? ENOSPC : errno,
                     absl::StrCat(path, ": write"));
}

int Flock(int fd, int operation) {
  int result;
  do {
    result = flock(fd, operation);
  } while (result < 0 && errno == EINTR);
  return result;
}

// Whether whoever has it shares it; a holder does not. Then we do too, until
// the file is closed.
bool OnlyAsked(int fd) { return Flock(fd, LOCK_SH | LOCK_NB) == 0; }

}  // namespace

absl::StatusOr<FileLock> FileLock::Lock(const std::string& path,
                                        absl::string_view holder,
                                        int operation) {
  const absl::Time deadline = SteadyNow() + kAskersMax;
  while (true) {
    int fd = OpenPath(path, O_RDWR | O_CREAT);
    // Another user's: it says who holds it, and can be locked nevertheless.
    const bool foreign = fd < 0 && errno == EACCES;
    if (foreign) fd = OpenPath(path, O_RDONLY);
    if (foreign && fd < 0 && errno == ENOENT) errno = EACCES;
    if (fd < 0) return ErrnoStatus(errno, absl::StrCat(path, ": open"));
    if (Flock(fd, operation) < 0) {
      // Some file systems lock only what may be written.
      const int error = foreign && errno == EBADF ? EACCES : errno;
      if (error == EWOULDBLOCK && SteadyNow() < deadline && OnlyAsked(fd)) {
        close(fd);
        absl::SleepFor(absl::Milliseconds(1));
        continue;
      }
      const absl::Status why = Refusal(error, fd, path);
      close(fd);
      return why;
    }
    if (!IsAt(fd, path)) {  // whoever held it has removed it since
      close(fd);
      continue;
    }
    // One that a crash left gives way to our own. Where it may not be removed,
    // what is locked is locked, though it names another.
    if (foreign && UnlinkPath(path) == 0) {
      close(fd);
      continue;
    }
    FileLock lock(path, fd);
    if (foreign) return lock;
    RETURN_IF_ERROR(WriteHolder(fd, path, holder));
    return lock;
  }
}

absl::StatusOr<FileLock> FileLock::Take(const std::string& path,
                                        absl::string_view holder) {
  return Lock(path, holder, LOCK_EX | LOCK_NB);
}

absl::Status FileLock::Supersede(const std::string& path,
                                 absl::string_view whose) {
  const int fd = OpenPath(path, O_RDONLY);
  if (fd < 0) return absl::OkStatus();  // it has let go
  absl::Status status;
  const std::string holder = HolderOf(fd);
  // The holder may end at any time, and another one may take the name: what is
  // taken away is looked at again, and given back where it is not the same.
  const std::string aside = absl::StrCat(path, ".superseded-", getpid());
  if (!absl::StrContains(holder, whose)) {
    status = absl::FailedPreconditionError(holder);
  } else if (RenamePath(path, aside) != 0) {
    if (errno != ENOENT) {
      status = ErrnoStatus(errno, absl::StrCat(path, ": rename to ", aside));
    }
  } else if (IsAt(fd, aside)) {
    UnlinkPath(aside);
  } else {
    RenamePath(aside, path, RENAME_NOREPLACE);
    status = absl::FailedPreconditionError("another process");
  }
  close(fd);
  return status;
}

absl::StatusOr<FileLock> FileLock::Await(const std::string& path,
                                         absl::string_view holder) {
  return Lock(path, holder, LOCK_EX);
}

bool FileLock::IsHeld(const std::string& path) {
  const int fd = OpenPath(path, O_RDONLY);
  if (fd < 0) return false;
  // Shared, so that nobody takes one who asks for a holder.
  const bool held = !OnlyAsked(fd) && errno == EWOULDBLOCK;
  close(fd);
  return held;
}

bool FileLock::superseded() const {
  struct stat named;
  return StatPath(path_, &named) == 0 && !IsAt(fd_, path_);
}

FileLock::~FileLock() {
  if (fd_ < 0) return;
  // While nobody else can have it; unless somebody has taken its name away.
  if (IsAt(fd_, path_)) UnlinkPath(path_);
  close(fd_);
}

std::string ThisProcessName() {
  return absl::StrCat("pid ", getpid(), " on ", HostName());
}

}  // namespace troupe
