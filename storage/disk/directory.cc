#include "storage/disk/directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "proto/base/status.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/path_calls.h"
#include "storage/disk/roots.h"

namespace troupe {
namespace {

bool IsDirectory(const std::string& path) {
  struct stat info;
  return StatPath(path, &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

std::string WithoutSlash(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  return name;
}

std::string ParentDirectory(const std::string& path) {
  const std::string name = WithoutSlash(path);
  if (name == "/") return name;
  const size_t slash = name.find_last_of('/');
  const absl::optional<PathBelowRoot> below = PathBelowRoot::Of(name);
  if (below.has_value() && slash == std::string::npos) {
    return absl::StrCat(RootName(name), ":");
  }
  const std::string parent = std::filesystem::path(name).parent_path();
  return parent.empty() ? "." : parent;
}

absl::Status SyncDirectory(const std::string& path) {
  const int fd = OpenPath(path, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat(path, ": open"));
  int result;
  do {
    result = fsync(fd);
  } while (result < 0 && errno == EINTR);
  const int error = result < 0 ? errno : 0;
  close(fd);
  if (error == 0 || error == EINVAL) return absl::OkStatus();
  return ErrnoStatus(error, absl::StrCat(path, ": fsync"));
}

absl::Status SyncName(const std::string& path) {
  const absl::Status synced = SyncDirectory(ParentDirectory(path));
  if (!absl::IsPermissionDenied(synced)) return synced;
  const int fd = OpenPath(path, O_RDONLY);
  if (fd < 0) return synced;
  const int error = syncfs(fd) < 0 ? errno : 0;
  close(fd);
  if (error == 0) return absl::OkStatus();
  return ErrnoStatus(error, absl::StrCat(path, ": syncfs"));
}

absl::Status SyncTree(const std::string& path) {
  std::vector<std::string> names;
  if (ListPath(path, names) != 0) {
    return ErrnoStatus(errno, absl::StrCat(path, ": list"));
  }
  for (const std::string& name : names) {
    const std::string entry = absl::StrCat(path, "/", name);
    struct stat info;
    if (LstatPath(entry, &info) == 0 && S_ISDIR(info.st_mode)) {
      RETURN_IF_ERROR(SyncTree(entry));
    }
  }
  return SyncDirectory(path);
}

absl::Status MakeDirectories(const std::string& path) {
  const auto make = [&] { return MkdirPath(path, 0777) == 0 ? 0 : errno; };
  const std::string parent = ParentDirectory(path);
  int error = make();
  // The parent may be there by now: others make the same directories.
  if (error == ENOENT && parent != path) {
    RETURN_IF_ERROR(MakeDirectories(parent));
    error = make();
  }
  if (error == 0) return SyncName(path);
  if (IsDirectory(path)) return absl::OkStatus();
  return ErrnoStatus(error == EEXIST ? ENOTDIR : error,
                     absl::StrCat(path, ": make the directory"));
}

MissingDirectories::MissingDirectories(const std::string& path) {
  std::string at = WithoutSlash(path);
  struct stat info;
  while (LstatPath(at, &info) != 0 && errno == ENOENT) {
    paths_.push_back(at);
    const std::string above = ParentDirectory(at);
    if (above == at) return;
    at = above;
  }
}

void MissingDirectories::RemoveEmpty() const {
  for (const std::string& path : paths_) {
    if (RmdirPath(path) != 0 && errno != ENOENT) return;
  }
}

absl::Status CheckDirectoryTakesFiles(const std::string& path) {
  std::string at = WithoutSlash(path);
  struct stat info;
  while (StatPath(at, &info) != 0) {
    const int error = errno;
    const std::string above = ParentDirectory(at);
    if (error != ENOENT || above == at) {
      return ErrnoStatus(error, absl::StrCat(at, ": stat"));
    }
    at = above;
  }
  if (!S_ISDIR(info.st_mode)) {
    return ErrnoStatus(ENOTDIR, absl::StrCat(at, ": make a file in it"));
  }
  // A file without a name, which goes when it is closed. Not all file systems
  // have such.
  const int fd = OpenPath(at, O_TMPFILE | O_WRONLY, 0600);
  if (fd >= 0) {
    close(fd);
    return absl::OkStatus();
  }
  if (errno != EACCES && errno != EPERM && errno != EROFS) {
    return absl::OkStatus();
  }
  return ErrnoStatus(errno, absl::StrCat(at, ": make a file in it"));
}

absl::Status RenameDurably(const std::string& from, const std::string& to) {
  if (RenamePath(from, to) != 0) {
    return ErrnoStatus(errno, absl::StrCat(from, ": rename to ", to));
  }
  return SyncName(to);
}

absl::Status RemoveTree(const std::string& path, const BytesRemoved& removed) {
  struct stat info;
  if (LstatPath(path, &info) != 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return ErrnoStatus(errno, absl::StrCat(path, ": remove"));
  }
  const bool is_directory = S_ISDIR(info.st_mode);
  if (is_directory) {
    std::vector<std::string> names;
    // Others may remove it, too.
    if (ListPath(path, names, /*follow=*/false) != 0 && errno != ENOENT) {
      return ErrnoStatus(errno, absl::StrCat(path, ": list"));
    }
    for (const std::string& name : names) {
      RETURN_IF_ERROR(RemoveTree(absl::StrCat(path, "/", name), removed));
    }
  }
  const int result = is_directory ? RmdirPath(path) : UnlinkPath(path);
  if (result != 0 && errno != ENOENT) {
    return ErrnoStatus(errno, absl::StrCat(path, ": remove"));
  }
  if (!removed || is_directory) return absl::OkStatus();
  return removed(info.st_size);
}

uint64_t TreeBytes(const std::string& path) {
  uint64_t bytes = 0;
  std::vector<std::string> names;
  ListPath(path, names);  // what could be seen
  for (const std::string& name : names) {
    const std::string entry = absl::StrCat(path, "/", name);
    struct stat info;
    if (LstatPath(entry, &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) bytes += TreeBytes(entry);
    if (S_ISREG(info.st_mode)) bytes += info.st_size;
  }
  return bytes;
}

}  // namespace troupe
