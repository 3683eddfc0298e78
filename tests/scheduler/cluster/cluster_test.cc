#include "scheduler/cluster/cluster.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

TEST(Cluster, AJobStartsOnAllItsRanksOrOnNone) {
  Harness h;
  h.JoinMany(3);
  const JobId id = h.Submit(SpecOf(4));
  EXPECT_EQ(h.status(id).state(), QUEUED);
  EXPECT_EQ(h.status(id).reason(),
            "waits for 4 workers; only 3 are registered: w0, w1, w2");
  EXPECT_EQ(h.cluster.workers().Idle().size(), 3u);
  h.Join("w3");
  EXPECT_EQ(h.status(id).state(), STARTING);
  EXPECT_TRUE(h.cluster.workers().Idle().empty());
}

TEST(Cluster, TheQueueIsServedInOrder) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId first = h.Running({on[0]});
  const JobId large = h.Submit(SpecOf(2));
  const JobId small = h.Submit(SpecOf(1));
  const JobId huge = h.Submit(SpecOf(9));
  EXPECT_EQ(h.status(large).reason(),
            "waits for 2 workers; 1 is idle: w1; 1 is busy with job 1");
  EXPECT_EQ(h.status(small).reason(), "waits behind job 2");
  EXPECT_EQ(h.status(huge).reason(),
            "waits for 9 workers; only 2 are registered: w0, w1");
  h.Ended(first, 0, on[0], {});
  EXPECT_EQ(h.status(large).state(), STARTING);
  EXPECT_EQ(h.status(small).state(), QUEUED);
}

TEST(Cluster, AJobForWhichTheClusterIsTooSmallHoldsNobodyBack) {
  Harness h;
  h.JoinMany(2);
  const JobId huge = h.Submit(SpecOf(9));
  const JobId small = h.Submit(SpecOf(2));
  EXPECT_EQ(h.status(huge).state(), QUEUED);
  EXPECT_EQ(h.status(small).state(), STARTING);
}

TEST(Cluster, TwoJobsDoNotSaveInOneDirectory) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(3);
  JobSpec spec = SpecOf(1);
  spec.mutable_checkpoint()->set_directory("/c");
  const JobId first = h.Submit(spec);
  spec.mutable_checkpoint()->set_directory("/c/./");
  const JobId again = h.Submit(spec);
  spec.mutable_checkpoint()->set_directory("/d");
  const JobId elsewhere = h.Submit(spec);
  EXPECT_EQ(h.status(first).state(), STARTING);
  EXPECT_EQ(h.status(again).reason(),
            "waits for the end of job 1, whose checkpoint.directory is the "
            "same");
  EXPECT_EQ(h.status(elsewhere).state(), STARTING) << "it holds nobody back";
  h.Ended(first, 0, on[0], {});
  EXPECT_EQ(h.status(again).state(), STARTING);
}

TEST(Cluster, RefusesWhatIsWrongAndWhatCannotFit) {
  Harness h;
  JobSpec wrong = SpecOf(1);
  wrong.set_name("wrong");
  EXPECT_EQ(h.TrySubmit(wrong).status().message(), "name: this one is wrong");
  JobSpec large = SpecOf(1);
  large.mutable_model()->set_hidden_size(5000);
  // With no worker nobody knows whether it fits: it waits, and fails then.
  const JobId id = h.Submit(large);
  h.Join("w0");
  EXPECT_EQ(h.status(id).state(), FAILED);
  EXPECT_EQ(h.status(id).reason(),
            "model.hidden_size: rank 0 needs more memory");
  EXPECT_TRUE(absl::IsInvalidArgument(h.TrySubmit(large).status()));
  EXPECT_EQ(h.cluster.jobs().all().size(), 1u);
}

TEST(Cluster, FindsTheWorkersThatAreLargeEnough) {
  Harness h;
  h.JoinMany(2);
  Register large = RegisterOf("z-large");
  large.mutable_worker()->mutable_budgets(0)->set_bytes(10000);
  const WorkerId id = *h.cluster.RegisterWorker(large, h.now, h.actions);
  JobSpec spec = SpecOf(1);
  spec.mutable_model()->set_hidden_size(5000);
  const JobId first = h.Submit(spec);
  EXPECT_EQ(h.status(first).workers(0), "z-large");
  const JobId second = h.Submit(spec);
  const JobId third = h.Submit(SpecOf(1));
  EXPECT_EQ(h.status(second).state(), QUEUED);
  EXPECT_EQ(h.status(second).reason(),
            "waits for busy workers, for the idle ones have too little "
            "memory: model.hidden_size: rank 0 needs more memory");
  EXPECT_EQ(h.status(third).reason(), "waits behind job 2");
  h.Ended(first, 0, id, {});
  EXPECT_EQ(h.status(second).state(), STARTING);
  EXPECT_EQ(h.status(third).state(), STARTING);
}

TEST(Cluster, PlansWithoutRunning) {
  Harness h;
  EXPECT_TRUE(
      absl::IsFailedPrecondition(h.cluster.PlanJob(SpecOf(2)).status()));
  h.JoinMany(2);
  const auto compilation = h.cluster.PlanJob(SpecOf(2));
  ASSERT_TRUE(compilation.ok());
  const CompileOutcome outcome = CompileFirstFit(h.compiler, *compilation);
  EXPECT_EQ(outcome.compiled.plan->mesh().axes(0).size(), 2);
  EXPECT_TRUE(h.cluster.jobs().all().empty());
}

// A job whose turn has come, with its compilation in the test's hands.
struct Planned : Harness {
  Planned() {
    by_hand = true;
    on = JoinMany(2);
    id = *cluster.Submit(SpecOf(2), {}, now, actions);
    CHECK_EQ(status(id).reason(), "is being planned");
  }
  CompileJob Asked() const { return All<CompileJob>().back(); }
  std::vector<WorkerId> on;
  JobId id;
};

JobSpec OpenSpec() {
  JobSpec spec = SpecOf(1);
  spec.mutable_parallelism()->clear_data();
  spec.mutable_parallelism()->set_mode("auto");
  return spec;
}

// What was chosen is the job from then on: each later planning has the same.
TEST(Cluster, AnOpenJobIsPlannedForTheWorkersThatAreThere) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(4);
  const JobId id = h.Submit(OpenSpec());
  EXPECT_EQ(h.status(id).state(), STARTING);
  EXPECT_FALSE(h.job(id).spec.parallelism().has_mode());
  EXPECT_EQ(h.job(id).spec.parallelism().data(), 3);
  EXPECT_EQ(h.job(id).ranks_needed, 3);
  EXPECT_EQ(h.worker(on[3]).job(), 0) << "it is left for others";
  const JobId second = h.Submit(OpenSpec());
  EXPECT_EQ(h.job(second).spec.parallelism().data(), 1) << "one is idle";
  EXPECT_EQ(h.status(second).state(), STARTING);
  const JobId third = h.Submit(OpenSpec());
  EXPECT_EQ(h.job(third).spec.parallelism().data(), 3) << "all are busy";
  EXPECT_EQ(h.status(third).state(), QUEUED);
}

TEST(Cluster, AnOpenJobIsRefusedWhereNoWorkerIs) {
  Harness h;
  const absl::Status refused = h.TrySubmit(OpenSpec()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              testing::HasSubstr("parallelism: auto"));
  h.JoinMany(2);
  JobSpec large = OpenSpec();
  large.mutable_model()->set_hidden_size(5000);
  EXPECT_TRUE(absl::IsInvalidArgument(h.TrySubmit(large).status()));
}

TEST(Cluster, IsThereWhileAJobIsPlanned) {
  Planned h;
  h.Heartbeat(h.on[0]);
  h.Tick(absl::Seconds(1));
  const JobId behind = *h.cluster.Submit(SpecOf(1), {}, h.now, h.actions);
  EXPECT_EQ(h.status(behind).reason(), "waits behind job 1");
  EXPECT_EQ(h.All<CompileJob>().size(), 1u) << "one job at a time, and once";
  h.Compiled(h.Asked());
  EXPECT_EQ(h.status(h.id).state(), STARTING);
  EXPECT_EQ(h.Sent(h.on[1]).back().start().plan().rank(), 1);
}

TEST(Cluster, AJobThatIsCancelledWhileItIsPlannedNeverStarts) {
  Planned h;
  ASSERT_TRUE(h.cluster.Cancel(h.id, h.now, h.actions).ok());
  h.Compiled(h.Asked());
  EXPECT_EQ(h.status(h.id).state(), CANCELLED);
  EXPECT_EQ(h.cluster.workers().idle_count(), 2);
}

TEST(Cluster, AJobWhoseWorkersAreLostWhileItIsPlannedIsPlannedForOthers) {
  Planned h;
  h.Join("w2");
  h.Disconnect(h.on[1], "connection closed");
  const CompileJob first = h.Asked();
  h.Compiled(first);
  EXPECT_EQ(h.status(h.id).state(), QUEUED);
  const CompileJob second = h.Asked();
  EXPECT_GT(second.compilation->number, first.compilation->number);
  h.Compiled(first);  // once more: nobody waits for it
  EXPECT_EQ(h.status(h.id).state(), QUEUED);
  h.Compiled(second);
  EXPECT_EQ(h.status(h.id).state(), STARTING);
  EXPECT_EQ(h.status(h.id).workers(1), "w2");
}

TEST(Cluster, AJobThatNoLongerHasWorkersEnoughWaitsForThem) {
  Planned h;
  h.Disconnect(h.on[1], "connection closed");
  h.Compiled(h.Asked());
  EXPECT_EQ(h.status(h.id).reason(),
            "waits for 2 workers; only 1 is registered: w0");
}

TEST(Cluster, ARefusalForWorkersOfThePastIsAskedAgain) {
  Harness h;
  h.by_hand = true;
  JobSpec large = SpecOf(1);
  large.mutable_model()->set_hidden_size(5000);
  const JobId id = *h.cluster.Submit(large, {}, h.now, h.actions);
  h.Join("small");
  const CompileJob asked = h.All<CompileJob>().back();
  Register has_room = RegisterOf("z-large");
  has_room.mutable_worker()->mutable_budgets(0)->set_bytes(10000);
  ASSERT_TRUE(h.cluster.RegisterWorker(has_room, h.now, h.actions).ok());
  h.Compiled(asked);
  EXPECT_EQ(h.status(id).state(), QUEUED);
  h.Compiled(h.All<CompileJob>().back());
  EXPECT_EQ(h.status(id).workers(0), "z-large");
}

TEST(Cluster, TheQueueIsBounded) {
  Harness h({.jobs_queued_max = 3});
  for (int i = 0; i < 3; ++i) h.Submit(SpecOf(1));
  EXPECT_TRUE(absl::IsResourceExhausted(h.TrySubmit(SpecOf(1)).status()));
}

// One that asks for all that it can get leaves places for others.
TEST(Cluster, AClientHasAShareOfTheQueue) {
  Harness h({.jobs_queued_max = 8});
  const auto submit = [&](const std::string& client) {
    return h.cluster
        .Submit(SpecOf(1), {}, h.now, h.actions, {.client = client})
        .status();
  };
  const auto submit_all = [&](const std::string& client) {
    int taken = 0;
    while (submit(client).ok()) ++taken;
    return taken;
  };
  EXPECT_EQ(submit_all("ada"), 4);
  EXPECT_EQ(submit("ada").message(),
            "4 jobs of ada wait in the queue, its share: half of the places "
            "that other clients leave free, of 8; submit again when some have "
            "started, or cancel some");
  EXPECT_TRUE(
      absl::IsResourceExhausted(h.cluster.Consider(SpecOf(1), "ada").status()));
  EXPECT_EQ(submit_all("bob"), 2);
  EXPECT_EQ(submit_all("eve"), 1);
  EXPECT_EQ(submit_all("zoe"), 1);
  EXPECT_EQ(submit("tom").message(),
            "the queue is full: 8 jobs wait; submit again when some have "
            "started");
  // A user who has fewer now may have others again.
  ASSERT_TRUE(h.cluster.Cancel(JobId(1), h.now, h.actions, "ada").ok());
  EXPECT_TRUE(submit("ada").ok() || submit("tom").ok());
  EXPECT_EQ(h.status(JobId(1)).submitted_by(), "ada");
  EXPECT_EQ(h.job(JobId(1)).events[1].text(), "submitted by ada");
  EXPECT_EQ(h.job(JobId(1)).events[2].text(), "cancelled by ada");
}

// What takes long to plan keeps the workers from nobody: those behind it start.
TEST(Cluster, OneSlowPlanDelaysNoOtherJobsStart) {
  Harness h({.planning_patience = absl::Seconds(2)});
  h.by_hand = true;
  h.JoinMany(2);
  const auto submit = [&](int ranks) {
    return *h.cluster.Submit(SpecOf(ranks), {}, h.now, h.actions);
  };
  const JobId slow = submit(2);
  const CompileJob asked = h.All<CompileJob>().back();
  const JobId quick = submit(1);
  EXPECT_EQ(h.status(quick).reason(), "waits behind job 1");
  h.Tick(absl::Seconds(1));
  EXPECT_EQ(h.status(quick).reason(), "waits behind job 1");
  h.Tick(absl::Seconds(1));
  EXPECT_EQ(h.status(quick).reason(), "is being planned");
  h.Compiled(h.All<CompileJob>().back());
  EXPECT_EQ(h.status(quick).state(), STARTING);
  // Its workers are busy now. It is overtaken once: from here on it is the
  // first.
  h.Compiled(asked);
  EXPECT_EQ(h.status(slow).state(), QUEUED);
  const JobId next = submit(1);
  h.Tick(absl::Seconds(10));
  EXPECT_EQ(h.status(next).reason(), "waits behind job 1");
}

TEST(Cluster, CancelsWhatWaits) {
  Harness h;
  const JobId first = h.Submit(SpecOf(1));
  const JobId second = h.Submit(SpecOf(1));
  EXPECT_TRUE(h.cluster.Cancel(first, h.now, h.actions).ok());
  EXPECT_EQ(h.status(first).state(), CANCELLED);
  h.Join("w");
  EXPECT_EQ(h.status(second).state(), STARTING);
  EXPECT_TRUE(absl::IsNotFound(h.cluster.Cancel(JobId(99), h.now, h.actions)));
}

TEST(Cluster, TakesTheNextJobAfterALostWorker) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId first = h.Running(on);
  const JobId second = h.Submit(SpecOf(1));
  h.Disconnect(on[1], "connection closed");
  EXPECT_EQ(h.status(second).state(), QUEUED);
  h.Ended(first, 0, on[0], {.ok = false, .error = "stopped"});
  EXPECT_EQ(h.status(first).state(), FAILED);
  EXPECT_EQ(h.status(second).state(), STARTING);
}

TEST(Cluster, TheDeadAreNotHeard) {
  Harness h;
  const WorkerId worker = h.Join("w");
  h.Disconnect(worker, "connection closed");
  h.ClearActions();
  h.Disconnect(worker, "again");
  h.Heartbeat(worker);
  EXPECT_TRUE(h.actions.empty());
  EXPECT_EQ(h.worker(worker).reason(), "connection closed");
}

TEST(Cluster, AWorkerCanBeSilentAndStuckAtOnce) {
  Harness h({.gone_workers_kept = 0});
  const WorkerId worker = h.Join("w");
  const JobId id = h.Running({worker});
  ASSERT_TRUE(h.cluster.Cancel(id, h.now, h.actions).ok());
  h.Tick(absl::Minutes(5));
  EXPECT_EQ(h.cluster.workers().Find(worker), nullptr);
  EXPECT_EQ(h.status(id).state(), CANCELLED);
}

TEST(Cluster, GeneratesFromAJobsNewestCheckpoint) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Running({on[0]});
  GenerateRequest request;
  request.set_job(id.value());
  request.set_max_new_tokens(1);
  EXPECT_TRUE(
      absl::IsNotFound(h.cluster.Generate(request, h.now, h.actions).status()));
  WorkerMessage committed;
  *committed.mutable_committed()->mutable_ref() = h.Ref(id, 0);
  committed.mutable_committed()->mutable_checkpoint()->set_path("/c/5");
  h.Send(on[0], committed);
  ASSERT_TRUE(h.cluster.Generate(request, h.now, h.actions).ok());
  EXPECT_EQ(h.Sent(on[1]).back().read_job().checkpoint(), "/c/5");
}

TEST(Cluster, RestoredJobsRun) {
  Harness before;
  const JobId id = before.Submit(SpecOf(1));
  StoredJob stored;
  stored.row = *before.All<PersistJob>().back().row;
  Harness after;
  std::vector<StoredJob> jobs;
  jobs.push_back(std::move(stored));
  after.cluster.Restore(std::move(jobs), after.now, after.actions);
  EXPECT_EQ(after.status(id).state(), QUEUED);
  EXPECT_EQ(after.status(id).reason(),
            "waits for 1 worker; none is registered");
  after.Join("w");
  EXPECT_EQ(after.status(id).state(), STARTING);
}

TEST(Cluster, DrainSavesWhatRunsAndStartsNothing) {
  Harness h;
  const WorkerId on = h.Join("w0");
  JobSpec spec = SpecOf(1);
  spec.mutable_checkpoint()->set_directory("/c");
  const JobId running = h.Submit(spec);
  h.Ready(running, 0, on);
  h.Step(running, 0, on, 1);
  const JobId queued = h.Submit(SpecOf(1));
  h.ClearActions();
  h.cluster.Drain("the scheduler was asked to end (SIGTERM)", h.now, h.actions);
  ASSERT_EQ(h.Sent(on).size(), 1u);
  EXPECT_TRUE(h.Sent(on)[0].stop().checkpoint());
  h.Ended(running, 0, on, {.ok = false, .stopped = true});
  EXPECT_EQ(h.status(running).reason(),
            "the scheduler was asked to end (SIGTERM) after step 1; it could "
            "not be saved");
  EXPECT_EQ(h.status(queued).state(), QUEUED);
  h.Join("w1");
  EXPECT_EQ(h.status(queued).state(), QUEUED);
  const JobId late = h.Submit(SpecOf(1));
  for (const JobId id : {queued, late}) {
    EXPECT_EQ(h.status(id).reason(),
              "waits for the next scheduler, for this one was asked to end");
  }
}

TEST(Cluster, SchedulesWhatEventsLeftAtTheNextTick) {
  Harness h;
  const JobId id = h.Submit(SpecOf(2));
  h.cluster.set_schedules_later(true);
  h.Join("w0");
  h.Join("w1");
  EXPECT_EQ(h.status(id).state(), QUEUED);
  EXPECT_TRUE(h.cluster.has_scheduling_left());
  h.Tick(absl::Milliseconds(200));
  EXPECT_EQ(h.status(id).state(), STARTING);
}

TEST(Cluster, DoesAtOnceWhatClientsAskFor) {
  Harness h;
  h.cluster.set_schedules_later(true);
  h.Join("w0");
  const JobId id = h.Submit(SpecOf(1));
  EXPECT_EQ(h.status(id).state(), STARTING);
}

}  // namespace
}  // namespace troupe
