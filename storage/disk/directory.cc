#include "storage/disk/directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/disk/errno_status.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

bool IsDirectory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
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
  const std::string parent = fs::path(name).parent_path();
  return parent.empty() ? "." : parent;
}

absl::Status SyncDirectory(const std::string& path) {
  int fd;
  do {
    fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
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
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return synced;
  const int error = syncfs(fd) < 0 ? errno : 0;
  close(fd);
  if (error == 0) return absl::OkStatus();
  return ErrnoStatus(error, absl::StrCat(path, ": syncfs"));
}

absl::Status SyncTree(const std::string& path) {
  std::error_code error;
  fs::directory_iterator it(path, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    std::error_code none;
    if (it->is_directory(none) && !it->is_symlink(none)) {
      RETURN_IF_ERROR(SyncTree(it->path()));
    }
  }
  if (error) return ErrnoStatus(error.value(), absl::StrCat(path, ": list"));
  return SyncDirectory(path);
}

absl::Status MakeDirectories(const std::string& path) {
  const auto make = [&] { return mkdir(path.c_str(), 0777) == 0 ? 0 : errno; };
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

absl::Status RenameDurably(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat(from, ": rename to ", to));
  }
  return SyncName(to);
}

absl::Status RemoveTree(const std::string& path, const BytesRemoved& removed) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return ErrnoStatus(errno, absl::StrCat(path, ": remove"));
  }
  std::error_code error;
  if (S_ISDIR(info.st_mode)) {
    fs::directory_iterator it(path, error);
    for (; !error && it != fs::directory_iterator(); it.increment(error)) {
      RETURN_IF_ERROR(RemoveTree(it->path(), removed));
    }
    // Others may remove it, too.
    if (error && error != std::errc::no_such_file_or_directory) {
      return ErrnoStatus(error.value(), absl::StrCat(path, ": list"));
    }
  }
  fs::remove(path, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat(path, ": remove"));
  if (!removed || S_ISDIR(info.st_mode)) return absl::OkStatus();
  return removed(info.st_size);
}

uint64_t TreeBytes(const std::string& path) {
  uint64_t bytes = 0;
  std::error_code error;
  fs::recursive_directory_iterator it(path, error);
  for (; !error && it != fs::recursive_directory_iterator();
       it.increment(error)) {
    std::error_code none;
    if (!it->is_regular_file(none) || it->is_symlink(none)) continue;
    const uintmax_t size = it->file_size(none);
    if (!none) bytes += size;
  }
  return bytes;
}

}  // namespace troupe
