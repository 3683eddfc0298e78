// One bad worker, and the jobs that it gets.
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "scheduler/cluster/run_control.h"
#include "tests/scheduler/cluster/recovery_harness.h"
#include "tests/scheduler/cluster/restart_harness.h"

namespace troupe {
namespace {

const char kNoPath[] = "/data/tokens: open to read: EACCES: not allowed";

// The worker that has the job's only rank.
WorkerId OnOf(const Harness& h, JobId id) {
  for (const auto& [worker, row] : h.cluster.workers().all()) {
    if (row.status.job() == id.value()) return worker;
  }
  return WorkerId();
}

// The rank of a job ends in its start.
void FailsThere(Harness& h, JobId id, bool of_machine = true) {
  h.Ended(id, 0, OnOf(h, id),
          {.ok = false, .error = kNoPath, .step = 0, .of_machine = of_machine});
}

void Succeeds(Harness& h, JobId id) {
  const WorkerId on = OnOf(h, id);
  h.Ready(id, 0, on);
  h.Step(id, 0, on, 10);
  h.Ended(id, 0, on, {});
  ASSERT_EQ(h.status(id).state(), SUCCEEDED) << h.status(id).reason();
}

TEST(RunElsewhere, AJobThatFailsInItsStartForItsWorkersSakeStartsOnAnother) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Submit(SpecOf(1));
  ASSERT_EQ(OnOf(h, id), on[0]);
  FailsThere(h, id);
  EXPECT_EQ(h.status(id).state(), STARTING) << h.status(id).reason();
  EXPECT_EQ(OnOf(h, id), on[1]);
  EXPECT_EQ(h.worker(on[0]).local_failures(), 0) << "the job may be to blame";
  h.Ready(id, 0, on[1]);
  EXPECT_EQ(h.worker(on[0]).local_failures(), 1) << "it is not";
  EXPECT_EQ(h.worker(on[1]).local_failures(), 0);
}

// It has run, so that it fits somewhere, and the other worker is too small.
TEST(RunElsewhere, TheOnlyWorkerWithRoomIsTriedAgain) {
  RecoveryHarness h;
  const WorkerId first = h.Join("a-leaves");
  JobSpec spec = RecoveringSpec(1, /*restarts=*/0);
  spec.mutable_model()->set_hidden_size(kDeviceBytes);
  const JobId id = h.Submit(spec);
  h.AllReady(id, {first}, 1);
  h.AllStep(id, {first}, 1);
  const WorkerId bad = h.Join("bad");
  Register small = RegisterOf("small");
  small.mutable_worker()->mutable_budgets(0)->set_bytes(kDeviceBytes - 1);
  ASSERT_TRUE(h.cluster.RegisterWorker(small, h.now, h.actions).ok());
  h.Leaves(id, 0, first);
  h.Commits(id, first, 1);
  h.EndsKeeping(id, 0, first, {1});
  h.SaysGoodbye(first);
  ASSERT_EQ(OnOf(h, id), bad) << h.status(id).reason();
  FailsThere(h, id);
  EXPECT_TRUE(h.Says(id, "fits on no other workers, and may start again where"));
  EXPECT_EQ(h.status(id).state(), STARTING) << h.status(id).reason();
  EXPECT_EQ(OnOf(h, id), bad);
}

// Its start has failed on one worker, and the other has not let go yet.
TEST(RunElsewhere, AJobThatIsToStartElsewhereCanBeCancelled) {
  for (const bool saves : {false, true}) {
    Harness h;
    const std::vector<WorkerId> on = h.JoinMany(4);
    JobSpec spec = SpecOf(2);
    spec.mutable_checkpoint()->set_directory("/c");
    const JobId id = h.Submit(spec);
    h.Ended(id, 0, on[0],
            {.ok = false, .error = kNoPath, .step = 0, .of_machine = true});
    ASSERT_EQ(h.status(id).state(), STOPPING) << h.status(id).reason();
    ASSERT_TRUE((saves ? h.cluster.SaveAndCancel(id, h.now, h.actions)
                       : h.cluster.Cancel(id, h.now, h.actions))
                    .ok());
    h.Ended(id, 1, on[1], {.ok = false, .stopped = true});
    EXPECT_EQ(h.status(id).state(), CANCELLED) << h.status(id).reason();
  }
}

// It is stopped anyhow; nobody has cancelled the job.
TEST(RunElsewhere, AWorkerThatIsAskedToEndMeanwhileCancelsNothing) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(4);
  const JobId id = h.Submit(SpecOf(2));
  ASSERT_EQ(h.worker(on[1]).job(), id.value());
  h.Ended(id, 0, on[0], {.ok = false, .error = "EIO", .of_machine = true});
  WorkerMessage leaving;
  *leaving.mutable_leaving()->mutable_ref() = h.Ref(id, 1);
  h.Send(on[1], leaving);
  h.Ended(id, 1, on[1], {.ok = false, .error = "stop", .stopped = true});
  EXPECT_EQ(h.status(id).state(), STARTING) << h.status(id).reason();
  EXPECT_EQ(h.worker(on[2]).job(), id.value());
  EXPECT_EQ(h.worker(on[3]).job(), id.value());
}

// There is nobody else to start it when the user gives it up, and there is
// before all ranks have let go.
TEST(RunElsewhere, AJobThatAUserGaveUpWhileItFailedStartsNoMore) {
  for (const bool saves : {false, true}) {
    Harness h;
    const std::vector<WorkerId> on = h.JoinMany(2);
    JobSpec spec = SpecOf(2);
    spec.mutable_checkpoint()->set_directory("/c");
    const JobId id = h.Submit(spec);
    h.Ended(id, 0, on[0],
            {.ok = false, .error = kNoPath, .step = 0, .of_machine = true});
    ASSERT_TRUE((saves ? h.cluster.SaveAndCancel(id, h.now, h.actions)
                       : h.cluster.Cancel(id, h.now, h.actions))
                    .ok());
    h.Join("w2");
    h.Ended(id, 1, on[1], {.ok = false, .stopped = true});
    EXPECT_EQ(h.status(id).state(), FAILED) << h.status(id).reason();
  }
}

TEST(RunElsewhere, OneBadWorkerFailsNoJobOfAQueue) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  std::vector<JobId> jobs;
  for (int j = 0; j < 20; ++j) jobs.push_back(h.Submit(SpecOf(1)));
  int failures = 0;
  for (int event = 0; event < 200; ++event) {
    if (const int64_t job = h.worker(on[0]).job(); job != 0) {
      FailsThere(h, JobId(job));
      ++failures;
    }
    if (const int64_t job = h.worker(on[1]).job(); job != 0) {
      Succeeds(h, JobId(job));
    }
  }
  for (const JobId id : jobs) {
    EXPECT_EQ(h.status(id).state(), SUCCEEDED) << h.status(id).reason();
  }
  EXPECT_LE(failures, 4);
  const WorkerStatus& bad = h.worker(on[0]);
  EXPECT_EQ(bad.local_failures(), failures);
  EXPECT_EQ(bad.state(), WorkerStatus::IDLE);
  EXPECT_EQ(bad.set_aside(),
            absl::StrCat("jobs 1, 3, 4, 5 failed on it, and not elsewhere; "
                         "last: ",
                         kNoPath));
}

TEST(RunElsewhere, WhatFailsEverywhereIsTheJobsFault) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(5);
  for (int j = 0; j < 5; ++j) {
    const JobId id = h.Submit(SpecOf(1));
    for (int start = 0; start < Limits().starts_max; ++start) {
      ASSERT_EQ(h.status(id).state(), STARTING) << start;
      FailsThere(h, id);
    }
    EXPECT_EQ(h.status(id).state(), FAILED);
    EXPECT_TRUE(absl::StrContains(h.status(id).reason(), kNoPath));
    EXPECT_TRUE(absl::StrContains(h.status(id).reason(),
                                  "; its start failed "
                                  "on "))
        << h.status(id).reason();
  }
  for (const WorkerId id : on) {
    EXPECT_EQ(h.worker(id).local_failures(), 0);
    EXPECT_EQ(h.worker(id).set_aside(), "");
  }
}

TEST(RunElsewhere, WithoutAnotherWorkerTheJobFailsAtOnce) {
  for (const bool of_machine : {true, false}) {
    Harness h;
    h.JoinMany(of_machine ? 1 : 3);
    const JobId id = h.Submit(SpecOf(1));
    FailsThere(h, id, of_machine);
    EXPECT_EQ(h.status(id).state(), FAILED);
    EXPECT_EQ(h.status(id).reason(),
              absl::StrCat("w0 (rank 0) failed in its start: ", kNoPath));
  }
}

TEST(RunElsewhere, TheJobWaitsForABusyWorkerRatherThanForTheBadOne) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId first = h.Submit(SpecOf(1));
  const JobId second = h.Submit(SpecOf(1));
  ASSERT_EQ(OnOf(h, second), on[1]);
  FailsThere(h, second);
  EXPECT_EQ(h.status(second).state(), QUEUED);
  EXPECT_EQ(h.status(second).reason(),
            absl::StrCat("waits for 1 worker; 1 is idle: w1; 1 is busy with "
                         "job 1; on w1 its start failed: ",
                         kNoPath,
                         "; it tries that again at 13:47:40 UTC, if no other "
                         "worker is there"
                         "; after a repair troupe workers uncordon w1 lets it "
                         "start there again"));
  Succeeds(h, first);
  EXPECT_EQ(OnOf(h, second), on[0]);
}

TEST(RunElsewhere, AJobStartsAgainOnAWorkerThatAPersonHasMended) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  h.Submit(SpecOf(1));
  const JobId second = h.Submit(SpecOf(1));
  FailsThere(h, second);
  ASSERT_EQ(h.status(second).state(), QUEUED);
  CordonWorkerRequest mended;
  mended.set_name("w1");
  ASSERT_TRUE(h.cluster.CordonWorker(mended, h.now, h.actions).ok());
  h.Compile();
  EXPECT_EQ(OnOf(h, second), on[1]) << h.status(second).reason();
}

TEST(RunElsewhere, WhoIsMendedWhileTheOthersStopFailsNoJob) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(4);
  const JobId id = h.Submit(SpecOf(2));
  h.Ended(id, 0, on[0],
          {.ok = false, .error = kNoPath, .step = 0, .of_machine = true});
  CordonWorkerRequest mended;
  mended.set_name("w0");
  ASSERT_TRUE(h.cluster.CordonWorker(mended, h.now, h.actions).ok());
  h.Ended(id, 1, on[1], {.ok = false, .stopped = true});
  EXPECT_EQ(h.status(id).state(), STARTING) << h.status(id).reason();
}

// The first to come back to a scheduler that was started again.
TEST(RunElsewhere, ABadWorkerThatIsThereAloneGetsNoJobUntilOthersHadTime) {
  Harness h({.local_failures_max = 1});
  WorkerRecord bad;
  bad.name = "w0";
  bad.failures = {{JobId(7), "EIO"}};
  bad.set_aside = true;
  h.cluster.RestoreWorkers({bad});
  const JobId id = h.Submit(SpecOf(1));
  const WorkerId w0 = h.Join("w0");
  EXPECT_EQ(h.status(id).state(), QUEUED);
  h.Pass(Limits().adopt_max - absl::Seconds(2), {w0});
  EXPECT_EQ(h.status(id).state(), QUEUED);
  h.Pass(absl::Seconds(4), {w0});
  EXPECT_EQ(h.worker(w0).job(), id.value()) << h.status(id).reason();
}

TEST(RunElsewhere, AWorkerThatIsToLeaveIsNoOther) {
  RecoveryHarness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId first = h.Running({on[0]});
  const JobId second = h.Submit(SpecOf(1));
  h.Leaves(first, 0, on[0]);
  FailsThere(h, second);
  EXPECT_EQ(h.status(second).state(), FAILED) << h.status(second).reason();
}

TEST(RunElsewhere, WhereNoOthersAreLeftTheJobGoesBackThere) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId first = h.Submit(SpecOf(1));
  const JobId second = h.Submit(SpecOf(1));
  FailsThere(h, second);
  ASSERT_EQ(h.status(second).state(), QUEUED);
  h.Disconnect(on[0], "its host is gone");
  EXPECT_EQ(h.status(first).state(), STARTING);
  EXPECT_EQ(OnOf(h, first), on[1]);
  Succeeds(h, first);
  EXPECT_EQ(OnOf(h, second), on[1]);
}

TEST(RunElsewhere, ASchedulerThatReturnsInTheStartTriesElsewhereToo) {
  RecoveryHarness before;
  before.JoinMany(1);
  const JobId id = before.Submit(SpecOf(1));
  ASSERT_EQ(before.status(id).state(), STARTING);
  const auto h = Restarted(before);
  const WorkerId good = h->Join("good");
  const WorkerId bad = ComeBack(*h, "w0", HeldOf(id, 0, 0, 0, 1));
  h->Ended(id, 0, bad, {.ok = false, .error = kNoPath, .of_machine = true});
  EXPECT_EQ(h->status(id).state(), STARTING) << h->status(id).reason();
  EXPECT_EQ(OnOf(*h, id), good);
}

TEST(RunElsewhere, ALossInTheStartIsTriedElsewhereToo) {
  Harness h;
  std::vector<WorkerId> on = h.JoinMany(3);
  const JobId id = h.Submit(SpecOf(2));
  h.Disconnect(on[0], "killed");
  h.Ended(id, 1, on[1], {.ok = false, .error = "stopped", .stopped = true});
  h.Join("w0");  // a supervisor starts it again
  EXPECT_EQ(h.status(id).state(), STARTING) << h.status(id).reason();
  EXPECT_EQ(OnOf(h, id), on[1]);
  EXPECT_EQ(h.worker(on[2]).job(), id.value());
}

TEST(RunElsewhere, AWorkerThatDiesUnderSeveralJobsIsSetAside) {
  Harness h({.local_failures_max = 2});
  std::vector<WorkerId> on = h.JoinMany(4);
  for (int j = 1; j <= 2; ++j) {
    const JobId id = h.Running({on[0], on[1], on[2], on[3]});
    h.Disconnect(on[0], "killed");
    for (int r = 1; r < 4; ++r) {
      h.Ended(id, r, on[r], {.ok = false, .error = "stop", .stopped = true});
    }
    EXPECT_EQ(h.status(id).state(), FAILED);
    on[0] = h.Join("w0");
    EXPECT_EQ(h.worker(on[0]).local_failures(), j);
    EXPECT_EQ(h.worker(on[0]).set_aside().empty(), j == 1);
  }
  const JobId waits = h.Submit(SpecOf(4));
  EXPECT_EQ(h.status(waits).reason(),
            "waits for 4 workers; only 3 are in service: w1, w2, w3; 1 is set "
            "aside: w0");
  h.cluster.CordonWorker({}, h.now, h.actions).IgnoreError();
  CordonWorkerRequest back;
  back.set_name("w0");
  ASSERT_TRUE(h.cluster.CordonWorker(back, h.now, h.actions).ok());
  h.Compile();
  EXPECT_EQ(h.worker(on[0]).local_failures(), 0);
  EXPECT_EQ(h.status(waits).state(), STARTING) << h.status(waits).reason();
}

TEST(RunElsewhere, ALossAfterALongRunSaysNothingOfTheWorker) {
  Harness h({.local_failures_max = 1});
  std::vector<WorkerId> on = h.JoinMany(3);
  for (int j = 0; j < 3; ++j) {
    h.Running({on[0]});
    h.Pass(Limits().does_well_after, on);
    h.Disconnect(on[0], "its host was taken away");
    on[0] = h.Join("w0");
    EXPECT_EQ(h.worker(on[0]).local_failures(), 0);
    EXPECT_EQ(h.worker(on[0]).set_aside(), "");
  }
}

TEST(Cordon, ACordonedWorkerGetsNoRankAndKeepsTheOneThatItHas) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId first = h.Running({on[0]});
  CordonWorkerRequest request;
  request.set_name("w0");
  request.set_cordon(true);
  request.set_why("its fan is broken");
  const auto status = h.cluster.CordonWorker(request, h.now, h.actions);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_TRUE(status->cordoned());
  EXPECT_EQ(status->set_aside(), "cordoned: its fan is broken");
  EXPECT_EQ(h.status(first).state(), RUNNING);
  Succeeds(h, first);
  const JobId second = h.Submit(SpecOf(1));
  EXPECT_EQ(OnOf(h, second), on[1]);
  Succeeds(h, second);
  ASSERT_EQ(h.All<PersistWorker>().size(), 1u);
  EXPECT_TRUE(h.All<PersistWorker>()[0].record.cordoned);

  // Whatever process has the name.
  h.Disconnect(on[0], "restarted");
  EXPECT_TRUE(h.worker(h.Join("w0")).cordoned());
  Harness next;
  next.cluster.RestoreWorkers({h.All<PersistWorker>()[0].record});
  const WorkerId again = next.Join("w0");
  EXPECT_EQ(next.worker(again).set_aside(), "cordoned: its fan is broken");
  request.set_cordon(false);
  ASSERT_TRUE(next.cluster.CordonWorker(request, next.now, next.actions).ok());
  EXPECT_EQ(next.worker(again).set_aside(), "");
  EXPECT_TRUE(next.All<PersistWorker>()[0].record.empty());
  request.set_name("w7");
  EXPECT_TRUE(absl::IsNotFound(
      next.cluster.CordonWorker(request, next.now, next.actions).status()));
}

TEST(Cordon, AWorkerThatIsUnfitByItsOwnAccountGetsNoRank) {
  Harness h;
  Register request = RegisterOf("w0");
  request.add_unfit("nvme tier: /scratch: EROFS: mounted read-only");
  const auto id = h.cluster.RegisterWorker(request, h.now, h.actions);
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(h.worker(*id).set_aside(),
            "its machine is not fit: nvme tier: /scratch: EROFS: mounted "
            "read-only");
  EXPECT_EQ(h.status(h.Submit(SpecOf(1))).state(), QUEUED);
}

}  // namespace
}  // namespace troupe
