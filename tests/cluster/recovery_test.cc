// A job that is to survive its workers, with real daemons.
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_test_base.h"
#include "tests/worker/metrics/read_events.h"

namespace troupe {
namespace {

constexpr int kSteps = 1500;  // long enough to be there when it is hit

class RecoveryTest : public ClusterTestBase {
 protected:
  std::vector<std::string> Settings(std::vector<std::string> more = {}) const {
    more.insert(more.end(),
                {absl::StrCat("training.steps=", kSteps), "recovery.every=1"});
    return more;
  }
  std::unique_ptr<TroupeProgram> Start(const std::vector<std::string>& more) {
    std::vector<std::string> command = SubmitCommand(Settings(more));
    command.push_back("--watch");
    auto program = std::make_unique<TroupeProgram>(Command(command));
    EXPECT_NE(program->WaitForLine("step 3/"), "");
    return program;
  }
  std::vector<double> LossesOf(int job) const {
    std::vector<double> losses;
    const nlohmann::json described = Describe(job);
    for (const nlohmann::json& step : described["steps"]) {
      losses.push_back(step["loss"].get<double>());
    }
    return losses;
  }
  void ExpectTheQuietRuns(int job, const std::vector<std::string>& more) {
    const std::vector<double> losses = LossesOf(job);
    EXPECT_EQ(losses.size(), static_cast<size_t>(kSteps));
    EXPECT_EQ(losses, Losses(Settings(more))) << "not equal bit by bit";
  }
};

TEST_F(RecoveryTest, AKilledWorkerCostsAStepAndChangesNoNumber) {
  Up(3);
  const std::vector<std::string> zero = {"parallelism.zero=3"};
  const auto job = Start(zero);
  const std::string victim = Describe(1)["workers"][1];
  Kill(victim);
  const Outcome outcome = job->Wait();
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("recovering: " + victim + " (rank 1) was lost"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("recovered in "), std::string::npos);
  ExpectTheQuietRuns(1, zero);
}

// Nobody else has its experts but in the copy that it left.
TEST_F(RecoveryTest, ExpertsOfAKilledWorkerComeFromItsCopy) {
  Up(3);
  const std::vector<std::string> experts =
      WithExperts({"parallelism.expert=2", "parallelism.zero=1"});
  const auto job = Start(experts);
  const std::string victim = Describe(1)["workers"][1];
  Kill(victim);
  const Outcome outcome = job->Wait();
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("recovered in "), std::string::npos);
  ExpectTheQuietRuns(1, experts);
}

// Its process lives, and holds the checkpoints' directory, past its lease.
TEST_F(RecoveryTest, AStoppedWorkerLosesItsPlaceAndItsDirectory) {
  Up(3);
  const std::vector<std::string> saves = {
      "checkpoint.directory=" + dir() + "/saved", "checkpoint.every=100"};
  const auto job = Start(saves);
  const std::string victim = Describe(1)["workers"][0];
  const pid_t stopped = WorkerPid(victim);
  ASSERT_EQ(kill(stopped, SIGSTOP), 0);
  EXPECT_NE(job->WaitForLine("recovered in "), "");
  ASSERT_EQ(kill(stopped, SIGCONT), 0);
  const Outcome outcome = job->Wait();
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(LossesOf(1).size(), static_cast<size_t>(kSteps));
  EXPECT_TRUE(std::ifstream(
                  absl::StrCat(dir(), "/saved/step-00001500/", "manifest.json"))
                  .good() ||
              outcome.out.find("checkpoint of step 1500") != std::string::npos)
      << outcome.out;
}

// Of rank 0, which writes them, and of another one. Workers here share a disk.
TEST_F(RecoveryTest, FilesOfMetricsHaveEachStepOnce) {
  Up(4);
  const auto job = Start({"metrics.directory=" + dir() + "/rows",
                          "metrics.tensorboard=" + dir() + "/tb"});
  for (const int rank : {1, 0}) {
    const std::string victim = Describe(1)["workers"][rank];
    Kill(victim);
    EXPECT_NE(job->WaitForLine("recovered in "), "");
  }
  const Outcome outcome = job->Wait();
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const std::vector<double> losses = LossesOf(1);
  ASSERT_EQ(losses.size(), static_cast<size_t>(kSteps));
  // A worker of rank 0 may be killed before it has written its last rows: then
  // these are missing, and an event says so. Steps take milliseconds.
  constexpr size_t kUnwrittenMost = 100;
  const auto expect_all = [&](size_t rows, const std::string& file) {
    EXPECT_GE(rows, losses.size() - kUnwrittenMost) << file;
    EXPECT_EQ(rows < losses.size(),
              absl::StrContains(outcome.out, file + " has no rows of step"))
        << rows << " rows\n"
        << outcome.out;
  };
  const auto ascends = [](int64_t step, int64_t& last) {
    return step > std::exchange(last, step);
  };
  int64_t last = 0;
  size_t rows = 0;
  int attempts = 0;
  std::ifstream json(dir() + "/rows/metrics.jsonl");
  for (std::string line; std::getline(json, line); ++rows) {
    const nlohmann::json row = nlohmann::json::parse(line);
    const int64_t step = row["step"];
    EXPECT_TRUE(ascends(step, last)) << line;
    EXPECT_EQ(row["loss"].get<double>(), losses.at(step - 1)) << step;
    attempts = std::max<int>(attempts, row["attempt"]);
  }
  EXPECT_EQ(last, kSteps);
  EXPECT_EQ(attempts, 3);
  expect_all(rows, "metrics.jsonl");
  last = rows = 0;
  std::ifstream csv(dir() + "/rows/metrics.csv");
  std::string line;
  EXPECT_TRUE(std::getline(csv, line));  // the header
  for (; std::getline(csv, line); ++rows) {
    EXPECT_TRUE(ascends(std::stoll(line), last)) << line;
  }
  EXPECT_EQ(last, kSteps);
  expect_all(rows, "metrics.csv");
  const Curves curves = ReadCurves(dir() + "/tb");
  EXPECT_GE(curves.at("loss").size(), losses.size() - kUnwrittenMost);
  for (const auto& [step, loss] : curves.at("loss")) {
    EXPECT_EQ(loss, static_cast<float>(losses.at(step - 1))) << step;
  }
}

TEST_F(RecoveryTest, WaitsForAWorkerAndGoesOnWhenOneComes) {
  Up(2);
  const auto job = Start({});
  const std::string victim = Describe(1)["workers"][1];
  Kill(victim);
  EXPECT_NE(job->WaitForLine("recovering: "), "");
  const Outcome up = Troupe({"up", "--workers", "2", "--threads", kThreads});
  ASSERT_EQ(up.code, 0) << up.err;
  const Outcome outcome = job->Wait();
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  ExpectTheQuietRuns(1, {});
}

}  // namespace
}  // namespace troupe
