#include "clients/cpp/process_state.h"

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

}  // namespace
}  // namespace troupe
