#include "storage/disk/path_calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <utility>

#include "absl/types/optional.h"
#include "proto/base/must_not_wait.h"
#include "storage/disk/roots.h"

namespace troupe {
namespace {

// Closes it, and leaves errno as it is.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Descriptor() {
    if (fd_ < 0) return;
    const int error = errno;
    close(fd_);
    errno = error;
  }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Of every path that the system is called with.
absl::optional<PathBelowRoot> BelowRoot(const std::string& path) {
  CheckMayWait("the file system is used");
  return PathBelowRoot::Of(path);
}

int OpenBelow(const PathBelowRoot& path, int flags, mode_t mode) {
  open_how how = {};
  how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  // EAGAIN: somebody renamed meanwhile, and a ".." might have led out.
  constexpr int kTriesMax = 100;
  int fd = -1;
  for (int i = 0; i < kTriesMax; ++i) {
    fd = static_cast<int>(
        syscall(SYS_openat2, path.root, path.below.c_str(), &how, sizeof(how)));
    if (fd >= 0 || (errno != EINTR && errno != EAGAIN)) break;
  }
  return fd;
}

// A name in an open directory: what the calls that end in "at" take.
struct Entry {
  Descriptor directory;
  int at;  // AT_FDCWD for the system's paths; -1: it cannot be, see errno
  std::string name;
};

Entry EntryOf(const std::string& path) {
  absl::optional<PathBelowRoot> below = BelowRoot(path);
  if (!below.has_value()) return {Descriptor(-1), AT_FDCWD, path};
  std::string& name = below->below;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  const size_t slash = name.find_last_of('/');
  std::string last = name.substr(slash == std::string::npos ? 0 : slash + 1);
  // A root is nobody's to rename or remove, nor is what ".." may be.
  if (last == "." || last == "..") {
    errno = EBUSY;
    return {Descriptor(-1), -1, ""};
  }
  name = slash == std::string::npos ? "." : name.substr(0, slash);
  Descriptor directory(OpenBelow(*below, O_PATH | O_DIRECTORY, 0));
  const int at = directory.get();
  return {std::move(directory), at, std::move(last)};
}

int StatWith(const std::string& path, int flags, struct stat* info) {
  const absl::optional<PathBelowRoot> below = BelowRoot(path);
  if (!below.has_value()) {
    return (flags & O_NOFOLLOW) != 0 ? lstat(path.c_str(), info)
                                     : stat(path.c_str(), info);
  }
  const Descriptor fd(OpenBelow(*below, O_PATH | flags, 0));
  return fd.get() < 0 ? -1 : fstat(fd.get(), info);
}

}  // namespace

int OpenPath(const std::string& path, int flags, mode_t mode) {
  const absl::optional<PathBelowRoot> below = BelowRoot(path);
  if (below.has_value()) return OpenBelow(*below, flags, mode);
  int fd;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

int StatPath(const std::string& path, struct stat* info) {
  return StatWith(path, 0, info);
}

int LstatPath(const std::string& path, struct stat* info) {
  return StatWith(path, O_NOFOLLOW, info);
}

int MkdirPath(const std::string& path, mode_t mode) {
  const Entry entry = EntryOf(path);
  if (entry.at == -1) {
    if (errno == EBUSY) errno = EEXIST;  // a root is there
    return -1;
  }
  return entry.at == AT_FDCWD ? mkdir(path.c_str(), mode)
                              : mkdirat(entry.at, entry.name.c_str(), mode);
}

int UnlinkPath(const std::string& path) {
  const Entry entry = EntryOf(path);
  return entry.at == -1 ? -1 : unlinkat(entry.at, entry.name.c_str(), 0);
}

int RmdirPath(const std::string& path) {
  const Entry entry = EntryOf(path);
  return entry.at == -1 ? -1
                        : unlinkat(entry.at, entry.name.c_str(), AT_REMOVEDIR);
}

int RenamePath(const std::string& from, const std::string& to,
               unsigned int flags) {
  const Entry old_name = EntryOf(from);
  if (old_name.at == -1) return -1;
  const Entry new_name = EntryOf(to);
  if (new_name.at == -1) return -1;
  return renameat2(old_name.at, old_name.name.c_str(), new_name.at,
                   new_name.name.c_str(), flags);
}

int LinkPath(const std::string& from, const std::string& to) {
  const Entry file = EntryOf(from);
  if (file.at == -1) return -1;
  const Entry other = EntryOf(to);
  if (other.at == -1) return -1;
  return linkat(file.at, file.name.c_str(), other.at, other.name.c_str(), 0);
}

int ReadlinkPath(const std::string& path, std::string& target) {
  const Entry entry = EntryOf(path);
  if (entry.at == -1) return -1;
  target.resize(PATH_MAX);
  const ssize_t length =
      readlinkat(entry.at, entry.name.c_str(), target.data(), target.size());
  target.resize(length < 0 ? 0 : length);
  return length < 0 ? -1 : 0;
}

int ListPath(const std::string& path, std::vector<std::string>& names,
             bool follow) {
  Descriptor fd(
      OpenPath(path, O_RDONLY | O_DIRECTORY | (follow ? 0 : O_NOFOLLOW)));
  DIR* const directory = fd.get() < 0 ? nullptr : fdopendir(fd.get());
  if (directory == nullptr) {
    if (errno == ELOOP && !follow) errno = ENOTDIR;
    return -1;
  }
  fd.Release();  // the stream's now
  errno = 0;
  while (const dirent* const entry = readdir(directory)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  const int error = errno;
  closedir(directory);
  errno = error;
  return error == 0 ? 0 : -1;
}

}  // namespace troupe
