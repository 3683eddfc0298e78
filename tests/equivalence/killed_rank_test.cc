// A rank that is killed while it trains from a disk: the next rank to use the
// directory removes what it left. A test of its own, as it forks: nothing may
// have made threads before.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

JobSpec Job(int steps) {
  JobSpec job = SmallJob();
  job.mutable_memory()->set_optimizer("nvme");
  job.mutable_training()->set_steps(steps);
  return job;
}

// Trains without end; tells of each step.
void TrainUntilKilled(const std::string& nvme, int told) {
  Train(Job(1'000'000), {.nvme = nvme,
                         .on_step = [&](int, const StepRecord&,
                                        const std::vector<TrainLoop*>&) {
                           CHECK_EQ(write(told, "x", 1), 1);
                         }});
  _exit(1);  // does not come here
}

TEST(KilledRank, ItsSpillFileIsRemovedByTheNext) {
  const TempDir nvme;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) TrainUntilKilled(nvme.path(), ends[1]);
  for (int step = 0; step < 3; ++step) {
    char byte;
    ASSERT_EQ(read(ends[0], &byte, 1), 1);
  }
  // In the midst of a step, most of which is moves.
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(std::filesystem::is_empty(nvme.path()));
  const TrainingRun next = Train(Job(3), {.nvme = nvme.path()});
  EXPECT_TRUE(next.status().ok()) << next.status();
  EXPECT_TRUE(std::filesystem::is_empty(nvme.path()));
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace troupe
