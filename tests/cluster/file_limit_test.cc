// Daemons that are started with few files allowed take as many as they may, and
// the scheduler says where that is not enough.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/troupe_program.h"

namespace troupe {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// As a shell starts a daemon after `ulimit`; stderr goes to stdout.
std::vector<std::string> Limited(const std::string& limits,
                                 const std::string& command) {
  return {"/bin/sh", "-c", absl::StrCat(limits, "; exec ", command, " 2>&1")};
}

std::string LimitsOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/limits"));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class FileLimitsTest : public testing::Test {
 protected:
  std::string State(const std::string& name) const {
    return std::filesystem::path(testing::TempDir()) / name;
  }
};

TEST_F(FileLimitsTest, DaemonsTakeAsManyAsTheyMay) {
  TroupeProgram scheduler(
      Limited("ulimit -Sn 200; ulimit -Hn 18000",
              absl::StrCat(kScheduler, " --insecure --state ", State("many"))));
  EXPECT_NE(scheduler.WaitForLine("grpc "), "");
  EXPECT_THAT(LimitsOf(scheduler.pid()),
              ContainsRegex("Max open files +18000 +18000 "));
  scheduler.Signal(SIGTERM);
  EXPECT_THAT(scheduler.Wait().out, Not(HasSubstr("workers can join")));
  // It says what device it has before it looks for its scheduler.
  TroupeProgram worker(
      Limited("ulimit -Sn 200; ulimit -Hn 4000",
              absl::StrCat(kWorker, " --insecure --scheduler 127.0.0.1:1")));
  EXPECT_NE(worker.WaitForLine("device memory"), "");
  EXPECT_THAT(LimitsOf(worker.pid()),
              ContainsRegex("Max open files +4000 +4000 "));
}

TEST_F(FileLimitsTest, ASchedulerSaysHowManyWorkersCanJoin) {
  TroupeProgram scheduler(
      Limited("ulimit -n 300",
              absl::StrCat(kScheduler, " --insecure --state ", State("few"))));
  EXPECT_NE(scheduler.WaitForLine("grpc "), "");
  scheduler.Signal(SIGTERM);
  const Outcome outcome = scheduler.Wait();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out,
              ContainsRegex("may open 300 files.*about [0-9]+ workers can "
                            "join; for more, raise the hard limit"));
}

}  // namespace
}  // namespace troupe
