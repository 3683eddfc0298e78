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
// A holder whose line is not known.
constexpr char kSomebody[] = "another process";
// A process that only asks lets go at once, unless it was stopped meanwhile.
constexpr absl::Duration kAskersMax = absl::Seconds(10);

std::string HolderOf(int fd) {
  char text[kHolderBytesMax];
  const ssize_t count = pread(fd, text, sizeof(text), 0);
  if (count <= 0) return kSomebody;
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

bool IsSameFile(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

// Whether the open file is still the one of this name.
bool IsAt(int fd, const std::string& path) {
  struct stat open_file;
  struct stat named;
  return fstat(fd, &open_file) == 0 && StatPath(path, &named) == 0 &&
         IsSameFile(open_file, named);
}

bool AreOneFile(const std::string& a, const std::string& b) {
  struct stat of_a;
  struct stat of_b;
  return LstatPath(a, &of_a) == 0 && LstatPath(b, &of_b) == 0 &&
         IsSameFile(of_a, of_b);
}

// A name beside the path that no other process takes: processes of several
// hosts may have the same number.
std::string OwnNameBeside(const std::string& path, absl::string_view what) {
  return absl::StrCat(path, ".", what, "-", HostName(), "-", getpid());
}

// Over what a crash left there: that needs no room on a full disk, and a
// process that reads meanwhile reads a whole line.
absl::Status WriteHolder(int fd, const std::string& path,
                         absl::string_view holder) {
  errno = 0;
  const std::string line =
      absl::StrCat(holder.substr(0, kHolderBytesMax - 1), "\n");
  const auto bytes = static_cast<ssize_t>(line.size());
  if (pwrite(fd, line.data(), line.size(), 0) == bytes &&
      ftruncate(fd, bytes) == 0) {
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

// Whether the file system does not do what rename or link was asked for.
bool IsNotDone(int error) {
  return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP ||
         error == EPERM;
}

// Renames where `to` is free: EEXIST where it is not. A file system that has no
// such rename (NFS) gives the file a second name, which is refused just so. One
// that has no second names either (FAT) is looked at first: a process that
// takes the name between the look and the rename loses it, and is superseded.
int RenameToFreeName(const std::string& from, const std::string& to) {
  if (RenamePath(from, to, RENAME_NOREPLACE) == 0) return 0;
  if (!IsNotDone(errno)) return -1;
  if (LinkPath(from, to) == 0) return UnlinkPath(from);
  // NFS may have done it, and lost the answer to its first request.
  const int error = errno;
  if (error == EEXIST && AreOneFile(from, to)) return UnlinkPath(from);
  errno = error;
  if (!IsNotDone(error)) return -1;
  struct stat named;
  if (LstatPath(to, &named) == 0) {
    errno = EEXIST;
    return -1;
  }
  return RenamePath(from, to);
}

// Takes the name `path` away from the open file `fd`, or OK where it has none
// any more. Its holder may end at any time, and another one may take it: what
// is taken away is looked at again, and given back where it is not the same.
absl::Status TakeNameFrom(int fd, const std::string& path) {
  const std::string aside = OwnNameBeside(path, "superseded");
  if (RenamePath(path, aside) != 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return ErrnoStatus(errno, absl::StrCat(path, ": rename to ", aside));
  }
  if (IsAt(fd, aside)) {
    UnlinkPath(aside);
    return absl::OkStatus();
  }
  // Where somebody took the name by now, the other one finds itself superseded.
  if (RenameToFreeName(aside, path) != 0) UnlinkPath(aside);
  return absl::FailedPreconditionError(kSomebody);
}

// Whether the process that has it shares it; a holder does not. Then we do too,
// until the file is closed.
bool OnlyAsked(int fd) { return Flock(fd, LOCK_SH | LOCK_NB) == 0; }

}  // namespace

absl::StatusOr<FileLock> FileLock::Lock(const std::string& path,
                                        absl::string_view holder,
                                        int operation) {
  const absl::Time deadline = SteadyNow() + kAskersMax;
  while (true) {
    int fd = OpenPath(path, O_RDWR | O_CREAT);
    // Another user's: it names its holder, and can be locked nevertheless.
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
    if (!IsAt(fd, path)) {  // its holder has removed it since
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

absl::StatusOr<FileLock> FileLock::TakeFrom(const std::string& path,
                                            absl::string_view holder,
                                            absl::string_view whose) {
  const int held = OpenPath(path, O_RDONLY);
  if (held < 0) return Take(path, holder);  // it has let go
  const std::string by = HolderOf(held);
  absl::StatusOr<FileLock> lock = absl::FailedPreconditionError(by);
  if (absl::StrContains(by, whose)) lock = Replace(held, path, holder);
  close(held);
  return lock;
}

absl::StatusOr<FileLock> FileLock::Replace(int held, const std::string& path,
                                           absl::string_view holder) {
  // Ours is whole before the other one loses its name: where there is no room
  // for it, that one stays.
  const std::string by = HolderOf(held);
  const std::string next = OwnNameBeside(path, "next");
  ASSIGN_OR_RETURN(FileLock lock, Take(next, holder));
  // It may have ended meanwhile, and another one may have locked the same file.
  if (const std::string now = HolderOf(held); now != by) {
    return absl::FailedPreconditionError(now);
  }
  RETURN_IF_ERROR(TakeNameFrom(held, path));
  if (RenameToFreeName(next, path) != 0) {
    if (errno == EEXIST) return absl::FailedPreconditionError(kSomebody);
    return ErrnoStatus(errno, absl::StrCat(next, ": rename to ", path));
  }
  lock.path_ = path;
  return lock;
}

absl::StatusOr<FileLock> FileLock::Await(const std::string& path,
                                         absl::string_view holder) {
  return Lock(path, holder, LOCK_EX);
}

bool FileLock::IsHeld(const std::string& path) {
  const int fd = OpenPath(path, O_RDONLY);
  if (fd < 0) return false;
  // Shared, so that no process takes one that asks for a holder.
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
  // While nobody else can have it; unless somebody has taken its name away, or
  // does now.
  if (IsAt(fd_, path_)) TakeNameFrom(fd_, path_).IgnoreError();
  close(fd_);
}

std::string ThisProcessName() {
  return absl::StrCat("pid ", getpid(), " on ", HostName());
}

}  // namespace troupe
