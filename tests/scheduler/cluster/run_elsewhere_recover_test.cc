// One bad worker in a job of several ranks: whether it keeps its place where
// the job recovers, and which count as other workers.
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "tests/scheduler/cluster/recovery_harness.h"

namespace troupe {
namespace {

// That of rank 0, so that rank 1 is stopped.
void MachineFails(Harness& h, JobId id, const std::vector<WorkerId>& on) {
  h.Ended(id, 0, on[0],
          {.ok = false, .error = "EIO", .step = 1, .of_machine = true});
  h.Ended(id, 1, on[1], {.ok = false, .error = "stop", .stopped = true});
}

TEST(RunElsewhere, OthersAreOfOneKind) {
  Harness h;
  std::vector<WorkerId> gpus;
  for (const char* name : {"g0", "g1"}) {
    Register request = RegisterOf(name);
    request.mutable_worker()->mutable_gpu();
    gpus.push_back(*h.cluster.RegisterWorker(request, h.now, h.actions));
  }
  h.Join("cpu");
  const JobId id = h.Submit(SpecOf(2));
  ASSERT_EQ(h.worker(gpus[0]).job(), id.value()) << h.status(id).reason();
  MachineFails(h, id, gpus);
  EXPECT_EQ(h.status(id).state(), FAILED) << h.status(id).reason();
}

TEST(RunElsewhere, AJobThatRecoversTakesAnotherWorkerInPlaceOfTheBadOne) {
  RecoveryHarness h;
  const std::vector<WorkerId> on = h.JoinMany(3);
  const JobId id = h.Recovering({on[0], on[1]});
  h.AllStep(id, {on[0], on[1]}, 1);
  MachineFails(h, id, on);
  EXPECT_EQ(h.status(id).state(), RECOVERING) << h.status(id).reason();
  EXPECT_EQ(h.worker(on[0]).state(), WorkerStatus::IDLE);
  EXPECT_EQ(h.worker(on[2]).job(), id.value());
  EXPECT_EQ(h.worker(on[2]).rank(), 0);
  EXPECT_EQ(h.worker(on[0]).local_failures(), 1);
}

// The good worker is busy, and the bad one idle: each attempt on it would fail
// at once, and ten of these end a job.
TEST(RunElsewhere, AJobThatRecoversWaitsForABusyWorkerRatherThanForTheBadOne) {
  RecoveryHarness h;
  std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Recovering(on);
  const WorkerId busy = h.Join("busy");
  const JobId other = h.Submit(SpecOf(1));
  h.Ready(other, 0, busy);
  ASSERT_EQ(h.worker(busy).job(), other.value());
  // Its disk is bad from now on: it is lost, comes back, and fails its start.
  h.Disconnect(on[0], "connection closed");
  h.Ended(id, 1, on[1], {.ok = false, .error = "stop", .stopped = true});
  on[0] = h.Join("w0");
  ASSERT_EQ(h.worker(on[0]).job(), id.value()) << h.status(id).reason();
  MachineFails(h, id, on);
  EXPECT_EQ(h.status(id).state(), RECOVERING);
  EXPECT_EQ(h.worker(on[0]).state(), WorkerStatus::IDLE);
  EXPECT_TRUE(
      absl::StrContains(h.status(id).reason(),
                        "; it does not take w0, where its start failed: EIO"))
      << h.status(id).reason();
  h.Step(other, 0, busy, 10);
  h.Ended(other, 0, busy, {});
  EXPECT_EQ(h.worker(busy).job(), id.value()) << h.status(id).reason();
  EXPECT_EQ(h.worker(busy).rank(), 0);
}

// Nobody else could ever take the place, so that it is tried again there.
TEST(RunElsewhere, AJobThatRecoversTakesTheBadWorkerWhereThereIsNoOther) {
  RecoveryHarness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Recovering(on);
  h.AllStep(id, on, 1);
  MachineFails(h, id, on);
  ASSERT_EQ(h.worker(on[0]).job(), id.value()) << h.status(id).reason();
  MachineFails(h, id, on);
  EXPECT_EQ(h.worker(on[0]).job(), id.value()) << h.status(id).reason();
}

// In the same place it would fail again, and two failures in one step end a
// job. Others hold what it keeps, which is given up.
TEST(RunElsewhere, AWorkerWhoseMachineFailsLosesItsPlaceThoughItKeepsCopies) {
  RecoveryHarness h;
  const std::vector<WorkerId> workers = h.JoinMany(5);
  std::vector<WorkerId> on = {workers[0], workers[1]};
  const JobId id = h.Recovering(on);
  h.AllStep(id, on, 1);
  for (int bad = 0; bad < 3; ++bad) {
    h.EndsKeeping(id, 0, on[0], {1}, "EIO", /*of_machine=*/true);
    h.EndsKeeping(id, 1, on[1], {1});
    ASSERT_EQ(h.status(id).state(), RECOVERING) << h.status(id).reason();
    EXPECT_EQ(h.worker(on[0]).state(), WorkerStatus::IDLE);
    EXPECT_FALSE(h.Forgotten(on[0]).empty());
    on[0] = workers[2 + bad];
    ASSERT_EQ(h.worker(on[0]).job(), id.value()) << bad;
    EXPECT_EQ(h.worker(on[0]).rank(), 0);
    h.AllReady(id, on, 2);
  }
}

// Only one other worker is there, and what is left of the job's steps would go
// with both of its workers.
TEST(RunElsewhere, AWorkerWhoseMachineFailsStaysWhereTheOtherOneIsAskedToEnd) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  const JobId id = h.Recovering({w[0], w[1]});
  h.AllStep(id, {w[0], w[1]}, 1);
  h.EndsKeeping(id, 0, w[0], {1}, "EIO", /*of_machine=*/true);
  h.Leaves(id, 1, w[1]);
  h.EndsKeeping(id, 1, w[1], {1});
  EXPECT_TRUE(h.Forgotten(w[0]).empty());
  ASSERT_EQ(h.worker(w[2]).job(), id.value()) << h.status(id).reason();
  EXPECT_EQ(h.worker(w[2]).rank(), 1);
  EXPECT_EQ(h.Begun(w[2]).recovery().state().step(), 1);
}

// Rank 0's worker is the only one that keeps copies of both ranks, and its
// machine fails in each start.
struct LastCopies : RecoveryHarness {
  LastCopies() : on(JoinMany(2)), id(Recovering(on)) {
    AllStep(id, on, 1);
    Disconnect(on[1], "connection closed");
    Fails();
    on[1] = Join("w2");
    CHECK_EQ(worker(on[1]).job(), id.value()) << status(id).reason();
    Fails();
    EndsKeeping(id, 1, on[1], {});
  }
  void Fails() {
    WorkerMessage message;
    RankEnded& ended = *message.mutable_ended();
    *ended.mutable_ref() = Ref(id, 0);
    ended.set_error("EIO");
    ended.set_local_cause(true);
    KeptCopy& kept = *ended.add_kept();
    kept.mutable_state()->set_step(1);
    kept.set_own(true);
    kept.set_peer(true);
    Send(on[0], message);
  }
  std::vector<WorkerId> on;
  JobId id;
};

TEST(RunElsewhere, TheLastCopiesStayWhereNobodyElseCanTakeThePlace) {
  LastCopies h;
  EXPECT_TRUE(h.Forgotten(h.on[0]).empty());
  EXPECT_EQ(h.worker(h.on[0]).job(), h.id.value());
  EXPECT_EQ(h.Begun(h.on[0]).recovery().state().step(), 1)
      << h.status(h.id).reason();
}

TEST(RunElsewhere, TheLastCopiesAreSavedBeforeAnotherWorkerTakesThePlace) {
  LastCopies h;
  h.Join("w3");
  h.Fails();
  h.EndsKeeping(h.id, 1, h.on[1], {});
  ASSERT_EQ(h.Asked(h.on[0]).size(), 1) << h.status(h.id).reason();
  EXPECT_EQ(h.Asked(h.on[0])[0].state().step(), 1);
  h.Saved(h.on[0]);
  h.Saved(h.on[0]);
  EXPECT_EQ(h.Begun(h.on[1]).resume(), "/c/copies") << h.status(h.id).reason();
  EXPECT_EQ(h.worker(h.on[0]).state(), WorkerStatus::IDLE);
}

// The only other worker belongs to a job that waits for two, and keeps it, for
// its copies can be saved nowhere.
struct QueuedBesideABadWorker : RecoveryHarness {
  QueuedBesideABadWorker() : w(JoinMany(3)) {
    JobSpec spec = RecoveringSpec(3);
    spec.clear_checkpoint();
    waits = Submit(spec);
    AllReady(waits, w, 1);
    AllStep(waits, w, 1);
    for (const int lost : {1, 2}) Disconnect(w[lost], "connection closed");
    EndsKeeping(waits, 0, w[0], {1});
    bad = Join("bad");
    queued = Submit(SpecOf(1));
    Fails();
  }
  void Fails() {
    CHECK_EQ(worker(bad).job(), queued.value()) << status(queued).reason();
    Ended(queued, 0, bad, {.ok = false, .error = "EIO", .of_machine = true});
    CHECK_EQ(status(queued).state(), QUEUED) << status(queued).reason();
    CHECK_EQ(worker(bad).state(), WorkerStatus::IDLE);
  }
  std::vector<WorkerId> w;
  WorkerId bad;
  JobId waits, queued;
};

TEST(RunElsewhere, AQueuedJobTriesTheBadWorkerAgainWhereOthersAreKept) {
  QueuedBesideABadWorker h;
  absl::Duration pause = absl::Minutes(1);
  // More often than a job may fail in its start.
  for (int i = 0; i < 4; ++i) {
    h.Pass(pause - absl::Seconds(2), {h.w[0], h.bad});
    ASSERT_EQ(h.worker(h.bad).state(), WorkerStatus::IDLE) << i;
    h.Pass(absl::Seconds(4), {h.w[0], h.bad});
    h.Fails();
    pause *= 2;
  }
  EXPECT_TRUE(h.Says(h.queued,
                     "has waited 8m for other workers, and tries again where "
                     "its start failed: bad"));
  h.Pass(pause + absl::Seconds(2), {h.w[0], h.bad});
  h.Ready(h.queued, 0, h.bad);
  EXPECT_EQ(h.status(h.queued).state(), RUNNING);
}

// Its machine has failed twice; another worker could take its place.
struct LastCopiesAreSaved : LastCopies {
  LastCopiesAreSaved() {
    w3 = Join("w3");
    Fails();
    EndsKeeping(id, 1, on[1], {});
    CHECK_EQ(Asked(on[0]).size(), 1u) << status(id).reason();
  }
  WorkerId w3;
};

TEST(RunElsewhere, TheLastCopiesStayUntilAFullDiskTakesThem) {
  LastCopiesAreSaved h;
  absl::Duration pause = absl::Minutes(1);
  for (size_t tries = 1; tries < 4; ++tries) {
    h.Saved(h.on[0], "/c: ENOSPC");
    EXPECT_TRUE(h.Says(h.id, absl::StrCat("/c: ENOSPC; tried again in ",
                                          absl::FormatDuration(pause))));
    EXPECT_TRUE(absl::StrContains(
        h.status(h.id).reason(),
        "keeps w0 (rank 0) until the copies of step 1 are saved, which failed "
        "and is tried again at "))
        << h.status(h.id).reason();
    h.Pass(pause - absl::Seconds(1), {h.on[0], h.on[1], h.w3});
    ASSERT_EQ(h.Asked(h.on[0]).size(), tries);
    h.Pass(absl::Seconds(2), {h.on[0], h.on[1], h.w3});
    ASSERT_EQ(h.Asked(h.on[0]).size(), tries + 1) << h.status(h.id).reason();
    pause *= 2;
  }
  h.Saved(h.on[0]);
  h.Saved(h.on[0]);
  EXPECT_EQ(h.Begun(h.on[1]).resume(), "/c/copies") << h.status(h.id).reason();
  EXPECT_EQ(h.worker(h.on[0]).state(), WorkerStatus::IDLE);
}

TEST(RunElsewhere, TheLastCopiesOnAFullDiskAreGivenUpWithTheJobAlone) {
  LastCopiesAreSaved h;
  h.Saved(h.on[0], "/c: ENOSPC");
  EXPECT_TRUE(h.cluster.Cancel(h.id, h.now, h.actions).ok());
  EXPECT_EQ(h.status(h.id).state(), CANCELLED);
  EXPECT_FALSE(h.Forgotten(h.on[0]).empty());
}

TEST(RunElsewhere, TheLastCopiesAreGivenUpWhereNoDiskIsInTheWay) {
  LastCopiesAreSaved h;
  h.Saved(h.on[0], "a device is broken", /*fails_again=*/true);
  EXPECT_FALSE(h.Forgotten(h.on[0]).empty());
  EXPECT_EQ(h.worker(h.on[0]).state(), WorkerStatus::IDLE);
  EXPECT_EQ(h.worker(h.w3).job(), h.id.value()) << h.status(h.id).reason();
  EXPECT_EQ(h.Begun(h.w3).resume(), "");
}

// It is told to give them up, does not obey either, and gets a rank again when
// it is the only one that is idle: nobody counts on what it may still keep.
TEST(RunElsewhere, TheLastCopiesAreGivenUpWhereNobodyAnswersInTime) {
  LastCopiesAreSaved h;
  const std::vector<WorkerId> alive = {h.on[0], h.on[1], h.w3};
  h.Pass(Limits().save_copies_max - absl::Seconds(1), alive);
  EXPECT_TRUE(h.Forgotten(h.on[0]).empty());
  h.Pass(absl::Seconds(2), alive);
  EXPECT_FALSE(h.Forgotten(h.on[0]).empty());
  ASSERT_EQ(h.worker(h.w3).job(), h.id.value()) << h.status(h.id).reason();
  EXPECT_FALSE(h.Begun(h.w3).has_recovery());
  h.Disconnect(h.w3, "connection closed");
  h.EndsKeeping(h.id, 1, h.on[1], {});
  ASSERT_EQ(h.worker(h.on[0]).job(), h.id.value()) << h.status(h.id).reason();
  EXPECT_FALSE(h.Begun(h.on[0]).has_recovery());
}

}  // namespace
}  // namespace troupe
