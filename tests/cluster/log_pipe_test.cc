// Daemons whose stderr is a pipe that nobody reads serve on, and end when they
// are asked to.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_test_base.h"
#include "tests/cluster/troupe_program.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// With the smallest pipe that there is, full, for its stderr.
class SilencedDaemon {
 public:
  explicit SilencedDaemon(const std::string& command)
      : pipe_(Full()), program_(Shell(command)) {}
  ~SilencedDaemon() {
    for (const int end : pipe_) close(end);
  }

  TroupeProgram& program() { return program_; }

  // Reads its stderr until it has said this.
  void ReadUntil(const std::string& words) const {
    std::string all;
    char some[4096];
    while (all.find(words) == std::string::npos) {
      const ssize_t bytes = read(pipe_[0], some, sizeof(some));
      ASSERT_GT(bytes, 0) << all;
      all.append(some, static_cast<size_t>(bytes));
    }
  }

 private:
  static std::vector<int> Full() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    EXPECT_GT(fcntl(ends[1], F_SETPIPE_SZ, 4096), 0);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    const std::string page(4096, '#');
    while (write(ends[1], page.data(), page.size()) > 0) {
    }
    fcntl(ends[1], F_SETFL, 0);
    return {ends[0], ends[1]};
  }
  std::vector<std::string> Shell(const std::string& command) const {
    return {"/bin/sh", "-c",
            absl::StrCat("exec ", command, " 2>/proc/", getpid(), "/fd/",
                         pipe_[1])};
  }

  const std::vector<int> pipe_;
  TroupeProgram program_;
};

class LogPipeTest : public ClusterTestBase {};

TEST_F(LogPipeTest, DaemonsServeOnWhenNobodyReadsTheirLog) {
  SilencedDaemon scheduler(
      absl::StrCat(kScheduler, " --insecure --state ", dir(), "/silenced"));
  const std::string line = scheduler.program().WaitForLine("grpc ");
  ASSERT_THAT(line, HasSubstr("grpc "));
  const std::string address = line.substr(line.find(' ') + 1);
  SilencedDaemon worker(absl::StrCat(kWorker, " --insecure --threads ",
                                     kThreads, " --name ada --scheduler ",
                                     address));
  Outcome workers;
  do {
    workers =
        RunProgram({kTroupe, "workers", "--insecure", "--scheduler", address});
    ASSERT_EQ(workers.code, 0) << workers.err;
  } while (workers.out.find("ada") == std::string::npos);

  // What was said meanwhile is there for a reader at last.
  scheduler.ReadUntil("ada registered from");
  worker.program().Signal(SIGTERM);
  EXPECT_EQ(worker.program().Wait().code, 0);
  scheduler.program().Signal(SIGTERM);
  EXPECT_EQ(scheduler.program().Wait().code, 0);
}

}  // namespace
}  // namespace troupe
