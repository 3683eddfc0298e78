#include "proto/base/log_file.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/base/must_not_wait.h"

namespace troupe {
namespace {

std::atomic<const LogFile*> reopened_on_hangup = nullptr;

int OpenToAppend(const char* path) {
  return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

bool AreSame(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool IsSameFile(int a, int b) {
  struct stat one = {};
  struct stat other = {};
  return fstat(a, &one) == 0 && fstat(b, &other) == 0 && AreSame(one, other);
}

}  // namespace

absl::Status WriteLine(int file, absl::string_view line) {
  while (!line.empty()) {
    const ssize_t written = write(file, line.data(), line.size());
    if (written >= 0) {
      line.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {  // the file was given to us as non-blocking
      pollfd room = {.fd = file, .events = POLLOUT};
      poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return absl::UnavailableError(std::strerror(errno));
    }
  }
  return absl::OkStatus();
}

LogFile::LogFile(const LogFileOptions& options, int file)
    : options_(options),
      file_(file),
      is_stdout_(IsSameFile(file, STDOUT_FILENO)),
      is_stderr_(IsSameFile(file, STDERR_FILENO)) {}

LogFile::~LogFile() {
  const LogFile* self = this;
  reopened_on_hangup.compare_exchange_strong(self, nullptr);
  close(file_);
}

absl::StatusOr<std::unique_ptr<LogFile>> LogFile::Open(
    const LogFileOptions& options) {
  const int file = OpenToAppend(options.path.c_str());
  if (file < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("log file ", options.path, ": ", std::strerror(errno)));
  }
  return std::unique_ptr<LogFile>(new LogFile(options, file));
}

absl::Status LogFile::Write(absl::string_view line) {
  CheckMayWait("a log file is written");
  struct stat now = {};
  if (fstat(file_, &now) == 0 && now.st_size > 0 &&
      now.st_size + static_cast<int64_t>(line.size()) > options_.bytes_max) {
    Rotate();
  }
  return WriteLine(file_, line);
}

bool LogFile::Reopen() const {
  const int fresh = OpenToAppend(options_.path.c_str());
  if (fresh < 0) return false;
  dup3(fresh, file_, O_CLOEXEC);
  if (is_stdout_) dup2(fresh, STDOUT_FILENO);
  if (is_stderr_) dup2(fresh, STDERR_FILENO);
  close(fresh);
  return true;
}

void LogFile::Rotate() const {
  if (!IsAtItsPath()) {
    // It was moved already, and no new one could be opened then.
    Reopen();
    return;
  }
  const auto older = [this](int number) {
    return absl::StrCat(options_.path, ".", number);
  };
  // Out of the way first: one that cannot be renamed grows on, and the older
  // ones stay.
  if (std::rename(options_.path.c_str(), older(0).c_str()) != 0) return;
  for (int number = std::max(options_.older_max, 1); number > 0; --number) {
    std::rename(older(number - 1).c_str(), older(number).c_str());
  }
  Reopen();
}

bool LogFile::IsAtItsPath() const {
  struct stat open = {};
  struct stat named = {};
  return fstat(file_, &open) == 0 && stat(options_.path.c_str(), &named) == 0 &&
         AreSame(open, named);
}

void LogFile::ReopenOnHangup() {
  reopened_on_hangup = this;
  struct sigaction action = {};
  action.sa_handler = [](int) {
    const int kept = errno;
    if (const LogFile* file = reopened_on_hangup) file->Reopen();
    errno = kept;
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGHUP, &action, nullptr);
}

}  // namespace troupe
