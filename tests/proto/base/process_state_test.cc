#include "proto/base/process_state.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(ProcessState, KnowsTheLiving) {
  const ProcessId self = Identify(getpid());
  EXPECT_GT(self.start_ticks, 0);
  EXPECT_TRUE(IsRunning(getpid()));
  EXPECT_TRUE(IsRunning(self));
  EXPECT_FALSE(IsRunning(ProcessId{.pid = getpid(), .start_ticks = 1}))
      << "another process that had this id";
}

TEST(ProcessState, AZombieIsDead) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(IsRunning(child));
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(IsRunning(child));
  EXPECT_EQ(Identify(child).start_ticks, 0);
  EXPECT_FALSE(IsRunning(0));
  EXPECT_FALSE(IsRunning(ProcessId()));
}

TEST(ProcessState, TheMachineHasAName) { EXPECT_NE(HostName(), ""); }

// A child of ours starts one of its own, which says that it is ready and ends
// when its parent is killed: then nobody holds the pipe any more.
TEST(ProcessState, EndsWithItsParent) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    if (fork() == 0) {
      if (EndWithParent() && write(ready[1], "x", 1) == 1) {
        while (true) pause();
      }
      _exit(1);
    }
    while (true) pause();
  }
  close(ready[1]);
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_EQ(kill(parent, SIGKILL), 0);
  EXPECT_EQ(read(ready[0], &byte, 1), 0);
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  close(ready[0]);
}

}  // namespace
}  // namespace troupe
