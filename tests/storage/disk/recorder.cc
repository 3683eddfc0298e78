#include "tests/storage/disk/recorder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "tests/storage/temp_dir.h"

namespace troupe {

namespace fs = std::filesystem;
using Lock = std::lock_guard<std::recursive_mutex>;

void Recorder::Start(const std::string& root, const RecordingOptions& options) {
  const Lock lock(mutex_);
  root_ = fs::path(root).lexically_normal();
  options_ = options;
  ids_.clear();
  before_.clear();
  changes_.clear();
  next_ = kRootObject;
  Take(root);
}

void Recorder::Stop() {
  const Lock lock(mutex_);
  root_.clear();
}

bool Recorder::Watches(const std::string& path) const {
  return !root_.empty() && absl::StartsWith(path, root_ + "/");
}

void Recorder::Fill(const std::string& root) {
  const Lock lock(mutex_);
  full_ = root.empty() ? "" : fs::canonical(root).string();
}

bool Recorder::IsFull(int fd, off_t end) const {
  if (full_.empty()) return false;
  std::error_code error;
  const std::string path =
      fs::read_symlink(absl::StrCat("/proc/self/fd/", fd), error);
  struct stat info;
  return absl::StartsWith(path, full_ + "/") && fstat(fd, &info) == 0 &&
         end > info.st_size;
}

int Recorder::IdAt(const std::string& path) const {
  struct stat info;
  const bool there = lstat(path.c_str(), &info) == 0;
  const auto it = there ? ids_.find(info.st_ino) : ids_.end();
  return it == ids_.end() ? 0 : it->second;
}

int Recorder::IdOf(int fd) const {
  struct stat info;
  const bool there = fstat(fd, &info) == 0;
  const auto it = there ? ids_.find(info.st_ino) : ids_.end();
  return it == ids_.end() ? 0 : it->second;
}

int Recorder::Made(const std::string& path) {
  struct stat info;
  CHECK_EQ(lstat(path.c_str(), &info), 0);
  DiskObject object;
  object.is_directory = S_ISDIR(info.st_mode);
  before_[next_] = object;
  return ids_[info.st_ino] = next_++;
}

int Recorder::Take(const std::string& path) {
  const int id = Made(path);
  if (!before_[id].is_directory) {
    before_[id].bytes = ReadText(path);
    return id;
  }
  for (const auto& entry : fs::directory_iterator(path)) {
    const int child = Take(entry.path());
    before_[id].names[entry.path().filename()] = child;
  }
  return id;
}

Recorder& TheRecorder() {
  static Recorder* const recorder = new Recorder;
  return *recorder;
}

namespace {

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// An absolute path without links in the directories.
std::string Absolute(int at, const char* path) {
  std::error_code error;
  fs::path full = path;
  if (full.is_relative() && at != AT_FDCWD) {
    full = fs::read_symlink(absl::StrCat("/proc/self/fd/", at), error) / full;
  }
  full = fs::absolute(full, error).lexically_normal();
  if (!full.has_filename()) full = full.parent_path();
  return full;
}

std::string NameOf(const std::string& path) {
  return fs::path(path).filename();
}
int ParentOf(const std::string& path) {
  return TheRecorder().IdAt(fs::path(path).parent_path());
}

int OpenAt(int at, const char* path, int flags, mode_t mode) {
  static auto* const real = Real<int(int, const char*, int, mode_t)>("openat");
  Recorder& recorder = TheRecorder();
  const Lock lock(recorder.mutex());
  const std::string full = Absolute(at, path);
  struct stat info;
  const bool existed = lstat(full.c_str(), &info) == 0;
  const int fd = real(at, path, flags, mode);
  if (fd < 0 || !recorder.Watches(full)) return fd;
  if (!existed && (flags & O_CREAT) != 0) {
    const int id = recorder.Made(full);
    recorder.Add({.kind = Change::kName,
                  .object = ParentOf(full),
                  .names = {{NameOf(full), id}},
                  .text = absl::StrCat("create ", full)});
  } else if ((flags & O_TRUNC) != 0) {
    recorder.Add({.kind = Change::kResize,
                  .object = recorder.IdOf(fd),
                  .text = absl::StrCat("truncate ", full)});
  }
  return fd;
}

ssize_t Wrote(int fd, const void* data, ssize_t count, off_t offset) {
  Recorder& recorder = TheRecorder();
  const int id = count > 0 ? recorder.IdOf(fd) : 0;
  if (id == 0) return count;
  const std::string bytes(static_cast<const char*>(data), count);
  const size_t half = bytes.size() / 2;
  for (const auto& [begin, end] :
       {std::pair(size_t{0}, half), std::pair(half, bytes.size())}) {
    if (begin == end) continue;
    recorder.Add({.kind = Change::kWrite,
                  .object = id,
                  .offset = static_cast<uint64_t>(offset) + begin,
                  .bytes = bytes.substr(begin, end - begin),
                  .text = absl::StrCat("write ", count, " at ", offset)});
  }
  return count;
}

ssize_t WriteAt(int fd, const void* data, size_t count, off_t offset) {
  static auto* const real =
      Real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  const Lock lock(TheRecorder().mutex());
  if (TheRecorder().IsFull(fd, offset + static_cast<off_t>(count))) {
    errno = ENOSPC;
    return -1;
  }
  return Wrote(fd, data, real(fd, data, count, offset), offset);
}

int Resized(int fd, off_t size, int result) {
  const int id = result == 0 ? TheRecorder().IdOf(fd) : 0;
  if (id == 0) return result;
  TheRecorder().Add({.kind = Change::kResize,
                     .object = id,
                     .offset = static_cast<uint64_t>(size),
                     .text = absl::StrCat("resize to ", size)});
  return result;
}

int Synced(int fd, int result) {
  const int id = result == 0 ? TheRecorder().IdOf(fd) : 0;
  if (id == 0) return result;
  TheRecorder().Add({.kind = Change::kSync, .object = id, .text = "fsync"});
  return result;
}

int RenameAt(int from_at, const char* from, int to_at, const char* to,
             unsigned flags) {
  static auto* const real =
      Real<int(int, const char*, int, const char*, unsigned)>("renameat2");
  Recorder& recorder = TheRecorder();
  const Lock lock(recorder.mutex());
  const std::string source = Absolute(from_at, from);
  const std::string target = Absolute(to_at, to);
  const bool watched = recorder.Watches(source) || recorder.Watches(target);
  if (watched && recorder.options().before_rename != nullptr) {
    std::exchange(recorder.options().before_rename, nullptr)();
  }
  if (watched && recorder.options().refuse_rename_flags && flags != 0) {
    errno = EINVAL;
    return -1;
  }
  const int moved = recorder.IdAt(source);
  const int replaced = recorder.IdAt(target);
  const int result = real(from_at, from, to_at, to, flags);
  if (result != 0 || !watched) return result;
  CHECK_EQ(ParentOf(source), ParentOf(target))
      << source << " -> " << target << ": another directory";
  const int left = (flags & RENAME_EXCHANGE) != 0 ? replaced : 0;
  recorder.Add({.kind = Change::kName,
                .object = ParentOf(target),
                .names = {{NameOf(source), left}, {NameOf(target), moved}},
                .text = absl::StrCat(left != 0 ? "exchange " : "rename ",
                                     source, " and ", NameOf(target))});
  return result;
}

int LinkAt(int from_at, const char* from, int to_at, const char* to,
           int flags) {
  static auto* const real =
      Real<int(int, const char*, int, const char*, int)>("linkat");
  Recorder& recorder = TheRecorder();
  const Lock lock(recorder.mutex());
  const std::string target = Absolute(to_at, to);
  const bool watched = recorder.Watches(target);
  if (watched && recorder.options().refuse_links) {
    errno = EPERM;
    return -1;
  }
  const int result = real(from_at, from, to_at, to, flags);
  if (result != 0 || !watched) return result;
  recorder.Add({.kind = Change::kName,
                .object = ParentOf(target),
                .names = {{NameOf(target), recorder.IdAt(target)}},
                .text = absl::StrCat("link ", target)});
  if (recorder.options().repeat_links) {
    errno = EEXIST;
    return -1;
  }
  return result;
}

int UnlinkAt(int at, const char* path, int flags) {
  static auto* const real = Real<int(int, const char*, int)>("unlinkat");
  Recorder& recorder = TheRecorder();
  const Lock lock(recorder.mutex());
  const std::string full = Absolute(at, path);
  const int parent = ParentOf(full);
  const int result = real(at, path, flags);
  if (result != 0 || !recorder.Watches(full)) return result;
  recorder.Add({.kind = Change::kName,
                .object = parent,
                .names = {{NameOf(full), 0}},
                .text = absl::StrCat("remove ", full)});
  return result;
}

int MakeAt(int at, const char* path, mode_t mode) {
  static auto* const real = Real<int(int, const char*, mode_t)>("mkdirat");
  Recorder& recorder = TheRecorder();
  const Lock lock(recorder.mutex());
  const int result = real(at, path, mode);
  const std::string full = Absolute(at, path);
  if (result != 0 || !recorder.Watches(full)) return result;
  const int id = recorder.Made(full);
  recorder.Add({.kind = Change::kName,
                .object = ParentOf(full),
                .names = {{NameOf(full), id}},
                .text = absl::StrCat("mkdir ", full)});
  return result;
}

}  // namespace
}  // namespace troupe

// The calls themselves: this process's are these, for the linker finds them
// before the C library's.
extern "C" {

#define TROUPE_MODE_OF_(flags)        \
  mode_t mode = 0;                    \
  if (((flags)&O_CREAT) != 0) {       \
    va_list arguments;                \
    va_start(arguments, flags);       \
    mode = va_arg(arguments, mode_t); \
    va_end(arguments);                \
  }

int open(const char* path, int flags, ...) {
  TROUPE_MODE_OF_(flags)
  return troupe::OpenAt(AT_FDCWD, path, flags, mode);
}
int openat(int at, const char* path, int flags, ...) {
  TROUPE_MODE_OF_(flags)
  return troupe::OpenAt(at, path, flags, mode);
}
ssize_t pwrite(int fd, const void* data, size_t count, off_t offset) {
  return troupe::WriteAt(fd, data, count, offset);
}
int ftruncate(int fd, off_t size) noexcept {
  static auto* const real = troupe::Real<int(int, off_t)>("ftruncate");
  const troupe::Lock lock(troupe::TheRecorder().mutex());
  return troupe::Resized(fd, size, real(fd, size));
}
int fsync(int fd) {
  static auto* const real = troupe::Real<int(int)>("fsync");
  const troupe::Lock lock(troupe::TheRecorder().mutex());
  return troupe::Synced(fd, real(fd));
}
int rename(const char* from, const char* to) noexcept {
  return troupe::RenameAt(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat2(int from_at, const char* from, int to_at, const char* to,
              unsigned flags) noexcept {
  return troupe::RenameAt(from_at, from, to_at, to, flags);
}
int linkat(int from_at, const char* from, int to_at, const char* to,
           int flags) noexcept {
  return troupe::LinkAt(from_at, from, to_at, to, flags);
}
int unlink(const char* path) noexcept {
  return troupe::UnlinkAt(AT_FDCWD, path, 0);
}
int rmdir(const char* path) noexcept {
  return troupe::UnlinkAt(AT_FDCWD, path, AT_REMOVEDIR);
}
int unlinkat(int at, const char* path, int flags) noexcept {
  return troupe::UnlinkAt(at, path, flags);
}
int remove(const char* path) noexcept {
  const int result = troupe::UnlinkAt(AT_FDCWD, path, 0);
  if (result == 0 || errno != EISDIR) return result;
  return troupe::UnlinkAt(AT_FDCWD, path, AT_REMOVEDIR);
}
int mkdir(const char* path, mode_t mode) noexcept {
  return troupe::MakeAt(AT_FDCWD, path, mode);
}

}  // extern "C"
