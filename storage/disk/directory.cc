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

std::string ParentDirectory(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
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
  if (error == 0) return SyncDirectory(parent);
  if (IsDirectory(path)) return absl::OkStatus();
  return ErrnoStatus(error == EEXIST ? ENOTDIR : error,
                     absl::StrCat(path, ": make the directory"));
}

absl::Status RenameDurably(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat(from, ": rename to ", to));
  }
  return SyncDirectory(ParentDirectory(to));
}

absl::Status RemoveTree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (!error) return absl::OkStatus();
  return ErrnoStatus(error.value(), absl::StrCat(path, ": remove"));
}

}  // namespace troupe
