#include "worker/doctor/bounded.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

// Between the two processes: "<state>\0<text>\0<advice>\0".
std::string Encode(const Finding& finding) {
  std::string words = absl::StrCat(static_cast<int>(finding.state));
  for (const std::string& word : {finding.text, finding.advice}) {
    words.push_back('\0');
    words.append(word);
  }
  words.push_back('\0');
  return words;
}

std::optional<Finding> Decode(const std::string& said) {
  const std::vector<std::string> words = absl::StrSplit(said, '\0');
  if (words.size() != 4 || words[0].size() != 1) return std::nullopt;
  return Finding{.state = static_cast<FindingState>(words[0][0] - '0'),
                 .text = words[1],
                 .advice = words[2]};
}

void WriteAll(int fd, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno != EINTR) return;
    if (n > 0) done += n;
  }
}

// What comes until the other end closes; nothing where that takes longer.
std::optional<std::string> ReadAll(int fd, absl::Time deadline) {
  std::string bytes;
  while (true) {
    const int64_t left = absl::ToInt64Milliseconds(deadline - SteadyNow());
    pollfd ready = {.fd = fd, .events = POLLIN};
    const int count =
        poll(&ready, 1, static_cast<int>(std::max<int64_t>(left, 0)));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    char buffer[4096];
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return bytes;
    bytes.append(buffer, n);
  }
}

Finding CannotStart(const char* what) {
  return {.state = FindingState::kFail,
          .text = absl::StrCat("the check cannot start, ", what, ": ",
                               std::strerror(errno)),
          .advice = "raise ulimit -u and ulimit -n"};
}

Finding Crashed(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const char* name =
      WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : nullptr;
  return {.state = FindingState::kFail,
          .text = name == nullptr
                      ? "the check ended without an answer"
                      : absl::StrCat("the check crashed (SIG", name, ")")};
}

}  // namespace

Finding RunBounded(absl::FunctionRef<Finding()> check, absl::Duration limit) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return CannotStart("pipe");
  const pid_t child = fork();
  if (child == 0) {
    WriteAll(ends[1], Encode(check()));
    _exit(0);  // neither buffers nor destructors of the parent
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return CannotStart("fork");
  }
  const std::optional<std::string> said = ReadAll(ends[0], SteadyNow() + limit);
  close(ends[0]);
  if (!said.has_value()) {
    kill(child, SIGKILL);
    // It may hang in the kernel; then it is left to init.
    waitpid(child, nullptr, WNOHANG);
    return {
        .state = FindingState::kFail,
        .text = absl::StrCat("no answer within ", absl::FormatDuration(limit))};
  }
  const std::optional<Finding> finding = Decode(*said);
  if (!finding.has_value()) return Crashed(child);
  waitpid(child, nullptr, 0);
  return *finding;
}

}  // namespace troupe
