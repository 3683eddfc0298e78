#include "storage/disk/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "storage/disk/directory.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/path_calls.h"
#include "storage/disk/roots.h"

namespace troupe {
namespace {

constexpr absl::string_view kFileAsideMark = ".tmp-";

// Of what is there under a name and no file.
const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

bool IsLink(const std::string& path) {
  struct stat info;
  return LstatPath(path, &info) == 0 && S_ISLNK(info.st_mode);
}

// Where the links of a path lead, so that they stay links.
absl::StatusOr<std::string> FollowLinks(const std::string& path) {
  std::string target = path;
  constexpr int kLinksMax = 40;  // as the kernel's
  for (int i = 0; IsLink(target); ++i) {
    if (i == kLinksMax) return ErrnoStatus(ELOOP, absl::StrCat(path, ": open"));
    std::string to;
    if (ReadlinkPath(target, to) != 0) {
      return ErrnoStatus(errno, absl::StrCat(target, ": readlink"));
    }
    const bool is_absolute = absl::StartsWith(to, "/");
    if (is_absolute && PathBelowRoot::Of(target).has_value()) {
      return ErrnoStatus(EXDEV, absl::StrCat(target, ": a link to ", to));
    }
    target = is_absolute ? to : absl::StrCat(ParentDirectory(target), "/", to);
  }
  return target;
}

}  // namespace

absl::StatusOr<std::string> ReplaceablePath(const std::string& path) {
  ASSIGN_OR_RETURN(std::string target, FollowLinks(path));
  struct stat info;
  if (StatPath(target, &info) == 0 && !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is ", KindOf(info.st_mode),
                     ", which a file cannot replace; give another name"));
  }
  return target;
}

absl::StatusOr<NewFile> NewFile::Create(const std::string& path, mode_t mode) {
  ASSIGN_OR_RETURN(std::string target, ReplaceablePath(path));
  std::string aside = absl::StrCat(target, kFileAsideMark, getpid());
  // Made by us: what is there under that name is of a process that is gone, or
  // of an attacker that wants us to write into it.
  constexpr int kTriesMax = 10;
  int fd = -1;
  for (int i = 0; i < kTriesMax; ++i) {
    fd = OpenPath(aside, O_RDWR | O_CREAT | O_EXCL, mode);
    if (fd >= 0 || errno != EEXIST) break;
    if (UnlinkPath(aside) != 0 && errno != ENOENT) {
      return ErrnoStatus(errno, absl::StrCat(aside, ": remove"));
    }
    errno = EEXIST;
  }
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat(aside, ": open"));
  return NewFile(std::move(target), std::move(aside), fd);
}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      aside_(std::exchange(other.aside_, "")),
      fd_(std::exchange(other.fd_, -1)) {}

NewFile& NewFile::operator=(NewFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(aside_, other.aside_);
  std::swap(fd_, other.fd_);
  return *this;
}

NewFile::~NewFile() {
  if (fd_ >= 0) close(fd_);
  if (!aside_.empty()) UnlinkPath(aside_);
}

absl::Status NewFile::WriteAt(uint64_t offset, absl::string_view bytes) const {
  CHECK_GE(fd_, 0) << path_ << " is committed";
  while (!bytes.empty()) {
    const ssize_t written =
        pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      return ErrnoStatus(errno,
                         absl::StrCat(aside_, ": write at offset ", offset));
    }
    offset += written;
    bytes.remove_prefix(written);
  }
  return absl::OkStatus();
}

absl::Status NewFile::Sync() const {
  CHECK_GE(fd_, 0) << path_ << " is committed";
  int result;
  do {
    result = fsync(fd_);
  } while (result < 0 && errno == EINTR);
  if (result < 0) return ErrnoStatus(errno, absl::StrCat(aside_, ": fsync"));
  return absl::OkStatus();
}

absl::Status NewFile::Commit() {
  RETURN_IF_ERROR(Sync());
  // Linux frees the descriptor whatever close says, so EINTR is not retried.
  if (close(std::exchange(fd_, -1)) < 0 && errno != EINTR) {
    return ErrnoStatus(errno, absl::StrCat(aside_, ": close"));
  }
  if (RenamePath(aside_, path_) != 0) {
    return ErrnoStatus(errno, absl::StrCat(aside_, ": rename to ", path_));
  }
  aside_.clear();
  return SyncName(path_);
}

absl::Status ReplaceFile(const std::string& path, absl::string_view bytes,
                         mode_t mode) {
  ASSIGN_OR_RETURN(NewFile file, NewFile::Create(path, mode));
  RETURN_IF_ERROR(file.WriteAt(0, bytes));
  return file.Commit();
}

absl::Status RemoveAbandonedAsides(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string target, ReplaceablePath(path));
  const std::string directory = ParentDirectory(target);
  std::vector<std::string> names;
  if (ListPath(directory, names) != 0) {
    // One that may be written but not read keeps what is there.
    if (errno == EACCES) return absl::OkStatus();
    return ErrnoStatus(errno, absl::StrCat(directory, ": list"));
  }
  const std::string mark = absl::StrCat(
      target.substr(target.find_last_of("/:") + 1), kFileAsideMark);
  const std::string own = absl::StrCat(getpid());
  for (const std::string& name : names) {
    absl::string_view process = name;
    if (!absl::ConsumePrefix(&process, mark) || process.empty() ||
        process == own || !absl::c_all_of(process, absl::ascii_isdigit)) {
      continue;
    }
    const std::string aside = absl::StrCat(target, kFileAsideMark, process);
    if (UnlinkPath(aside) != 0 && errno != ENOENT) {
      return ErrnoStatus(errno, absl::StrCat(aside, ": remove"));
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
