// A lock that processes of one machine, and of several where the file system
// carries flock(2), agree about: an flock on a file, which the kernel drops
// when the holder ends, however it ends. The file names its holder, for the
// message that the next one gets; it goes with the lock, and a line that a
// crash left means nothing.
//
//   ASSIGN_OR_RETURN(FileLock lock, FileLock::Take(dir + "/lock", "pid 17"));
#ifndef TROUPE_STORAGE_DISK_FILE_LOCK_H_
#define TROUPE_STORAGE_DISK_FILE_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

// Move-only; held until destroyed.
class FileLock {
 public:
  // FailedPrecondition, with what its holder wrote as the message, where it is
  // held. Unimplemented where the file system has no such locks. Other errors
  // name the file and the errno. `holder` is a short line.
  static absl::StatusOr<FileLock> Take(const std::string& path,
                                       absl::string_view holder);

  // Takes it from a holder whose line has `whose` in it: that one is superseded
  // then. Where nobody holds it, as Take. FailedPrecondition, with the holder's
  // line, where another holds it, also if that one came just now: it keeps the
  // lock. So does any holder where our line cannot be written (a full disk).
  static absl::StatusOr<FileLock> TakeFrom(const std::string& path,
                                           absl::string_view holder,
                                           absl::string_view whose);

  // Waits for it as long as another has it.
  static absl::StatusOr<FileLock> Await(const std::string& path,
                                        absl::string_view holder);

  // Whether any process has it now; one that takes it meanwhile is not refused
  // for that. No where there is no such file, or where it cannot be asked.
  static bool IsHeld(const std::string& path);

  // Whether somebody has taken its name away and locked another file of it.
  bool superseded() const;

  FileLock(FileLock&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileLock();

 private:
  FileLock(const std::string& path, int fd) : path_(path), fd_(fd) {}
  static absl::StatusOr<FileLock> Lock(const std::string& path,
                                       absl::string_view holder, int operation);
  static absl::StatusOr<FileLock> Replace(int held, const std::string& path,
                                          absl::string_view holder);

  std::string path_;
  int fd_ = -1;
};

// "pid 17 on host7", for what a holder says of itself.
std::string ThisProcessName();

}  // namespace troupe

#endif  // TROUPE_STORAGE_DISK_FILE_LOCK_H_
