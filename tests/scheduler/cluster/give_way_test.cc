// Jobs that wait for each other's workers (policy/who_gives_way.h).
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/scheduler/cluster/recovery_harness.h"

namespace troupe {
namespace {

JobSpec SpecIn(const std::string& directory) {
  JobSpec spec = RecoveringSpec(2);
  spec.mutable_checkpoint()->set_directory(directory);
  if (directory.empty()) spec.clear_checkpoint();
  return spec;
}

// Two jobs on two of four workers each. One worker of each is lost, and the
// other keeps copies of step 2.
struct TwoJobs : RecoveryHarness {
  TwoJobs(const std::string& directory_a, const std::string& directory_b)
      : w(JoinMany(4)) {
    a = Submit(SpecIn(directory_a));
    AllReady(a, {w[0], w[1]}, 1);
    b = Submit(SpecIn(directory_b));
    AllReady(b, {w[2], w[3]}, 1);
    for (const int64_t step : {1, 2}) {
      AllStep(a, {w[0], w[1]}, step);
      AllStep(b, {w[2], w[3]}, step);
    }
    Disconnect(w[1], "connection closed");
    Disconnect(w[3], "connection closed");
    EndsKeeping(a, 0, w[0], {2});
    EndsKeeping(b, 0, w[2], {2});
    CHECK_EQ(status(a).phase(), PHASE_AWAIT_PLACES);
    CHECK_EQ(status(b).phase(), PHASE_AWAIT_PLACES);
  }
  void WaitLongEnough() { Pass(absl::Seconds(35), {w[0], w[2]}); }

  std::vector<WorkerId> w;
  JobId a, b;
};

TEST(GiveWay, TheYoungerJobIsSavedAndTheOlderOneGoesOn) {
  TwoJobs h("/a", "/b");
  EXPECT_FALSE(h.Says(h.a, "may wait for each other"));
  h.Pass(absl::Seconds(5), {h.w[0], h.w[2]});
  EXPECT_TRUE(h.Asked(h.w[2]).empty()) << "their workers may be back soon";
  h.WaitLongEnough();
  ASSERT_EQ(h.Asked(h.w[2]).size(), 1) << h.status(h.b).reason();
  EXPECT_TRUE(h.Asked(h.w[0]).empty());
  EXPECT_EQ(h.Asked(h.w[2])[0].state().step(), 2);
  EXPECT_TRUE(h.Says(h.b, "gives its workers to job 1"));
  h.Saved(h.w[2]);  // its copies
  h.Saved(h.w[2]);  // the checkpoint
  EXPECT_EQ(h.status(h.b).state(), QUEUED);
  EXPECT_EQ(h.Begun(h.w[2]).ref().job(), h.a.value());
  EXPECT_EQ(h.Begun(h.w[2]).recovery().state().step(), 2);
  h.AllReady(h.a, {h.w[0], h.w[2]}, 3);
  // When there are workers again, the other one goes on, too.
  const WorkerId w4 = h.Join("w4");
  const WorkerId w5 = h.Join("w5");
  EXPECT_EQ(h.Begun(w4).ref().job(), h.b.value());
  EXPECT_EQ(h.Begun(w4).resume(), "/c/copies");
  h.AllReady(h.b, {w4, w5}, 3);
}

// The youngest of three saves its copies: its worker is soon free.
TEST(GiveWay, NobodyElseWhileOneThatIsEnoughGivesWay) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(6);
  std::vector<JobId> jobs;
  for (const int first : {0, 2, 4}) {
    jobs.push_back(h.Submit(SpecIn(absl::StrCat("/", first))));
    h.AllReady(jobs.back(), {w[first], w[first + 1]}, 1);
    h.AllStep(jobs.back(), {w[first], w[first + 1]}, 1);
  }
  for (const int first : {0, 2, 4}) {
    h.Disconnect(w[first + 1], "connection closed");
    h.EndsKeeping(jobs[first / 2], 0, w[first], {1});
  }
  h.Pass(absl::Seconds(60), {w[0], w[2], w[4]});
  EXPECT_EQ(h.Asked(w[4]).size(), 1) << h.status(jobs[2]).reason();
  EXPECT_TRUE(h.Asked(w[2]).empty()) << h.status(jobs[1]).reason();
  EXPECT_TRUE(h.Asked(w[0]).empty());
}

// Each counts the other one's worker as one that it could get. The idle one is
// no help, for both have failed there.
TEST(GiveWay, OneOfTwoJobsThatAvoidTheSameIdleWorker) {
  TwoJobs h("/a", "/b");
  const WorkerId bad = h.Join("bad");
  for (const auto& [id, stays] : {std::pair(h.a, h.w[0]), {h.b, h.w[2]}}) {
    ASSERT_EQ(h.worker(bad).job(), id.value()) << h.status(id).reason();
    h.EndsKeeping(id, 1, bad, {}, "EIO", /*of_machine=*/true);
    h.EndsKeeping(id, 0, stays, {2});
    EXPECT_TRUE(
        absl::StrContains(h.status(id).reason(), "; it does not take bad"))
        << h.status(id).reason();
  }
  h.Pass(absl::Seconds(35), {h.w[0], h.w[2], bad});
  ASSERT_EQ(h.Asked(h.w[2]).size(), 1) << h.status(h.b).reason();
  h.Saved(h.w[2]);
  h.Saved(h.w[2]);
  EXPECT_EQ(h.status(h.b).state(), QUEUED);
  EXPECT_EQ(h.Begun(h.w[2]).ref().job(), h.a.value());
  EXPECT_EQ(h.worker(bad).state(), WorkerStatus::IDLE);
}

// Neither can be saved, so that neither gives way.
struct TwoThatAvoidOne : TwoJobs {
  TwoThatAvoidOne() : TwoJobs("", ""), bad(Join("bad")) {
    for (const auto& [id, stays] : {std::pair(a, w[0]), {b, w[2]}}) {
      CHECK_EQ(worker(bad).job(), id.value()) << status(id).reason();
      EndsKeeping(id, 1, bad, {}, "EIO", /*of_machine=*/true);
      EndsKeeping(id, 0, stays, {2});
    }
  }
  void Waits(absl::Duration time) { Pass(time, {w[0], w[2], bad}); }

  const WorkerId bad;
};

TEST(GiveWay, OneOfTwoThatCannotBeSavedTriesTheWorkerThatBothAvoid) {
  TwoThatAvoidOne h;
  EXPECT_TRUE(absl::StrContains(h.status(h.a).reason(),
                                "; it tries that again at 13:47:40 UTC, if no "
                                "other worker is there"))
      << h.status(h.a).reason();
  h.Waits(absl::Seconds(59));
  ASSERT_EQ(h.worker(h.bad).state(), WorkerStatus::IDLE);
  h.Waits(absl::Seconds(2));
  ASSERT_EQ(h.worker(h.bad).job(), h.a.value()) << h.status(h.a).reason();
  EXPECT_TRUE(h.Says(h.a,
                     "has waited 1m for other workers, and tries again where "
                     "its start failed: bad"));
  h.AllReady(h.a, {h.w[0], h.bad}, 3);
  EXPECT_EQ(h.status(h.a).state(), RUNNING);
}

TEST(GiveWay, AWorkerThatComesInTimeTakesThePlace) {
  TwoJobs h("/a", "/b");
  h.WaitLongEnough();
  ASSERT_EQ(h.Asked(h.w[2]).size(), 1);
  const WorkerId w4 = h.Join("w4");
  EXPECT_EQ(h.Begun(w4).ref().job(), h.a.value());
  const WorkerId w5 = h.Join("w5");
  EXPECT_EQ(h.Begun(w5).ref().job(), h.b.value());
  EXPECT_EQ(h.Begun(w5).recovery().state().step(), 2);
}

TEST(GiveWay, TheOlderOneWhereTheYoungerCannotBeSaved) {
  TwoJobs h("/a", "");
  h.WaitLongEnough();
  EXPECT_TRUE(h.Asked(h.w[2]).empty());
  ASSERT_EQ(h.Asked(h.w[0]).size(), 1);
  h.Saved(h.w[0]);
  h.Saved(h.w[0]);
  EXPECT_EQ(h.status(h.a).state(), QUEUED);
  EXPECT_EQ(h.Begun(h.w[0]).ref().job(), h.b.value());
}

TEST(GiveWay, NeitherWhereBothWouldLoseTheirCopiesAndTheySaySo) {
  TwoJobs h("", "");
  h.WaitLongEnough();
  for (const JobId id : {h.a, h.b}) {
    EXPECT_EQ(h.status(id).state(), RECOVERING);
    EXPECT_TRUE(absl::StrContains(
        h.status(id).reason(),
        "; it keeps its workers meanwhile, for without a checkpoint.directory "
        "its copies of step 2 cannot be saved"))
        << h.status(id).reason();
    EXPECT_TRUE(h.Says(id, "two such jobs may wait for each other"))
        << "when it is submitted";
  }
}

TEST(GiveWay, WhereTheDiskDoesNotTakeTheCopiesTheOtherOneIsSaved) {
  TwoJobs h("/a", "/b");
  h.WaitLongEnough();
  ASSERT_EQ(h.Asked(h.w[2]).size(), 1);
  h.Saved(h.w[2], "/b: no space left on device");
  EXPECT_EQ(h.status(h.b).phase(), PHASE_AWAIT_PLACES);
  h.Pass(absl::Seconds(5), {h.w[0], h.w[2]});
  ASSERT_EQ(h.Asked(h.w[0]).size(), 1) << h.status(h.a).reason();
  h.Saved(h.w[0]);
  h.Saved(h.w[0]);
  EXPECT_EQ(h.Begun(h.w[0]).ref().job(), h.b.value());
}

TEST(GiveWay, WhatCannotBeSavedForAnotherCauseIsNotTriedAgain) {
  TwoJobs h("", "/b");
  h.WaitLongEnough();
  ASSERT_EQ(h.Asked(h.w[2]).size(), 1);
  h.Saved(h.w[2], "a device is broken", /*fails_again=*/true);
  EXPECT_EQ(h.status(h.b).phase(), PHASE_AWAIT_PLACES);
  h.Pass(absl::Minutes(3), {h.w[0], h.w[2]});
  EXPECT_EQ(h.Asked(h.w[2]).size(), 1) << h.status(h.b).reason();
  EXPECT_TRUE(absl::StrContains(
      h.status(h.b).reason(),
      "; it keeps its workers meanwhile, for its copies of step 2 cannot be "
      "saved"))
      << h.status(h.b).reason();
  const WorkerId w4 = h.Join("w4");
  const WorkerId w5 = h.Join("w5");
  EXPECT_EQ(h.Begun(w4).ref().job(), h.a.value());
  EXPECT_EQ(h.Begun(w5).recovery().state().step(), 2) << "they are there still";
}

TEST(GiveWay, AJobThatTooFewAreLeftForLetsAQueuedOneRun) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  JobSpec spec = RecoveringSpec(3);
  const JobId large = h.Submit(spec);
  h.AllReady(large, w, 1);
  h.AllStep(large, w, 1);
  h.Disconnect(w[2], "connection closed");
  for (const int rank : {0, 1}) h.EndsKeeping(large, rank, w[rank], {1});
  const JobId small = h.Submit(SpecIn("/small"));
  EXPECT_EQ(h.status(small).state(), QUEUED);
  h.Pass(absl::Seconds(35), {w[0], w[1]});
  ASSERT_EQ(h.Asked(w[0]).size(), 1) << h.status(large).reason();
  h.Saved(w[0]);
  h.Saved(w[1]);
  h.Saved(h.Asked(w[0]).back().has_commits() ? w[0] : w[1]);
  EXPECT_EQ(h.status(large).state(), QUEUED) << h.status(large).reason();
  EXPECT_EQ(h.status(small).state(), STARTING) << h.status(small).reason();
}

WorkerId JoinWithGpu(Harness& h, const std::string& name) {
  Register request = RegisterOf(name);
  request.mutable_worker()->mutable_gpu()->set_name("gpu");
  auto id = h.cluster.RegisterWorker(request, h.now, h.actions);
  CHECK_OK(id.status());
  h.Compile();
  return *id;
}

// There are four workers: two are of another kind, and too small for both.
TEST(GiveWay, AJobThatTooFewOfItsKindAreLeftForLetsAQueuedOneRun) {
  RecoveryHarness h;
  std::vector<WorkerId> w;
  for (const char* name : {"g0", "g1", "g2"}) w.push_back(JoinWithGpu(h, name));
  const JobId large = h.Submit(RecoveringSpec(3));
  h.AllReady(large, w, 1);
  h.AllStep(large, w, 1);
  const WorkerId c0 = h.JoinWith("c0", 100);
  const WorkerId c1 = h.JoinWith("c1", 100);
  h.Disconnect(w[2], "connection closed");
  for (const int rank : {0, 1}) h.EndsKeeping(large, rank, w[rank], {1});
  JobSpec spec = SpecIn("/small");
  spec.mutable_model()->set_hidden_size(500);
  const JobId small = h.Submit(spec);
  EXPECT_EQ(h.status(small).state(), QUEUED);
  h.Pass(absl::Seconds(35), {w[0], w[1], c0, c1});
  ASSERT_EQ(h.Asked(w[0]).size(), 1) << h.status(large).reason();
  h.Saved(w[0]);
  h.Saved(w[1]);
  h.Saved(h.Asked(w[0]).back().has_commits() ? w[0] : w[1]);
  EXPECT_EQ(h.status(small).state(), STARTING) << h.status(small).reason();
  EXPECT_EQ(h.status(large).state(), QUEUED);
  EXPECT_EQ(h.status(large).reason(),
            "waits for 3 workers; at most 2 are of one kind, GPU or CPU; 4 are "
            "registered: c0, c1, g0, g1");
}

// Its workers are soon idle, and no use to the other two.
TEST(GiveWay, AJobThatIsBeingSavedDoesNotHoldOthersUp) {
  TwoJobs h("/a", "/b");
  const std::vector<WorkerId> g = {JoinWithGpu(h, "g0"), JoinWithGpu(h, "g1")};
  JobSpec spec = SpecIn("/saved");
  spec.mutable_elastic()->set_min_workers(1);
  const JobId saved = h.Submit(spec);
  h.AllReady(saved, g, 1);
  h.AllStep(saved, g, 1);
  h.Disconnect(g[1], "connection closed");
  h.EndsKeeping(saved, 0, g[0], {1});
  h.Pass(absl::Seconds(35), {h.w[0], h.w[2], g[0]});
  EXPECT_EQ(h.status(saved).phase(), PHASE_SAVING_COPIES);
  EXPECT_EQ(h.Asked(h.w[2]).size(), 1) << h.status(h.b).reason();
}

}  // namespace
}  // namespace troupe
