// The scheduler dies (kill -9), with real daemons: ranks train on, and the one
// that is started in its place takes them back.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
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

using Json = nlohmann::json;

class RestartTest : public ClusterTestBase {
 protected:
  // Until the job is described so.
  Json AwaitJob(int job, const std::function<bool(const Json&)>& is_so) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    Json described = Describe(job);
    while (!is_so(described) && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(10));
      described = Describe(job);
    }
    EXPECT_TRUE(is_so(described))
        << described["state"] << " " << described["reason"];
    return described;
  }
  void AwaitStep(int job, int64_t step) {
    AwaitJob(job, [=](const Json& described) {
      return described["steps_done"] >= step || described["state"] == "FAILED";
    });
  }

  // Each step once, from the first to the last; of each its loss.
  static std::vector<double> LossesOf(const Json& described) {
    std::vector<double> losses;
    for (const Json& step : described["steps"]) {
      losses.push_back(step["loss"].get<double>());
      EXPECT_EQ(step["step"], losses.size());
    }
    return losses;
  }

  // `troupe up` after KillScheduler, whose job's ranks come back.
  void Restart() {
    restarted_.push_back(absl::Now());
    Up(2);
  }

  // Whether the daemon's log says so, soon.
  bool Logged(const std::string& daemon, const std::string& text) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    while (absl::Now() < end) {
      std::stringstream log;
      log << std::ifstream(dir() + "/logs/" + daemon + ".log").rdbuf();
      if (absl::StrContains(log.str(), text)) return true;
      absl::SleepFor(absl::Milliseconds(20));
    }
    return false;
  }

  static bool SaysAdopted(const Json& event) {
    return absl::StrContains(event["text"].get<std::string>(),
                             "the scheduler restarted; adopted ");
  }
  // Until the last scheduler has taken the job's ranks back. (`troupe up`
  // returns when the workers are registered, which is before the job's ranks
  // are all adopted.)
  Json AwaitAdopted(int job) {
    return AwaitJob(job, [this](const Json& described) {
      const Json& events = described["events"];
      return std::count_if(events.begin(), events.end(), SaysAdopted) >=
             static_cast<int64_t>(restarted_.size());
    });
  }

  // Of each restart: prints how long it took from the start of `troupe up`
  // until all ranks were back, and what the job says.
  void ExpectAdopted(const Json& described) {
    size_t times = 0;
    for (const Json& event : described["events"]) {
      const std::string said = event["text"];
      // All that had not come to the job's end meanwhile.
      if (!SaysAdopted(event)) continue;
      ASSERT_LT(times, restarted_.size()) << described["events"];
      const int64_t unix_ms = event["unix_ms"];
      const absl::Duration took =
          absl::FromUnixMillis(unix_ms) - restarted_[times++];
      EXPECT_LT(took, absl::Seconds(20)) << said;
      std::printf("%s after troupe up: %s\n",
                  absl::FormatDuration(took).c_str(), said.c_str());
    }
    EXPECT_EQ(times, restarted_.size()) << described["events"];
  }

  // That the job has recovered from copies, and no attempt from elsewhere; how
  // many steps ran again, at most.
  static int StepsAgain(const Json& described) {
    int most = 0;
    int recovered = 0;
    for (const Json& event : described["events"]) {
      const std::string said = event["text"];
      if (absl::StrContains(said, "recover")) std::printf("%s\n", said.c_str());
      if (absl::StrContains(said, "recovering: attempt")) {
        EXPECT_TRUE(absl::StrContains(said, "from copies of step ")) << said;
      }
      if (!absl::StartsWith(said, "recovered")) continue;
      ++recovered;
      const size_t at = said.rfind(", ");
      int again = 0;
      if (absl::StrContains(said, " run again") &&
          std::sscanf(said.c_str() + at, ", %d run again", &again) == 1) {
        most = std::max(most, again);
      }
    }
    EXPECT_GT(recovered, 0) << described["events"];
    return most;
  }

  // Ends the job some steps later.
  void ExpectAQuietRuns(int job) {
    CancelSomeStepsOn(job);
    const Json described = Describe(job);
    const std::vector<double> losses = LossesOf(described);
    EXPECT_EQ(described["steps_done"], losses.size());
    EXPECT_EQ(losses, Losses({absl::StrCat("training.steps=", losses.size())}))
        << "not equal bit by bit";
  }
  void ExpectRecovers(int job) {
    AwaitJob(job, [](const Json& is) {
      for (const Json& event : is["events"]) {
        if (absl::StartsWith(event["text"].get<std::string>(), "recovered")) {
          return true;
        }
      }
      return false;
    });
    ExpectAQuietRuns(job);
    EXPECT_LE(StepsAgain(Describe(job)), 1);
  }

 private:
  std::vector<absl::Time> restarted_;
};

constexpr char kSteps[] = "training.steps=600";

TEST_F(RestartTest, AJobTrainsOnAndItsCurveIsThatOfAQuietRun) {
  Up(2);
  const int job = Submit({kEndless});
  for (const int64_t step : {50, 600}) {
    AwaitStep(job, step);
    Kill("scheduler");
    absl::SleepFor(absl::Milliseconds(300));
    Restart();
  }
  ExpectAdopted(AwaitAdopted(job));
  ExpectAQuietRuns(job);
}

// Long enough for the job to come to its end meanwhile: its last words wait.
TEST_F(RestartTest, AJobThatEndedWithoutASchedulerSucceeds) {
  Up(2);
  const std::vector<double> quiet = Losses({kSteps});
  const int job = Submit({kSteps});
  AwaitStep(job, 20);
  Kill("scheduler");
  absl::SleepFor(absl::Seconds(5));
  Up(2);
  EXPECT_EQ(Watch(job).code, 0);
  EXPECT_EQ(LossesOf(Describe(job)), quiet);
  EXPECT_EQ(Watch(Submit()).code, 0) << "its workers take the next one";
}

TEST_F(RestartTest, CheckpointsThatAreBeingWrittenAreCommitted) {
  Up(2);
  const std::vector<std::string> settings = {
      kSteps, "checkpoint.directory=" + dir() + "/saved", "checkpoint.every=2",
      "checkpoint.keep=3"};
  const int job = Submit(settings);
  for (const int64_t step : {30, 60, 90}) {
    AwaitStep(job, step);
    Kill("scheduler");
    absl::SleepFor(absl::Milliseconds(200));
    Restart();
  }
  EXPECT_EQ(Watch(job).code, 0);
  const Json described = Describe(job);
  EXPECT_EQ(LossesOf(described).size(), 600u);
  ExpectAdopted(described);
  std::map<int64_t, int> saved;
  for (const Json& event : described["events"]) {
    const std::string text = event["text"];
    int64_t step = 0;
    if (std::sscanf(text.c_str(), "checkpoint of step %ld", &step) == 1) {
      ++saved[step];
    }
  }
  EXPECT_EQ(saved.size(), 300u);
  for (const auto& [step, times] : saved) EXPECT_EQ(times, 1) << step;
  EXPECT_EQ(described["checkpoints"].size(), 3);
  const int next = Submit({"training.steps=602", "checkpoint.resume=latest",
                           "checkpoint.directory=" + dir() + "/saved"});
  EXPECT_EQ(Watch(next).code, 0) << "the last one is whole";
}

// One that waits, one that is being planned, and one that runs.
TEST_F(RestartTest, JobsInTheQueueAreThereForTheNextScheduler) {
  Up(2);
  const int running = Submit({kEndless});
  AwaitStep(running, 3);
  const int waiting = Submit();
  ASSERT_EQ(Troupe({"cancel", std::to_string(running)}).code, 0);
  // Its turn has come: it is in compilation, or starts just now.
  Kill("scheduler");
  Up(2);
  EXPECT_EQ(Describe(running)["state"], "CANCELLED");
  EXPECT_EQ(Watch(waiting).code, 0);
  EXPECT_EQ(LossesOf(Describe(waiting)).size(), 4u);
}

// Somebody starts the scheduler with an empty state: it knows no job, and ends
// none. The right one takes the ranks back.
TEST_F(RestartTest, ASchedulerOfAnotherClusterEndsNoRank) {
  Up(2);
  const int job = Submit({kEndless});
  AwaitStep(job, 20);
  const Json endpoints =
      Json::parse(std::ifstream(dir() + "/endpoints.json"), nullptr, false);
  Kill("scheduler");
  {
    const TroupeProgram foreign({kScheduler, "--state", dir() + "/foreign",
                                 "--listen", endpoints["grpc"], "--http",
                                 "127.0.0.1:0", "--certificates",
                                 dir() + "/trust/scheduler"});
    for (const char* worker : {"worker-0", "worker-1"}) {
      EXPECT_TRUE(Logged(worker, "and this scheduler is of the cluster "))
          << worker;
    }
  }
  Restart();
  ExpectAdopted(AwaitAdopted(job));
  ExpectAQuietRuns(job);
}

TEST_F(RestartTest, AWorkerThatDiedWithItsSchedulerIsLost) {
  Up(2);
  const int job = Submit({kEndless});
  AwaitStep(job, 3);
  Kill("scheduler");
  Kill("worker-1");
  Up(2);
  const Json described =
      AwaitJob(job, [](const Json& is) { return is["state"] == "FAILED"; });
  EXPECT_NE(described["reason"].get<std::string>().find("worker-1 (rank 1)"),
            std::string::npos)
      << described["reason"];
  EXPECT_EQ(Watch(Submit()).code, 0) << "both take the next one";
}

// Of a job that recovers.

const std::vector<std::string> kRecovers = {kEndless, "recovery.every=1"};

TEST_F(RestartTest, AWorkerLostAfterTheSchedulerCostsAStep) {
  Up(3);
  const int job = Submit(kRecovers);
  AwaitStep(job, 50);
  Kill("scheduler");
  Up(3);
  AwaitJob(job, [](const Json& is) {
    return is["state"] == "RUNNING" && is["reason"] == "";
  });
  Kill(Describe(job)["workers"][1]);
  ExpectRecovers(job);
}

TEST_F(RestartTest, AJobThatWaitsForAWorkerWaitsForItUnderTheNextScheduler) {
  Up(2);
  const int job = Submit(kRecovers);
  AwaitStep(job, 30);
  Kill(Describe(job)["workers"][1]);
  AwaitJob(job, [](const Json& is) {
    return absl::StrContains(is["reason"].get<std::string>(), "waits for 1");
  });
  Kill("scheduler");
  Up(2);
  ExpectRecovers(job);
}

// A worker dies, and soon its scheduler: before that has heard of it, when the
// other ranks let go, or when the next attempt begins.
TEST_F(RestartTest, AJobThatRecoversIsAdoptedAndGoesOnFromCopies) {
  Up(3);
  for (const int milliseconds : {0, 2, 5, 15, 40}) {
    std::printf("the scheduler dies %d ms after a worker\n", milliseconds);
    const int job = Submit(kRecovers);
    AwaitStep(job, 30);
    Kill(Describe(job)["workers"][1]);
    absl::SleepFor(absl::Milliseconds(milliseconds));
    Kill("scheduler");
    Up(3);
    ExpectRecovers(job);
  }
}

}  // namespace
}  // namespace troupe
