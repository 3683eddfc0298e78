// A job that goes well: start, rendezvous, steps, checkpoints, end.
#include "scheduler/cluster/run_control.h"

#include "gtest/gtest.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

// No worker has heard of the attempt by then, so that it says so in error.
TEST(RunControl, WhatIsSaidOfAnAttemptThatIsNotStoredIsDropped) {
  Harness h;
  h.stored_by_hand = true;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Submit(SpecOf(2));
  for (int r = 0; r < 2; ++r) {
    h.Ready(id, r, on[r]);
    h.Step(id, r, on[r], 1);
  }
  EXPECT_EQ(h.status(id).state(), STARTING);
  EXPECT_EQ(h.status(id).steps_done(), 0);
  h.stored_by_hand = false;
  h.answered_actions = 0;
  h.Compile();
  for (int r = 0; r < 2; ++r) h.Ready(id, r, on[r]);
  EXPECT_EQ(h.status(id).state(), RUNNING);
}

TEST(RunControl, HandsOutAllRanks) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(3);
  JobSpec spec = SpecOf(3);
  spec.mutable_checkpoint()->set_resume("/c/step-4");
  const JobId id = h.Submit(spec);
  EXPECT_EQ(h.status(id).state(), STARTING);
  EXPECT_EQ(h.status(id).reason(), "on w0, w1, w2");
  for (int rank = 0; rank < 3; ++rank) {
    const auto sent = h.Sent(on[rank]);
    ASSERT_EQ(sent.size(), 2u);
    EXPECT_TRUE(sent[0].has_registered());
    const Assignment& start = sent[1].start();
    EXPECT_EQ(start.ref().job(), id.value());
    EXPECT_EQ(start.ref().attempt(), 1);
    EXPECT_EQ(start.ref().rank(), rank);
    ASSERT_EQ(start.plan().roles_size(), 1);
    EXPECT_EQ(start.plan().rank(), rank);
    EXPECT_EQ(start.worker_names_size(), 3);
    EXPECT_EQ(start.resume(), "/c/step-4");
    EXPECT_EQ(start.collective_seconds_max(), 30);
    EXPECT_EQ(h.worker(on[rank]).rank(), rank);
  }
}

// A scheduler that crashes before the row is on the disk would give the job's
// number and attempt away again: no worker may know them by then.
TEST(RunControl, NobodyHearsOfAnAttemptBeforeItIsStored) {
  Harness h;
  h.stored_by_hand = true;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Submit(SpecOf(2));
  EXPECT_EQ(h.status(id).state(), STARTING);
  EXPECT_EQ(h.Sent(on[0]).size(), 1u) << "Registered";
  ASSERT_EQ(h.All<AwaitStored>().size(), 1u);
  const AwaitStored start = h.All<AwaitStored>()[0];
  EXPECT_EQ(start.attempt, 1);
  // The row that it waits for comes first.
  EXPECT_EQ(h.All<PersistJob>().back().row->attempt, 1);
  EXPECT_EQ(h.All<PersistJob>().back().row->status.state(), STARTING);
  EXPECT_TRUE(std::holds_alternative<AwaitStored>(h.actions.back()));
  h.Stored(start);
  EXPECT_TRUE(h.Sent(on[0]).back().has_start());
  EXPECT_TRUE(h.Sent(on[1]).back().has_start());
  const size_t actions = h.actions.size();
  h.Stored(start);
  EXPECT_EQ(h.actions.size(), actions) << "once";
}

// The disk is the scheduler's: no job fails of it.
TEST(RunControl, JobsWaitWhileTheirStartCannotBeStored) {
  Harness h;
  h.stored_by_hand = true;
  const std::vector<WorkerId> on = h.JoinMany(2);
  std::vector<JobId> jobs;
  for (int i = 0; i < 3; ++i) jobs.push_back(h.Submit(SpecOf(2)));
  const absl::Status full = absl::ResourceExhaustedError("disk full");
  h.Stored(h.All<AwaitStored>()[0], full);
  h.Compile();
  EXPECT_EQ(h.All<AwaitStored>().size(), 1u) << "no other is started";
  for (const JobId id : jobs) EXPECT_EQ(h.status(id).state(), QUEUED);
  EXPECT_EQ(h.status(jobs[0]).reason(),
            "waits until the scheduler can write its store again: disk full");
  EXPECT_EQ(h.status(jobs[0]).workers_size(), 0);
  EXPECT_EQ(h.status(jobs[1]).reason(), "waits behind job 1");
  EXPECT_EQ(h.cluster.workers().idle_count(), 2);
  const auto probes = [&h] { return h.All<AwaitStored>().size() - 1; };
  for (size_t asked = 1; asked <= 3; ++asked) {
    h.Pass(absl::Seconds(5), on);
    ASSERT_EQ(probes(), asked) << "one at a time";
    EXPECT_EQ(h.All<AwaitStored>().back().job, JobId());
    h.Stored(h.All<AwaitStored>().back(), full);
  }
  h.Pass(absl::Seconds(2), on);
  h.Stored(h.All<AwaitStored>().back());
  h.Compile();
  EXPECT_EQ(h.status(jobs[0]).state(), STARTING);
  EXPECT_EQ(h.status(jobs[0]).workers_size(), 2);
  EXPECT_EQ(h.Sent(on[0]).size(), 1u) << "Registered";
  EXPECT_EQ(h.All<AwaitStored>().back().attempt, 2) << "no number twice";
  h.Stored(h.All<AwaitStored>().back());
  EXPECT_TRUE(h.Sent(on[0]).back().has_start());
}

TEST(RunControl, AJobIsCancelledWhileTheStoreCannotBeWritten) {
  Harness h;
  h.stored_by_hand = true;
  h.JoinMany(2);
  const JobId id = h.Submit(SpecOf(2));
  const AwaitStored start = h.All<AwaitStored>()[0];
  h.Stored(start, absl::ResourceExhaustedError("disk full"));
  EXPECT_TRUE(h.cluster.Cancel(id, h.now, h.actions).ok());
  EXPECT_EQ(h.status(id).state(), CANCELLED);
  h.Stored(start);
  EXPECT_EQ(h.status(id).state(), CANCELLED);
}

TEST(RunControl, AStoreThatDoesNotAnswerHoldsNoWorkers) {
  Harness h;
  h.stored_by_hand = true;
  const std::vector<WorkerId> on = h.JoinMany(1);
  const JobId id = h.Submit(SpecOf(1));
  const AwaitStored start = h.All<AwaitStored>()[0];
  h.Pass(Limits().start_max + absl::Seconds(2), on);
  EXPECT_EQ(h.status(id).state(), QUEUED);
  EXPECT_EQ(h.status(id).reason(),
            "waits until the scheduler can write its store again: it has not "
            "answered for 5m");
  EXPECT_EQ(h.worker(on[0]).state(), WorkerStatus::IDLE);
  h.Stored(start);
  h.Compile();
  EXPECT_EQ(h.status(id).state(), STARTING);
  EXPECT_EQ(h.job(id).attempt, 2);
}

// However a job lets go of its workers, the next one gets them at once.
TEST(RunControl, TheNextJobTakesTheWorkersOfOneThatWasNeverHandedOut) {
  for (const bool save : {false, true}) {
    Harness h;
    h.stored_by_hand = true;
    h.JoinMany(2);
    JobSpec spec = SpecOf(2);
    spec.mutable_checkpoint()->set_directory("/c");
    const JobId first = h.Submit(spec);
    const JobId second = h.Submit(SpecOf(2));
    EXPECT_TRUE((save ? h.cluster.SaveAndCancel(first, h.now, h.actions)
                      : h.cluster.Cancel(first, h.now, h.actions))
                    .ok());
    h.Compile();
    EXPECT_EQ(h.status(first).state(), CANCELLED);
    EXPECT_EQ(h.status(second).state(), STARTING) << save;
  }
}

TEST(RunControl, WhatIsStoppedBeforeItIsStoredIsNeverHandedOut) {
  Harness h;
  h.stored_by_hand = true;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId cancelled = h.Submit(SpecOf(2));
  const AwaitStored start = h.All<AwaitStored>()[0];
  EXPECT_TRUE(h.cluster.Cancel(cancelled, h.now, h.actions).ok());
  EXPECT_EQ(h.status(cancelled).state(), CANCELLED);
  EXPECT_EQ(h.worker(on[0]).state(), WorkerStatus::IDLE);
  h.Stored(start);
  const JobId lost = h.Submit(SpecOf(2));
  h.Disconnect(on[1], "connection closed");
  EXPECT_EQ(h.status(lost).state(), QUEUED) << "others may do";
  EXPECT_EQ(h.worker(on[0]).state(), WorkerStatus::IDLE);
  EXPECT_EQ(h.Sent(on[0]).size(), 1u);
}

// Each worker's messages come in order, but one's may be much later than
// another's.
TEST(RunControl, OneRankMayEndBeforeItIsHeardThatAnotherBegan) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Submit(SpecOf(2, 3));
  h.Ready(id, 0, on[0]);
  for (int step = 1; step <= 3; ++step) h.Step(id, 0, on[0], step);
  h.Ended(id, 0, on[0], {.step = 3});
  EXPECT_EQ(h.status(id).state(), STARTING);
  h.Ready(id, 1, on[1]);
  EXPECT_EQ(h.status(id).state(), RUNNING);
  for (int step = 1; step <= 3; ++step) h.Step(id, 1, on[1], step);
  h.Ended(id, 1, on[1], {.step = 3});
  EXPECT_EQ(h.status(id).state(), SUCCEEDED);
  EXPECT_EQ(h.status(id).steps_done(), 3);
}

TEST(RunControl, AResumedJobWithNothingLeftToDoCountsItsSteps) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Submit(SpecOf(2, 3));
  for (int rank = 0; rank < 2; ++rank) {
    h.Ready(id, rank, on[rank], 4);
    h.Ended(id, rank, on[rank], {.step = 3});
  }
  EXPECT_EQ(h.status(id).state(), SUCCEEDED);
  EXPECT_EQ(h.status(id).steps_done(), 3);
}

TEST(RunControl, WhoWasNeverReadyHasNotSucceeded) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(1);
  const JobId id = h.Submit(SpecOf(1, 3));
  h.Ended(id, 0, on[0], {.step = 3});
  EXPECT_EQ(h.status(id).state(), FAILED);
  EXPECT_EQ(h.status(id).reason(), "w0 (rank 0) ended before it was ready");
}

TEST(RunControl, RunsToTheEnd) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Submit(SpecOf(2, 3));
  h.Ready(id, 1, on[1]);
  EXPECT_EQ(h.status(id).state(), STARTING);
  h.Ready(id, 0, on[0]);
  EXPECT_EQ(h.status(id).state(), RUNNING);
  for (int step = 1; step <= 3; ++step) {
    h.Step(id, 0, on[0], step);
    EXPECT_EQ(h.status(id).steps_done(), step - 1);
    h.Step(id, 1, on[1], step);
    EXPECT_EQ(h.status(id).steps_done(), step);
  }
  EXPECT_DOUBLE_EQ(h.status(id).last_step().step_seconds(), 0.2);
  EXPECT_DOUBLE_EQ(h.status(id).last_step().tokens_per_second(), 500);
  h.Ended(id, 0, on[0], {.step = 3});
  EXPECT_EQ(h.worker(on[0]).state(), WorkerStatus::IDLE);
  EXPECT_EQ(h.status(id).state(), RUNNING);
  h.Ended(id, 1, on[1], {.step = 3});
  EXPECT_EQ(h.status(id).state(), SUCCEEDED);
  EXPECT_EQ(h.worker(on[1]).state(), WorkerStatus::IDLE);
  EXPECT_EQ(h.job(id).run, nullptr);
}

TEST(RunControl, StepsSayHowTheSlowestMachineIs) {
  Harness h;
  const std::vector<WorkerId> on = {h.Join("a", "x"), h.Join("b", "y")};
  const JobId id = h.Running(on);
  h.Step(id, 0, on[0], 1);
  h.Step(id, 1, on[1], 1);
  EXPECT_FALSE(h.status(id).last_step().has_machine());
  const auto heartbeat = [&](WorkerId from, double stolen) {
    WorkerMessage message;
    message.mutable_heartbeat()->mutable_machine()->set_stolen_share(stolen);
    h.Send(from, message);
  };
  heartbeat(on[0], 0.1);
  heartbeat(on[1], 0.2);
  h.Step(id, 0, on[0], 2);
  h.Step(id, 1, on[1], 2);
  EXPECT_DOUBLE_EQ(h.status(id).last_step().machine().stolen(), 0.2);
  EXPECT_DOUBLE_EQ(h.status(id).last_step().machine().slower(), 0.25);
  // It keeps what it said last.
  h.Heartbeat(on[1]);
  h.Step(id, 0, on[0], 3);
  h.Step(id, 1, on[1], 3);
  EXPECT_DOUBLE_EQ(h.status(id).last_step().machine().slower(), 0.25);
}

TEST(RunControl, ResumedJobsCountFromTheirCheckpoint) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(1);
  const JobId id = h.Submit(SpecOf(1));
  h.Ready(id, 0, on[0], 8);
  EXPECT_EQ(h.status(id).steps_done(), 7);
  EXPECT_EQ(h.job(id).events.back().text(), "resumed after step 7");
}

TEST(RunControl, RanksMeet) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(3);
  const JobId id = h.Submit(SpecOf(3));
  const auto get = [&](int rank) {
    WorkerMessage message;
    *message.mutable_store_get()->mutable_ref() = h.Ref(id, rank);
    message.mutable_store_get()->set_key("k");
    h.Send(on[rank], message);
  };
  h.ClearActions();
  get(1);
  EXPECT_TRUE(h.Sent(on[1]).empty());
  WorkerMessage set;
  *set.mutable_store_set()->mutable_ref() = h.Ref(id, 0);
  set.mutable_store_set()->set_key("k");
  set.mutable_store_set()->set_value("v");
  h.Send(on[0], set);
  get(2);
  for (const int rank : {1, 2}) {
    const auto sent = h.Sent(on[rank]);
    ASSERT_EQ(sent.size(), 1u) << rank;
    EXPECT_EQ(sent[0].store_value().value(), "v");
    EXPECT_EQ(sent[0].store_value().ref().rank(), rank);
  }
  EXPECT_TRUE(h.Sent(on[0]).empty());
}

TEST(RunControl, WhatTheRanksWarnOfIsAnEventOnce) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Submit(SpecOf(2));
  for (const int rank : {0, 1}) {
    WorkerMessage ready;
    *ready.mutable_rank_ready()->mutable_ref() = h.Ref(id, rank);
    ready.mutable_rank_ready()->set_first_step(4);
    ready.mutable_rank_ready()->add_warnings("skipping checkpoint /c/step-5");
    if (rank == 0) ready.mutable_rank_ready()->add_warnings("of rank 0");
    h.Send(on[rank], ready);
  }
  EXPECT_EQ(h.status(id).state(), RUNNING);
  for (const char* text : {"skipping checkpoint /c/step-5", "of rank 0"}) {
    int warned = 0;
    for (const JobEvent& event : h.job(id).events) {
      warned += event.text() == text;
    }
    EXPECT_EQ(warned, 1) << text;
  }
}

// A job that has nothing left to train writes none, and its user wants a text.
TEST(RunControl, WhatItResumedIsItsNewestCheckpointUntilItHasOne) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(3);
  const JobId id = h.Submit(SpecOf(2));
  GenerateRequest text;
  text.set_job(id.value());
  text.set_prompt("In the beginning");
  text.set_max_new_tokens(1);
  text.set_ignore_eos(true);
  EXPECT_TRUE(
      absl::IsNotFound(h.cluster.Generate(text, h.now, h.actions).status()));
  for (const int rank : {0, 1}) {
    WorkerMessage ready;
    *ready.mutable_rank_ready()->mutable_ref() = h.Ref(id, rank);
    ready.mutable_rank_ready()->set_first_step(5);
    ready.mutable_rank_ready()->set_resumed_from(rank == 0 ? "/c/step-4" : "x");
    h.Send(on[rank], ready);
  }
  EXPECT_EQ(h.status(id).resumed_from(), "/c/step-4");
  EXPECT_EQ(h.All<PersistJob>().back().row->status.resumed_from(), "/c/step-4");
  const auto asked = h.cluster.Generate(text, h.now, h.actions);
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(h.Sent(on[2]).back().read_job().checkpoint(), "/c/step-4");
}

TEST(RunControl, CheckpointsAreCommittedByRankZero) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Running(on);
  h.ClearActions();
  for (const int rank : {1, 0}) {
    EXPECT_TRUE(h.Sent(on[0]).empty());
    WorkerMessage shard;
    *shard.mutable_shard()->mutable_ref() = h.Ref(id, rank);
    shard.mutable_shard()->set_step(5);
    shard.mutable_shard()->set_write(1);
    h.Send(on[rank], shard);
  }
  ASSERT_EQ(h.Sent(on[0]).size(), 1u);
  EXPECT_EQ(h.Sent(on[0])[0].commit().shards_size(), 2);
  EXPECT_EQ(h.Sent(on[0])[0].commit().ref().rank(), 0);
  EXPECT_TRUE(h.Sent(on[1]).empty());
  WorkerMessage committed;
  *committed.mutable_committed()->mutable_ref() = h.Ref(id, 0);
  committed.mutable_committed()->mutable_checkpoint()->set_path("/c/step-5");
  h.Send(on[0], committed);
  ASSERT_EQ(h.status(id).checkpoints_size(), 1);
  EXPECT_EQ(h.status(id).checkpoints(0).path(), "/c/step-5");
}

TEST(RunControl, LateAndForeignMessagesAreDropped) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(3);
  const JobId id = h.Submit(SpecOf(2));
  h.Ready(id, 0, on[1]);  // has rank 1
  h.Ready(id, 0, on[2]);  // has none
  h.Ready(id, 7, on[0]);  // there is none
  WorkerMessage late;
  *late.mutable_ended()->mutable_ref() = h.Ref(id, 0);
  late.mutable_ended()->mutable_ref()->set_attempt(0);
  h.Send(on[0], late);
  WorkerMessage nowhere;
  nowhere.mutable_ended()->mutable_ref()->set_job(99);
  h.Send(on[0], nowhere);
  h.Send(on[0], WorkerMessage());
  EXPECT_EQ(h.status(id).state(), STARTING);
  EXPECT_EQ(h.job(id).run->ranks[0].state, RankSeat::kStarting);
}

}  // namespace
}  // namespace troupe
