#include "scheduler/cluster/job_table.h"

#include <iterator>
#include <set>

#include "gtest/gtest.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1000);

StepRecord StepOf(int64_t step) {
  StepRecord record;
  record.set_step(step);
  return record;
}

TEST(JobTable, EveryChangeIsPersistedAndTold) {
  JobTable table({});
  Actions actions;
  Job& job = table.Add(SpecOf(1), 1, kNow, actions);
  EXPECT_EQ(job.status.state(), QUEUED);
  EXPECT_EQ(job.status.steps_total(), 10);
  table.SetState(job, RUNNING, "", kNow, actions);
  table.AddStep(job, StepOf(1), actions);
  int jobs = 0, steps = 0, events = 0, told = 0;
  for (const Action& action : actions) {
    jobs += std::holds_alternative<PersistJob>(action);
    steps += std::holds_alternative<PersistStep>(action);
    events += std::holds_alternative<PersistEvent>(action);
    told += std::holds_alternative<NotifyJob>(action);
  }
  EXPECT_EQ(jobs, 2);
  EXPECT_EQ(steps, 1);
  EXPECT_EQ(events, 2);
  EXPECT_GE(told, 3);
  EXPECT_EQ(job.status.started_unix_ms(), 1000'000);
  EXPECT_EQ(job.status.steps_done(), 1);
}

TEST(JobTable, ADirectoryIsHeldAsLongAsTheRunThatSavesThere) {
  JobTable table({});
  Actions actions;
  JobSpec spec = SpecOf(1);
  Job& nowhere = table.Add(spec, 1, kNow, actions);
  spec.mutable_checkpoint()->set_directory("/c");
  Job& first = table.Add(spec, 1, kNow, actions);
  spec.mutable_checkpoint()->set_directory("/c/./");
  Job& second = table.Add(spec, 1, kNow, actions);
  const auto run = [] {
    return std::make_unique<troupe::Run>(1, Plan(), Limits());
  };
  table.BeginRun(nowhere, run(), PhaseEvent::kPlaced, phase::Storing{});
  EXPECT_EQ(table.SavesInPlaceOf(second), nullptr);
  table.BeginRun(first, run(), PhaseEvent::kPlaced, phase::Storing{});
  EXPECT_EQ(table.SavesInPlaceOf(second), &first);
  EXPECT_EQ(table.SavesInPlaceOf(nowhere), nullptr);
  table.EndRun(nowhere);
  EXPECT_EQ(table.SavesInPlaceOf(second), &first);
  table.EndRun(first);
  EXPECT_EQ(table.SavesInPlaceOf(second), nullptr);
}

TEST(JobTable, AReasonThatIsCutIsToldOnceToo) {
  JobTable table({});
  Actions actions;
  Job& job = table.Add(SpecOf(1), 1, kNow, actions);
  const std::string reason(Limits().reason_bytes_max + 1, 'x');
  actions.clear();
  table.SetWaitReason(job, reason, actions);
  EXPECT_EQ(actions.size(), 1u);
  table.SetWaitReason(job, reason, actions);
  EXPECT_EQ(actions.size(), 1u);
}

TEST(JobTable, KeepsTheNewestTracesThatFit) {
  Timeline trace;
  for (int i = 0; i < 100; ++i) trace.add_ranks()->add_spans()->set_unit(i);
  const int64_t bytes = trace.SpaceUsedLong();
  JobTable table({.trace_bytes_per_job_max = 3 * bytes});
  Actions actions;
  Job& job = table.Add(SpecOf(1), 1, kNow, actions);
  const auto add = [&](int step) {
    trace.set_step(step);
    table.AddTrace(job, trace);
  };
  for (const int step : {10, 20, 30, 40}) add(step);
  EXPECT_LT(job.measured.size(), 4u);
  EXPECT_EQ(job.measured.back()->step(), 40);
  add(30);
  EXPECT_EQ(job.measured.back()->step(), 30) << "a new attempt";
  for (int i = 0; i < 1000; ++i) trace.add_ranks()->add_spans()->set_unit(i);
  add(50);
  ASSERT_EQ(job.measured.size(), 1u) << "the last one in any case";
  EXPECT_EQ(job.measured[0]->step(), 50);
}

// Of all jobs together they are bounded, too: the oldest that have ended make
// room, those that run keep theirs.
TEST(JobTable, TimelinesOfEndedJobsMakeRoom) {
  Timeline trace;
  for (int i = 0; i < 100; ++i) trace.add_ranks()->add_spans()->set_unit(i);
  const int64_t bytes = trace.SpaceUsedLong();
  JobTable table({.ended_jobs_kept = 5, .timeline_bytes_kept_max = 6 * bytes});
  Actions actions;
  const auto sum = [&] {
    int64_t all = 0;
    for (const auto& [id, job] : table.all()) {
      if (job->predicted) all += job->predicted->SpaceUsedLong();
      for (const auto& one : job->measured) all += one->SpaceUsedLong();
    }
    return all;
  };
  Job& runs = table.Add(SpecOf(1), 1, kNow, actions);
  table.SetPredicted(runs, std::make_shared<const Timeline>(trace));
  table.AddTrace(runs, trace);
  std::vector<JobId> ended;
  for (int i = 0; i < 20; ++i) {
    Job& job = table.Add(SpecOf(1), 1, kNow, actions);
    table.SetPredicted(job, std::make_shared<const Timeline>(trace));
    table.AddTrace(job, trace);
    table.SetState(job, FAILED, "", kNow, actions);
    ended.push_back(job.id);
    EXPECT_LE(sum(), 6 * bytes);
  }
  EXPECT_GT(sum(), 5 * bytes) << "the room is used";
  EXPECT_NE(runs.predicted, nullptr);
  EXPECT_EQ(runs.measured.size(), 1u);
  EXPECT_NE(table.Find(ended[18])->predicted, nullptr);
  EXPECT_EQ(table.Find(ended[17])->predicted, nullptr);
  EXPECT_TRUE(table.Find(ended[17])->measured.empty());
}

TEST(JobTable, EndIsFinal) {
  JobTable table({});
  Actions actions;
  Job& job = table.Add(SpecOf(1), 1, kNow, actions);
  table.SetState(job, FAILED, "why", kNow, actions);
  EXPECT_DEATH(table.SetState(job, RUNNING, "", kNow, actions), "has ended");
}

// Watchers get them with the step; clients that list jobs do not.
TEST(JobTable, TheLastStepIsSmall) {
  JobTable table({});
  Actions actions;
  Job& job = table.Add(SpecOf(1), 1, kNow, actions);
  StepRecord step = StepOf(1);
  step.mutable_sequence_losses()->add_losses(2.5);
  step.mutable_sequence_losses()->add_counted_tokens(3);
  table.AddStep(job, step, actions);
  EXPECT_EQ(job.status.last_step().step(), 1);
  EXPECT_FALSE(job.status.last_step().has_sequence_losses());
  const WatchJobResponse news = JobTable::NewsSince(job, 0, 0);
  ASSERT_EQ(news.steps_size(), 1);
  EXPECT_EQ(news.steps(0).sequence_losses().losses(0), 2.5);
}

// A step with the losses of its sequences counts for several.
TEST(JobTable, LossesOfSequencesAreBounded) {
  Limits limits;
  limits.steps_kept_max = 100;
  JobTable table(limits);
  Actions actions;
  StepRecord large;
  large.mutable_sequence_losses()->mutable_losses()->Resize(32 * 10, 1.0);
  JobSpec spec = SpecOf(1);
  spec.set_sequence_losses(true);
  for (int i = 0; i < 20; ++i) {
    Job& job = table.Add(spec, 1, kNow, actions);
    for (int step = 1; step <= 3; ++step) {
      large.set_step(step);
      table.AddStep(job, large, actions);
    }
    table.SetState(job, SUCCEEDED, "", kNow, actions);
  }
  table.Add(SpecOf(1), 1, kNow, actions);
  size_t steps = 0;
  for (const auto& [id, job] : table.all()) steps += job->steps.size();
  EXPECT_LE(steps, 100u / 11 + 3);
  EXPECT_GE(steps, 6u);
  // Else they would be back when the scheduler is started again.
  std::set<JobId> dropped;
  for (const Action& action : actions) {
    const auto* thin = std::get_if<ThinSteps>(&action);
    if (thin == nullptr || !thin->without_sequences) continue;
    EXPECT_EQ(thin->before, 4);
    dropped.insert(thin->job);
  }
  for (const auto& [id, job] : table.all()) {
    if (job->spec.sequence_losses()) {
      EXPECT_EQ(dropped.count(id) == 1, job->steps.empty()) << id;
    }
  }
}

TEST(JobTable, MemoryIsBounded) {
  Limits limits;
  limits.ended_jobs_kept = 3;
  limits.steps_per_job_max = 5;
  limits.steps_kept_max = 12;
  limits.events_per_job_max = 20;
  limits.checkpoints_per_job_max = 4;
  JobTable table(limits);
  Actions actions;
  for (int i = 0; i < 10; ++i) {
    Job& job = table.Add(SpecOf(1), 1, kNow, actions);
    for (int step = 1; step <= 9; ++step) {
      table.AddStep(job, StepOf(step), actions);
    }
    for (int event = 0; event < 100; ++event) {
      table.AddEvent(job, "chatter", kNow, actions);
    }
    CheckpointRecord checkpoint;
    for (int n = 0; n < 9; ++n) {
      checkpoint.set_step(n);
      table.AddCheckpoint(job, checkpoint, kNow, actions);
    }
    EXPECT_LE(job.steps.size(), 5u);
    EXPECT_LE(job.events.size(), 20u);
    EXPECT_EQ(job.status.checkpoints_size(), 4);
    table.SetState(job, FAILED, "the end has a place", kNow, actions);
    EXPECT_EQ(job.events.back().text(), "failed: the end has a place");
  }
  size_t steps = 0;
  for (const auto& [id, job] : table.all()) steps += job->steps.size();
  EXPECT_LE(table.all().size(), 4u);
  EXPECT_LE(steps, 12u);
  EXPECT_EQ(table.all().rbegin()->first, JobId(10));
}

// All of them are in its status as long as they are there.
TEST(JobTable, CheckpointsLeaveRoomForOtherEvents) {
  JobTable table({});
  Actions actions;
  Job& job = table.Add(SpecOf(1), 1, kNow, actions);
  for (int n = 1; n <= 2000; ++n) {
    CheckpointRecord checkpoint;
    checkpoint.set_step(n);
    table.AddCheckpoint(job, checkpoint, kNow, actions);
  }
  EXPECT_EQ(job.events.size(), 500u);
  table.SetState(job, RECOVERING, "why", kNow, actions);
  EXPECT_EQ(job.events.back().text(), "recovering: why");
  for (int n = 0; n < 600; ++n) table.AddEvent(job, "chatter", kNow, actions);
  EXPECT_EQ(job.events.back().text(),
            "no more is told of this job but its end");
  table.SetState(job, SUCCEEDED, "", kNow, actions);
  EXPECT_EQ(job.events.back().text(), "succeeded");
}

TEST(JobTable, KeepsTheCheckpointsThatTheJobKeeps) {
  JobTable table({});
  Actions actions;
  JobSpec spec = SpecOf(1);
  spec.mutable_checkpoint()->set_keep(2);
  Job& job = table.Add(spec, 1, kNow, actions);
  for (int n = 1; n <= 5; ++n) {
    CheckpointRecord checkpoint;
    checkpoint.set_step(n);
    table.AddCheckpoint(job, checkpoint, kNow, actions);
  }
  ASSERT_EQ(job.status.checkpoints_size(), 2);
  EXPECT_EQ(job.status.checkpoints(0).step(), 4);
}

StoredJob StoredOf(int64_t id, JobState state) {
  StoredJob stored;
  stored.row.spec = SpecOf(1);
  stored.row.status.set_id(id);
  stored.row.status.set_state(state);
  return stored;
}

TEST(JobTable, RestoresJobsAsTheyWere) {
  JobTable table({});
  Actions actions;
  table.Restore(StoredOf(3, QUEUED), 1, actions);
  table.Restore(StoredOf(4, SUCCEEDED), 1, actions);
  StoredJob running = StoredOf(5, RUNNING);
  running.row.attempt = 2;
  running.steps.push_back(StepOf(51));
  table.Restore(std::move(running), 1, actions);
  StoredJob stopping = StoredOf(7, STOPPING);
  stopping.row.cancelled = true;
  table.Restore(std::move(stopping), 1, actions);

  EXPECT_EQ(table.Find(JobId(3))->status.state(), QUEUED);
  EXPECT_EQ(table.queued(), 1);
  EXPECT_EQ(table.Find(JobId(4))->status.state(), SUCCEEDED);
  EXPECT_EQ(table.Find(JobId(5))->status.state(), RUNNING);
  EXPECT_EQ(table.Find(JobId(5))->attempt, 2);
  EXPECT_EQ(table.Find(JobId(5))->status.steps_done(), 51);
  EXPECT_TRUE(table.Find(JobId(7))->cancelled);
  EXPECT_EQ(table.Add(SpecOf(1), 1, kNow, actions).id, JobId(8));
}

// An elastic job's plan is chosen again by the scheduler after this one, too.
TEST(JobTable, KeepsWhatItsUserLeftOpenInTheStoreOnly) {
  JobTable table({});
  Actions actions;
  JobSpec open = SpecOf(1);
  open.mutable_parallelism()->set_mode("auto");
  const Job& job = table.Add(SpecOf(2), 2, kNow, actions, {}, open);
  EXPECT_FALSE(job.status.has_open());
  StoredJob stored;
  for (const Action& action : actions) {
    const auto* const persisted = std::get_if<PersistJob>(&action);
    if (persisted != nullptr) stored.row = *persisted->row;
  }
  EXPECT_EQ(stored.row.status.open().parallelism().mode(), "auto");
  JobTable after({});
  after.Restore(std::move(stored), 2, actions);
  const Job& restored = *after.Find(job.id);
  ASSERT_TRUE(restored.open.has_value());
  EXPECT_EQ(restored.open->parallelism().mode(), "auto");
  EXPECT_FALSE(restored.status.has_open());
}

TEST(JobTable, NewsIsWhatTheWatcherHasNotSeen) {
  JobTable table({});
  Actions actions;
  Job& job = table.Add(SpecOf(1), 1, kNow, actions);
  for (int step = 1; step <= 5; ++step) {
    table.AddStep(job, StepOf(step), actions);
  }
  table.AddEvent(job, "two", kNow, actions);
  WatchJobResponse news = JobTable::NewsSince(job, 3, 1);
  ASSERT_EQ(news.steps_size(), 2);
  EXPECT_EQ(news.steps(0).step(), 4);
  ASSERT_EQ(news.events_size(), 1);
  EXPECT_EQ(news.events(0).text(), "two");
  news = JobTable::NewsSince(job, 5, 2);
  EXPECT_EQ(news.steps_size() + news.events_size(), 0);
  EXPECT_EQ(JobTable::NewsSince(job, -7, -7).steps_size(), 5);
}

// What the store has after these actions, of one job's steps.
void ApplyTo(std::set<int64_t>& stored, const Actions& actions) {
  for (const Action& action : actions) {
    if (const auto* step = std::get_if<PersistStep>(&action)) {
      stored.insert(step->step.step());
    } else if (const auto* thin = std::get_if<ThinSteps>(&action)) {
      for (auto it = stored.begin(); it != stored.lower_bound(thin->before);) {
        it = *it % thin->every == 0 ? std::next(it) : stored.erase(it);
      }
    }
  }
}

TEST(JobTable, OfALongJobsOldStepsTheStoreKeepsSome) {
  Limits limits;
  limits.steps_per_job_max = 100;
  JobTable table(limits);
  Actions actions;
  Job& job = table.Add(SpecOf(1), 1, absl::UnixEpoch(), actions);
  std::set<int64_t> stored;
  for (int64_t step = 1; step <= 20'000; ++step) {
    actions.clear();
    StepRecord record;
    record.set_step(step);
    table.AddStep(job, record, actions);
    ApplyTo(stored, actions);
    ASSERT_LE(static_cast<int64_t>(stored.size()), limits.steps_loaded_max());
  }
  EXPECT_EQ(job.steps.size(), 100u);
  EXPECT_TRUE(stored.count(20'000 - 99)) << "the newest are all there";
  EXPECT_LT(*stored.begin(), 5000) << "and some of the oldest";
  EXPECT_EQ(job.series.points().front().first, 1);
}

TEST(JobTable, TheStoreIsToldWhatIsForgotten) {
  Limits limits;
  limits.ended_jobs_kept = 1;
  JobTable table(limits);
  Actions actions;
  for (int i = 0; i < 3; ++i) {
    Job& job = table.Add(SpecOf(1), 1, absl::UnixEpoch(), actions);
    table.SetState(job, CANCELLED, "", absl::UnixEpoch(), actions);
  }
  table.Add(SpecOf(1), 1, absl::UnixEpoch(), actions);
  std::vector<JobId> forgotten;
  for (const Action& action : actions) {
    const auto* forget = std::get_if<ForgetJob>(&action);
    if (forget != nullptr) forgotten.push_back(forget->job);
  }
  EXPECT_EQ(forgotten, (std::vector<JobId>{JobId(1), JobId(2)}));
}

// Those of several schedulers have the same numbers.
TEST(JobTable, EverySubmissionIsARunOfItsOwn) {
  Actions actions;
  JobTable table{Limits()};
  JobTable other{Limits()};
  const Job& job = table.Add(SpecOf(1), 1, kNow, actions);
  const Job& same = other.Add(SpecOf(1), 1, kNow, actions);
  EXPECT_EQ(job.id, same.id);
  EXPECT_EQ(job.status.run_id().size(), 16u);
  EXPECT_NE(job.status.run_id(), same.status.run_id());
}

TEST(JobTable, AJobOfAnOlderSchedulerGetsARunIdWhenItIsLoaded) {
  Actions actions;
  JobTable table(Limits(), [] { return "new"; });
  StoredJob before = StoredOf(3, RUNNING);
  before.row.status.set_run_id("before");
  table.Restore(std::move(before), 1, actions);
  EXPECT_EQ(table.Find(JobId(3))->status.run_id(), "before");
  actions.clear();
  table.Restore(StoredOf(4, QUEUED), 1, actions);
  EXPECT_EQ(table.Find(JobId(4))->status.run_id(), "new");
  ASSERT_FALSE(actions.empty());
  EXPECT_EQ(std::get<PersistJob>(actions[0]).row->status.run_id(), "new");
}

}  // namespace
}  // namespace troupe
