#include "tests/cluster/troupe_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

std::string ErrFile() {
  static std::atomic<int> count = 0;
  return std::filesystem::path(testing::TempDir()) /
         ("stderr-" + std::to_string(getpid()) + "-" + std::to_string(++count));
}

int ExitCode(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TroupeProgram::TroupeProgram(const std::vector<std::string>& command,
                             absl::Duration patience)
    : command_(absl::StrJoin(command, " ")),
      patience_(patience),
      err_file_(ErrFile()) {
  int pipe_fds[2];
  CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
  std::vector<char*> arguments;
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  pid_ = fork();
  CHECK(pid_ >= 0);
  if (pid_ == 0) {
    const int err = open(err_file_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(pipe_fds[1], STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(pipe_fds[1]);
  out_fd_ = pipe_fds[0];
}

TroupeProgram::~TroupeProgram() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (out_fd_ >= 0) close(out_fd_);
}

void TroupeProgram::Signal(int signal) const { CHECK(kill(pid_, signal) == 0); }

bool TroupeProgram::ReadMore(absl::Time deadline) {
  pollfd output = {.fd = out_fd_, .events = POLLIN};
  const absl::Duration left =
      std::max(deadline - SteadyNow(), absl::ZeroDuration());
  const int milliseconds = deadline == absl::InfiniteFuture()
                               ? -1
                               : absl::ToInt64Milliseconds(left);
  if (poll(&output, 1, milliseconds) == 0) {
    ADD_FAILURE() << command_ << " says nothing more and does not end, "
                  << absl::FormatDuration(patience_)
                  << " after it was waited for; it said: " << out_;
    kill(pid_, SIGKILL);
    return false;
  }
  char buffer[4096];
  const ssize_t n = read(out_fd_, buffer, sizeof(buffer));
  if (n <= 0) return false;
  out_.append(buffer, n);
  return true;
}

std::string TroupeProgram::WaitForLine(const std::string& text) {
  const absl::Time deadline = SteadyNow() + patience_;
  while (true) {
    const size_t end = out_.find('\n', searched_);
    if (end == std::string::npos) {
      if (!ReadMore(deadline)) return "";
      continue;
    }
    const std::string line = out_.substr(searched_, end - searched_);
    searched_ = end + 1;
    if (line.find(text) != std::string::npos) return line;
  }
}

Outcome TroupeProgram::Wait() {
  const absl::Time deadline = SteadyNow() + patience_;
  while (ReadMore(deadline)) {
  }
  int status = 0;
  CHECK(waitpid(pid_, &status, 0) == pid_);
  pid_ = -1;
  std::stringstream err;
  err << std::ifstream(err_file_).rdbuf();
  return {.code = ExitCode(status), .out = out_, .err = err.str()};
}

Outcome RunProgram(const std::vector<std::string>& command,
                   absl::Duration patience) {
  return TroupeProgram(command, patience).Wait();
}

}  // namespace troupe
