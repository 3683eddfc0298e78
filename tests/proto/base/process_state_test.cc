#include "proto/base/process_state.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

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

// As for a moment of every process that is killed: its first thread has gone,
// and another still holds what the process holds.
TEST(ProcessState, AZombieWithAThreadThatLivesRuns) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const pthread_t first = pthread_self();
    std::thread([first, ready] {
      pthread_join(first, nullptr);
      if (write(ready[1], "x", 1) != 1) _exit(1);
      while (true) pause();
    }).detach();
    syscall(SYS_exit, 0);  // of this thread alone
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(IsRunning(child));
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(IsRunning(child));
  close(ready[0]);
  close(ready[1]);
}

TEST(ProcessState, TheMachineHasAName) { EXPECT_NE(HostName(), ""); }

TEST(ProcessState, ChildrenShareTheMeaningOfIds) {
  const ProcessSpace space = ThisProcessSpace();
  EXPECT_EQ(space.host, HostName());
  EXPECT_NE(space.boot, "");
  EXPECT_NE(space.pids, 0u);
  const pid_t child = fork();
  if (child == 0) _exit(ThisProcessSpace() == space ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A child of ours starts one of its own, which says that it is ready and ends
// when its parent is killed: then nobody holds the pipe any more.
TEST(ProcessState, EndsWithItsParent) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const pid_t parent_of_child = getpid();
    if (fork() == 0) {
      if (EndWithParent(parent_of_child) && write(ready[1], "x", 1) == 1) {
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

// As where a container runs nothing else: there, in namespaces of its own, a
// child of ours is process 1, and starts one that is to end with it.
TEST(ProcessState, Process1IsAParentLikeOthers) {
  constexpr int kNoNamespaces = 77;
  const pid_t container = fork();
  if (container == 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) _exit(kNoNamespaces);
    int status = 1;
    const pid_t first = fork();
    if (first == 0) {
      const pid_t second = fork();
      if (second == 0) _exit(getppid() == 1 && EndWithParent(1) ? 0 : 1);
      waitpid(second, &status, 0);
      _exit(WEXITSTATUS(status));
    }
    waitpid(first, &status, 0);
    _exit(WEXITSTATUS(status));
  }
  int status = 1;
  ASSERT_EQ(waitpid(container, &status, 0), container);
  if (WEXITSTATUS(status) == kNoNamespaces) {
    GTEST_SKIP() << "this system lets nobody have namespaces";
  }
  EXPECT_EQ(status, 0);
}

TEST(ProcessState, WhatIsNoParentIsGone) {
  int said[2];
  ASSERT_EQ(pipe(said), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const pid_t first = getpid();
    if (fork() == 0) {
      while (getppid() == first) usleep(1000);
      const bool runs = EndWithParent(first);
      _exit(write(said[1], &runs, sizeof(runs)) == sizeof(runs) ? 0 : 1);
    }
    _exit(0);
  }
  close(said[1]);
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  bool runs = true;
  ASSERT_EQ(read(said[0], &runs, sizeof(runs)), 1);
  EXPECT_FALSE(runs);
  close(said[0]);
}

}  // namespace
}  // namespace troupe
