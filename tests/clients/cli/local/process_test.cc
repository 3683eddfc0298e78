#include "clients/cli/local/process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"

namespace troupe {
namespace {

std::string TempFile(const std::string& name) {
  return std::filesystem::path(testing::TempDir()) / name;
}

// A shell that says it is ready, so that the tests need no sleeps.
ProcessId StartShell(const std::string& script, const std::string& log) {
  const ProcessId process =
      StartDaemon({.command = {"/bin/sh", "-c", script}, .log_file = log})
          .value();
  while (LogTail(log, 1) != "\n  ready") {
    EXPECT_TRUE(IsRunning(process));
    usleep(1000);
  }
  return process;
}

TEST(Daemon, HasASessionOfItsOwnAndALog) {
  const std::string log = TempFile("daemon.log");
  const ProcessId process = StartShell("echo one; echo ready; cat", log);
  EXPECT_TRUE(IsRunning(process) || LogTail(log, 1) == "\n  ready");
  ASSERT_EQ(waitpid(process.pid, nullptr, 0), process.pid)
      << "with no stdin, cat ends";
  EXPECT_EQ(LogTail(log, 5), "\n  one\n  ready");
  EXPECT_FALSE(IsRunning(process));
}

TEST(EndProcesses, AsksFirst) {
  const std::string log = TempFile("asked.log");
  const ProcessId process = StartShell(
      "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep "
      "0.01; done",
      log);
  EXPECT_EQ(getsid(process.pid), process.pid);
  EXPECT_TRUE(
      EndProcesses({process}, {.grace = absl::Seconds(10)}).killed.empty());
  EXPECT_FALSE(IsRunning(process));
  EXPECT_EQ(LogTail(log, 1), "\n  bye");
}

TEST(EndProcesses, KillsWhatStays) {
  const ProcessId process =
      StartShell("trap '' TERM; echo ready; while :; do sleep 0.01; done",
                 TempFile("stays.log"));
  int said = 0;
  const EndOutcome outcome = EndProcesses(
      {process},
      {.grace = absl::Milliseconds(100),
       .say_every = absl::Milliseconds(10),
       .waits = [&](const std::vector<ProcessId>& left, absl::Duration grace) {
         EXPECT_EQ(left, std::vector<ProcessId>{process});
         EXPECT_LE(grace, absl::Milliseconds(100));
         ++said;
       }});
  EXPECT_EQ(outcome.killed, std::vector<ProcessId>{process});
  EXPECT_TRUE(outcome.left.empty());
  EXPECT_GT(said, 0);
  EXPECT_FALSE(IsRunning(process));
}

// It would be killed at once otherwise.
TEST(EndProcesses, WaitsForWhatIsBusy) {
  const std::string log = TempFile("busy.log");
  const std::string saved = TempFile("saved");
  const ProcessId process =
      StartShell("trap : TERM; echo ready; while [ ! -e '" + saved +
                     "' ]; do sleep 0.01; done; echo bye",
                 log);
  int asked = 0;
  const EndOutcome outcome =
      EndProcesses({process}, {.ask_every = absl::Milliseconds(1),
                               .busy = [&](const std::vector<ProcessId>& left) {
                                 EXPECT_EQ(left[0], process);
                                 if (++asked == 3) std::ofstream(saved) << "it";
                                 return true;
                               }});
  EXPECT_TRUE(outcome.killed.empty());
  EXPECT_EQ(LogTail(log, 1), "\n  bye");
}

TEST(EndProcesses, KillsWhatWasBusyForAGraceAfterIt) {
  const ProcessId process =
      StartShell("trap '' TERM; echo ready; while :; do sleep 0.01; done",
                 TempFile("was_busy.log"));
  int asked = 0;
  bool endless = false;
  const EndOutcome outcome = EndProcesses(
      {process},
      {.grace = absl::Milliseconds(50),
       .say_every = absl::Milliseconds(1),
       .ask_every = absl::Milliseconds(1),
       .busy = [&](const std::vector<ProcessId>&) { return ++asked < 5; },
       .waits =
           [&](const std::vector<ProcessId>&, absl::Duration grace) {
             endless = endless || grace == absl::InfiniteDuration();
           }});
  EXPECT_EQ(outcome.killed, std::vector<ProcessId>{process});
  EXPECT_GE(asked, 5);
  EXPECT_TRUE(endless);
}

TEST(EndProcesses, DoesNotWaitWhereItIsHurried) {
  const ProcessId process =
      StartShell("trap '' TERM; echo ready; while :; do sleep 0.01; done",
                 TempFile("hurried.log"));
  int looked = 0;
  const EndOutcome outcome = EndProcesses(
      {process}, {.grace = absl::InfiniteDuration(),
                  .busy = [](const std::vector<ProcessId>&) { return true; },
                  .hurried = [&] { return ++looked > 3; }});
  EXPECT_EQ(outcome.killed, std::vector<ProcessId>{process});
}

TEST(EndProcesses, LeavesStrangersAlone) {
  // Our own id with another start: the process that had it before is gone.
  const ProcessId stranger{.pid = getpid(),
                           .start_ticks = Identify(getpid()).start_ticks - 1};
  const EndOutcome outcome =
      EndProcesses({stranger}, {.grace = absl::Seconds(10)});
  EXPECT_TRUE(outcome.killed.empty());
  EXPECT_TRUE(outcome.left.empty());
}

TEST(EndProcesses, SaysWhatItMayNotEnd) {
  const ProcessId self = Identify(getpid());
  const EndOutcome outcome = EndProcesses(
      {self}, {.grace = absl::InfiniteDuration(), .signal = [](pid_t, int) {
                 errno = EPERM;
                 return -1;
               }});
  EXPECT_TRUE(outcome.killed.empty());
  ASSERT_EQ(outcome.left.size(), 1u);
  EXPECT_EQ(outcome.left[0].process, self);
  EXPECT_EQ(outcome.left[0].why, "Operation not permitted");
  EXPECT_TRUE(outcome.left[0].refused);
}

// As a process that waits for a disk that does not answer.
TEST(EndProcesses, WaitsNoLongerForWhatIsKilledInVain) {
  const ProcessId self = Identify(getpid());
  const EndOutcome outcome =
      EndProcesses({self}, {.grace = absl::Milliseconds(1),
                            .after = absl::Milliseconds(20),
                            .signal = [](pid_t, int) { return 0; }});
  ASSERT_EQ(outcome.left.size(), 1u);
  EXPECT_EQ(outcome.left[0].why, "killed, but the kernel holds it");
  EXPECT_FALSE(outcome.left[0].refused);
}

TEST(StartDaemon, MayGoOnWithALog) {
  const std::string log = TempFile("appended.log");
  for (const bool append : {false, true, true}) {
    const ProcessId process = StartDaemon({.command = {"/bin/echo", "again"},
                                           .log_file = log,
                                           .append = append})
                                  .value();
    ASSERT_EQ(waitpid(process.pid, nullptr, 0), process.pid);
  }
  EXPECT_EQ(LogTail(log, 9), "\n  again\n  again\n  again");
}

TEST(StartDaemon, SaysWhatCannotBeStarted) {
  EXPECT_FALSE(StartDaemon({.command = {"/no/such/program"},
                            .log_file = TempFile("none.log")})
                   .ok());
  EXPECT_FALSE(
      StartDaemon({.command = {"/bin/true"}, .log_file = "/no/such/log"}).ok());
}

TEST(RunToEnd, TellsHowItEnded) {
  const auto failed =
      RunToEnd({.command = {"/bin/sh", "-c", "cat; echo why >&2; exit 3"},
                .input = "in"});
  ASSERT_TRUE(failed.ok()) << failed.status();
  EXPECT_EQ(failed->exit_code, 3);
  EXPECT_EQ(failed->out, "in");
  EXPECT_EQ(failed->err, "why\n");
  EXPECT_EQ(RunToEnd({.command = {"/bin/sh", "-c", "kill -9 $$"}})->exit_code,
            -9);
  EXPECT_FALSE(RunToEnd({.command = {"/no/such/program"}}).ok());
}

TEST(RunFilter, HandsInputThrough) {
  std::string big(1 << 20, 'x');
  big[77] = '\0';
  EXPECT_EQ(RunFilter({.command = {"/bin/cat"}, .input = big}).value(), big);
}

TEST(RunFilter, EndsWhereNobodyWaits) {
  int asked = 0;
  const absl::Status ended =
      RunFilter({.command = {"/bin/sleep", "1000"},
                 .input = "",
                 .keep_going = [&] { return ++asked < 3; }})
          .status();
  EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
  EXPECT_EQ(RunFilter({.command = {"/bin/cat"},
                       .input = "text",
                       .keep_going = [] { return true; }})
                .value(),
            "text");
}

TEST(RunFilter, SaysWhatWentWrong) {
  const absl::Status failed =
      RunFilter({.command = {"/bin/sh", "-c", "echo why >&2; exit 3"}})
          .status();
  EXPECT_EQ(failed.message(), "/bin/sh exited with 3\n  why");
  const absl::Status killed =
      RunFilter({.command = {"/bin/sh", "-c", "kill -9 $$"}}).status();
  EXPECT_EQ(killed.message(), "/bin/sh was ended by signal 9");
}

}  // namespace
}  // namespace troupe
