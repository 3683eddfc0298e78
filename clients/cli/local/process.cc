#include "clients/cli/local/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"

extern char** environ;

namespace troupe {
namespace {

// A file descriptor that closes itself.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::Status SystemError(const std::string& what, int error) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(error)));
}

struct Streams {
  int in;
  int out;
  int err;
};

// The child gets these three streams, no blocked signals, and a session of its
// own where asked.
absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& command,
                            const Streams& streams, bool own_session) {
  CHECK(!command.empty());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, streams.in, 0);
  posix_spawn_file_actions_adddup2(&actions, streams.out, 1);
  posix_spawn_file_actions_adddup2(&actions, streams.err, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(
      &attributes,
      POSIX_SPAWN_SETSIGMASK | (own_session ? POSIX_SPAWN_SETSID : 0));
  std::vector<char*> arguments;
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, command[0].c_str(), &actions, &attributes,
                                arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return SystemError(absl::StrCat("start ", command[0]), error);
  return pid;
}

// An unnamed file in memory that holds `content`, at its start.
absl::StatusOr<Fd> MemoryFile(const std::string& content) {
  Fd file(memfd_create("troupe", MFD_CLOEXEC));
  if (file.get() < 0) return SystemError("memfd_create", errno);
  for (size_t done = 0; done < content.size();) {
    const ssize_t n =
        write(file.get(), content.data() + done, content.size() - done);
    if (n < 0) return SystemError("write", errno);
    done += n;
  }
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

std::string ReadAll(const Fd& file) {
  std::string content;
  char buffer[1 << 16];
  lseek(file.get(), 0, SEEK_SET);
  for (ssize_t n; (n = read(file.get(), buffer, sizeof(buffer))) > 0;) {
    content.append(buffer, n);
  }
  return content;
}

std::string Tail(std::istream& in, int lines) {
  std::deque<std::string> last;
  for (std::string line; std::getline(in, line);) {
    last.push_back(std::move(line));
    if (last.size() > lines) last.pop_front();
  }
  std::string tail;
  for (const std::string& line : last) absl::StrAppend(&tail, "\n  ", line);
  return tail;
}

// Processes on their way to their end.
class Ending {
 public:
  Ending(const std::vector<ProcessId>& processes, const EndOptions& options)
      : options_(options), left_(processes) {
    DropEnded();
  }

  // To those that are left. One that may not be signalled is not waited for.
  void Signal(int signal) {
    std::vector<ProcessId> reached;
    for (const ProcessId& process : left_) {
      if (options_.signal(process.pid, signal) == 0 || errno == ESRCH) {
        reached.push_back(process);
        if (signal == SIGKILL) outcome_.killed.push_back(process);
      } else {
        outcome_.left.push_back(
            {.process = process, .why = std::strerror(errno), .refused = true});
      }
    }
    left_ = std::move(reached);
  }

  // Until the grace is over, which begins anew while they are busy.
  void WaitGrace() {
    absl::Time deadline = SteadyNow() + options_.grace;
    absl::Time say =
        SteadyNow() + std::min(absl::Seconds(1), options_.say_every);
    absl::Time ask = SteadyNow();
    bool is_busy = false;
    DropEnded();
    while (!left_.empty()) {
      if (options_.hurried != nullptr && options_.hurried()) return;
      if (options_.busy != nullptr && SteadyNow() >= ask) {
        is_busy = options_.busy(left_);
        if (is_busy) deadline = SteadyNow() + options_.grace;
        ask = SteadyNow() + options_.ask_every;
      }
      if (!is_busy && SteadyNow() >= deadline) return;
      if (options_.waits != nullptr && SteadyNow() >= say) {
        options_.waits(
            left_, is_busy ? absl::InfiniteDuration() : deadline - SteadyNow());
        say = SteadyNow() + options_.say_every;
      }
      absl::SleepFor(absl::Milliseconds(10));
      DropEnded();
    }
  }

  void WaitAfterKill() {
    const absl::Time deadline = SteadyNow() + options_.after;
    DropEnded();
    while (!left_.empty() && SteadyNow() < deadline) {
      absl::SleepFor(absl::Milliseconds(10));
      DropEnded();
    }
  }

  EndOutcome Finish() {
    for (const ProcessId& process : left_) {
      outcome_.left.push_back(
          {.process = process, .why = "killed, but the kernel holds it"});
    }
    return std::move(outcome_);
  }

 private:
  void DropEnded() {
    left_.erase(std::remove_if(left_.begin(), left_.end(),
                               [](const ProcessId& process) {
                                 Reap(process);
                                 return !IsRunning(process);
                               }),
                left_.end());
  }

  const EndOptions& options_;
  std::vector<ProcessId> left_;
  EndOutcome outcome_;
};

}  // namespace

absl::StatusOr<ProcessId> StartDaemon(const DaemonOptions& options) {
  const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null.get() < 0) return SystemError("open /dev/null", errno);
  const Fd log(open(options.log_file.c_str(),
                    O_WRONLY | O_CREAT | (options.append ? 0 : O_TRUNC) |
                        O_APPEND | O_CLOEXEC,
                    0644));
  if (log.get() < 0) {
    return SystemError(absl::StrCat("open ", options.log_file), errno);
  }
  ASSIGN_OR_RETURN(const pid_t pid,
                   Spawn(options.command,
                         {.in = null.get(), .out = log.get(), .err = log.get()},
                         /*own_session=*/true));
  return Identify(pid);
}

void Reap(const ProcessId& process) { waitpid(process.pid, nullptr, WNOHANG); }

EndOutcome EndProcesses(const std::vector<ProcessId>& processes,
                        const EndOptions& options) {
  Ending ending(processes, options);
  ending.Signal(SIGTERM);
  ending.WaitGrace();
  ending.Signal(SIGKILL);
  ending.WaitAfterKill();
  return ending.Finish();
}

absl::StatusOr<FilterOutcome> RunToEnd(const FilterOptions& options) {
  ASSIGN_OR_RETURN(const Fd in, MemoryFile(options.input));
  ASSIGN_OR_RETURN(const Fd out, MemoryFile(""));
  ASSIGN_OR_RETURN(const Fd err, MemoryFile(""));
  ASSIGN_OR_RETURN(
      const pid_t pid,
      Spawn(options.command,
            {.in = in.get(),
             .out = out.get(),
             .err = options.shows_errors ? STDERR_FILENO : err.get()},
            /*own_session=*/false));
  int status = 0;
  const bool asks = options.keep_going != nullptr;
  while (true) {
    const pid_t ended = waitpid(pid, &status, asks ? WNOHANG : 0);
    if (ended == pid) break;
    if (ended < 0 && errno != EINTR) return SystemError("waitpid", errno);
    if (!asks) continue;
    if (!options.keep_going()) {
      EndProcesses({Identify(pid)}, {.grace = absl::Seconds(2)});
      return absl::CancelledError(
          absl::StrCat(options.command[0], " was ended before its end"));
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
  return FilterOutcome{
      .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
      .out = ReadAll(out),
      .err = ReadAll(err)};
}

absl::StatusOr<std::string> RunFilter(const FilterOptions& options) {
  ASSIGN_OR_RETURN(FilterOutcome outcome, RunToEnd(options));
  if (outcome.exit_code == 0) return std::move(outcome.out);
  std::istringstream said(outcome.err);
  const std::string how =
      outcome.exit_code > 0
          ? absl::StrCat("exited with ", outcome.exit_code)
          : absl::StrCat("was ended by signal ", -outcome.exit_code);
  return absl::AbortedError(
      absl::StrCat(options.command[0], " ", how, Tail(said, 5)));
}

std::string LogTail(const std::string& file, int lines) {
  std::ifstream in(file);
  return Tail(in, lines);
}

}  // namespace troupe
