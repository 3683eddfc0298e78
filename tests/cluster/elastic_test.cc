// Jobs with `elastic`, with real daemons: fewer workers than ranks, and more
// again.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_test_base.h"

namespace troupe {
namespace {

// Asks again and again which job holds the directory of a job's checkpoints: a
// job that takes hold of it waits for the answer, up to ten seconds.
class LongQuestion {
 public:
  // Once nobody holds the directory, and some have.
  explicit LongQuestion(const std::string& directory) {
    const std::string path = directory + "/.lock";
    while (std::filesystem::exists(path)) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    lock_ = open(path.c_str(), O_RDWR | O_CREAT, 0644);
    EXPECT_EQ(flock(lock_, LOCK_SH | LOCK_NB), 0);
    opened_ = inotify_init();
    EXPECT_GE(inotify_add_watch(opened_, path.c_str(), IN_OPEN), 0);
  }
  ~LongQuestion() {
    close(lock_);
    close(opened_);
  }
  // Until somebody waits.
  void AwaitAnother() const {
    pollfd event = {.fd = opened_, .events = POLLIN};
    EXPECT_EQ(poll(&event, 1, /*milliseconds*/ 30'000), 1);
  }

 private:
  int lock_ = -1;
  int opened_ = -1;
};

class ElasticTest : public ClusterTestBase {
 protected:
  std::vector<std::string> Settings(std::vector<std::string> more) const {
    more.insert(more.end(),
                {"training.global_batch_size=12", "training.micro_batch_size=1",
                 "optimizer.lr=1e-5"});
    return more;
  }
  // For as long as it is let.
  std::unique_ptr<TroupeProgram> Start(std::vector<std::string> more,
                                       bool elastic = true) {
    more.push_back(kEndless);
    more.insert(more.end(), {"recovery.every=1",
                             "checkpoint.directory=" + dir() + "/saved"});
    if (elastic) more.push_back("elastic.min_workers=1");
    std::vector<std::string> command = SubmitCommand(Settings(more));
    command.push_back("--watch");
    auto program = std::make_unique<TroupeProgram>(Command(command));
    EXPECT_NE(program->WaitForLine("step 3/"), "");
    return program;
  }
  void KillTheOneOfRank(int rank) {
    const std::string victim = Describe(1)["workers"][rank];
    Kill(victim);
  }
  void AwaitLost(const std::string& worker) {
    const auto is_lost = [&] {
      const auto all =
          nlohmann::json::parse(Troupe({"workers", "--json"}).out)["workers"];
      return std::any_of(all.begin(), all.end(), [&](const auto& each) {
        return each["description"]["name"] == worker && each["state"] == "LOST";
      });
    };
    while (!is_lost()) absl::SleepFor(absl::Milliseconds(10));
  }
  // Kills one, and returns the step that it was in.
  int LoseOne(TroupeProgram& job) {
    KillTheOneOfRank(1);
    return NumberAfter("was lost in step ",
                       job.WaitForLine("was lost in step "));
  }
  static int NumberAfter(const std::string& words, const std::string& text) {
    const size_t found = text.find(words);
    EXPECT_NE(found, std::string::npos) << text;
    return found == std::string::npos
               ? -1
               : std::atoi(text.c_str() + found + words.size());
  }
  // It ends by itself, soon.
  static void AwaitEndOf(pid_t process) {
    while (kill(process, 0) == 0) absl::SleepFor(absl::Milliseconds(20));
  }
  // It goes on for some steps, and is ended.
  Outcome End(TroupeProgram& job) {
    CancelSomeStepsOn(1);
    return job.Wait();
  }
  // Each step once, and to what f32 sums in another order give as one worker
  // does them that nothing happens to.
  void ExpectAQuietRuns(const std::vector<std::string>& model = {}) {
    const nlohmann::json described = Describe(1);
    ASSERT_EQ(described["state"], "CANCELLED") << described["reason"];
    const nlohmann::json& steps = described["steps"];
    ASSERT_EQ(described["steps_done"], steps.size());
    std::vector<std::string> one = model;
    one.insert(one.end(), {"parallelism.data=1",
                           absl::StrCat("training.steps=", steps.size())});
    const std::vector<double> quiet = Losses(Settings(one));
    ASSERT_EQ(quiet.size(), steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      ASSERT_EQ(steps[i]["step"].get<size_t>(), i + 1);
      const double loss = steps[i]["loss"].get<double>();
      ASSERT_LE(std::abs(loss - quiet[i]), 1e-5 * std::abs(quiet[i]))
          << "step " << i + 1;
    }
  }
};

TEST_F(ElasticTest, GoesOnWithFewerAndWithMoreAgain) {
  Up(4);
  const std::vector<std::string> plan = {"parallelism.data=4",
                                         "parallelism.zero=3"};
  const auto job = Start(plan);
  KillTheOneOfRank(1);
  EXPECT_NE(job->WaitForLine("goes on with 3 workers after "), "");
  const Outcome up = Troupe({"up", "--workers", "4", "--threads", kThreads});
  ASSERT_EQ(up.code, 0) << up.err;
  EXPECT_NE(job->WaitForLine("goes on with 4 workers after "), "");
  End(*job);
  ExpectAQuietRuns();
}

// Replicas run unlike numbers of micro-batches; the two that are left split the
// batch evenly, and three run the job's numbers again.
// Of four ranks with an expert each, three have all four of them, two have two.
TEST_F(ElasticTest, ExpertsGoOnWithFewerAndWithMoreAgain) {
  Up(4);
  const auto job = Start(
      WithExperts({"parallelism.data=4", "parallelism.expert=4"}));
  KillTheOneOfRank(1);
  EXPECT_NE(job->WaitForLine("goes on with 3 workers after "), "");
  KillTheOneOfRank(1);
  EXPECT_NE(job->WaitForLine("goes on with 2 workers after "), "");
  const Outcome up = Troupe({"up", "--workers", "4", "--threads", kThreads});
  ASSERT_EQ(up.code, 0) << up.err;
  EXPECT_NE(job->WaitForLine("goes on with 4 workers after "), "");
  End(*job);
  ExpectAQuietRuns(WithExperts({}));
}

TEST_F(ElasticTest, UnevenReplicasGoOnWithFewerAndWithMoreAgain) {
  Up(3);
  const std::vector<std::string> plan = {"parallelism.data=3",
                                         "parallelism.micro_batches=[6, 4, 2]",
                                         "parallelism.zero=1"};
  const auto job = Start(plan);
  KillTheOneOfRank(1);
  EXPECT_NE(job->WaitForLine("goes on with 2 workers after "), "");
  const Outcome up = Troupe({"up", "--workers", "3", "--threads", kThreads});
  ASSERT_EQ(up.code, 0) << up.err;
  EXPECT_NE(job->WaitForLine("goes on with 3 workers after "), "");
  End(*job);
  ExpectAQuietRuns();
}

TEST_F(ElasticTest, APipelineGoesOnWithFewerStages) {
  Up(3);
  const std::vector<std::string> plan = {"parallelism.data=1",
                                         "parallelism.pipeline=3"};
  const auto job = Start(plan);
  KillTheOneOfRank(2);
  EXPECT_NE(job->WaitForLine("goes on with 2 workers after "), "");
  KillTheOneOfRank(0);
  EXPECT_NE(job->WaitForLine("goes on with 1 worker after "), "");
  End(*job);
  ExpectAQuietRuns();
}

// It waits for a worker in a lost one's place, and what is left of its state is
// in the memory of those that are asked to end: copies are of the step before
// the one that was lost, or of the one before that.
TEST_F(ElasticTest, AWorkerThatLeavesWhileTheJobWaitsHasItsCopiesSaved) {
  Up(3);
  const std::vector<std::string> plan = {"parallelism.data=3",
                                         "parallelism.zero=3"};
  const auto job = Start(plan, /*elastic=*/false);
  const std::string leaving = Describe(1)["workers"][0];
  const int lost = LoseOne(*job);
  const pid_t process = WorkerPid(leaving);
  ASSERT_EQ(kill(process, SIGTERM), 0);
  const std::string queued = job->WaitForLine("goes on with other workers");
  EXPECT_GE(NumberAfter("from step ", queued), lost - 2) << queued;
  AwaitEndOf(process);
  const Outcome up = Troupe({"up", "--workers", "3", "--threads", kThreads});
  ASSERT_EQ(up.code, 0) << up.err;
  EXPECT_NE(job->WaitForLine("goes on with 3 workers after "), "");
  End(*job);
  ExpectAQuietRuns();
}

TEST_F(ElasticTest, AClusterThatEndsWhileTheJobWaitsHasItsCopiesSaved) {
  Up(3);
  const std::vector<std::string> plan = {"parallelism.data=3",
                                         "parallelism.zero=3"};
  const auto job = Start(plan, /*elastic=*/false);
  const int lost = LoseOne(*job);
  const Outcome down = Troupe({"down"});
  ASSERT_EQ(down.code, 0) << down.err;
  Up(3);
  CancelSomeStepsOn(1);
  const Outcome outcome = Watch(1);
  EXPECT_GE(NumberAfter("goes on with other workers from step ", outcome.out),
            lost - 2)
      << outcome.out;
  ExpectAQuietRuns();
}

// Of the copies of two ranks, which are with each other, nothing is left; but
// all are written by then.
TEST_F(ElasticTest, ALossDuringTheCommitOfCopiesCostsNoStep) {
  Up(4);
  const std::vector<std::string> plan = {"parallelism.data=4",
                                         "parallelism.zero=3"};
  const auto job = Start(plan);
  const std::string other = Describe(1)["workers"][3];
  KillTheOneOfRank(1);
  {
    const LongQuestion question(dir() + "/saved");
    question.AwaitAnother();
    Kill(other);
    AwaitLost(other);
  }
  EXPECT_NE(job->WaitForLine("goes on with 2 workers after "), "");
  const Outcome outcome = End(*job);
  EXPECT_FALSE(absl::StrContains(outcome.out, "neither copies nor"))
      << outcome.out;
  ExpectAQuietRuns();
}

// Asked to end: nothing runs again, and the job goes on without it.
TEST_F(ElasticTest, AWorkerThatLeavesCostsNoStep) {
  Up(3);
  const std::vector<std::string> plan = {"parallelism.data=3"};
  const auto job = Start(plan);
  const std::string leaving = Describe(1)["workers"][0];
  ASSERT_EQ(kill(WorkerPid(leaving), SIGTERM), 0);
  const std::string line = job->WaitForLine("goes on with 2 workers after ");
  EXPECT_NE(line, "");
  const Outcome outcome = End(*job);
  EXPECT_EQ(outcome.out.find("was lost"), std::string::npos) << outcome.out;
  ExpectAQuietRuns();
}

}  // namespace
}  // namespace troupe
