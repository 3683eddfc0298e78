#include "worker/service/rank_runner.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/metrics/read_events.h"
#include "tests/worker/service/small_worker.h"
#include "worker/engine/checkpoint_holder.h"

namespace troupe {
namespace {

// What the runner sends, for tests to wait for.
class Outbox {
 public:
  SendToScheduler Sender() {
    return [this](WorkerMessage message) {
      absl::MutexLock lock(&mutex_);
      sent_.push_back(std::move(message));
      return absl::OkStatus();
    };
  }
  // Waits for the first that satisfies it.
  WorkerMessage Await(std::function<bool(const WorkerMessage&)> wanted) {
    absl::MutexLock lock(&mutex_);
    WorkerMessage found;
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      for (const WorkerMessage& message : sent_) {
        if (!wanted(message)) continue;
        found = message;
        return true;
      }
      return false;
    };
    EXPECT_TRUE(
        mutex_.AwaitWithTimeout(absl::Condition(&there), absl::Seconds(20)));
    return found;
  }
  // The same, and the next call does not find it again.
  WorkerMessage Take(std::function<bool(const WorkerMessage&)> wanted) {
    const WorkerMessage found = Await(wanted);
    absl::MutexLock lock(&mutex_);
    sent_.erase(std::find_if(sent_.begin(), sent_.end(), wanted));
    return found;
  }
  WorkerMessage AwaitEnd() {
    return Await([](const WorkerMessage& m) { return m.has_ended(); });
  }
  int Steps() {
    absl::MutexLock lock(&mutex_);
    int steps = 0;
    for (const WorkerMessage& message : sent_) steps += message.has_step();
    return steps;
  }

 private:
  absl::Mutex mutex_;
  std::vector<WorkerMessage> sent_ ABSL_GUARDED_BY(mutex_);
};

SchedulerMessage StopOf(const Assignment& assignment, bool peers_gone) {
  SchedulerMessage message;
  *message.mutable_stop()->mutable_ref() = assignment.ref();
  message.mutable_stop()->set_reason("its user cancelled it");
  message.mutable_stop()->set_peers_gone(peers_gone);
  return message;
}

bool IsStep3(const WorkerMessage& message) {
  return message.has_step() && message.step().record().step() == 3;
}

TEST(RankRunner, ReportsFromReadyToEnd) {
  SmallWorker worker;
  Assignment assignment = Assign(SmallJob(), worker);
  assignment.set_trace_every(10);
  Outbox outbox;
  RankRunner runner(assignment, {.resources = worker.resources(),
                                 .send = outbox.Sender(),
                                 .address = "127.0.0.1"});
  const RankEnded ended = outbox.AwaitEnd().ended();
  EXPECT_TRUE(ended.ok()) << ended.error();
  EXPECT_EQ(ended.step(), 20);
  EXPECT_EQ(ended.ref().job(), 5);
  EXPECT_EQ(ended.ref().attempt(), 2);
  EXPECT_EQ(outbox.Steps(), 20);
  EXPECT_EQ(worker.arenas().used(), 0u);
  const WorkerMessage ready =
      outbox.Await([](const WorkerMessage& m) { return m.has_rank_ready(); });
  EXPECT_EQ(ready.rank_ready().first_step(), 1);
  const WorkerMessage traced = outbox.Await(
      [](const WorkerMessage& m) { return m.step().has_timeline(); });
  EXPECT_EQ(traced.step().record().step(), 10);
}

// Another one may have what is not here.
TEST(RankRunner, SaysWhetherTheCauseLiesInItsMachine) {
  JobSpec elsewhere = SmallJob();
  elsewhere.mutable_data()->set_tokens("/not/here.tokens");
  JobSpec unwritable = SmallJob();
  unwritable.mutable_checkpoint()->set_directory("/proc/checkpoints");
  for (const JobSpec& job : {elsewhere, unwritable}) {
    SmallWorker worker;
    Outbox outbox;
    RankRunner runner(Assign(job, worker), {.resources = worker.resources(),
                                            .send = outbox.Sender(),
                                            .address = "127.0.0.1"});
    const RankEnded ended = outbox.AwaitEnd().ended();
    EXPECT_FALSE(ended.ok());
    EXPECT_TRUE(ended.local_cause()) << ended.error();
  }
}

TEST(RankRunner, CommitsWhenTheSchedulerHasAllShards) {
  JobSpec job = SmallJob();
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/rank_runner");
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  SmallWorker worker;
  const Assignment assignment = Assign(job, worker);
  Outbox outbox;
  RankRunner runner(assignment, {.resources = worker.resources(),
                                 .send = outbox.Sender(),
                                 .address = "127.0.0.1"});
  const WorkerMessage shard =
      outbox.Await([](const WorkerMessage& m) { return m.has_shard(); });
  EXPECT_EQ(shard.shard().step(), 20);
  EXPECT_EQ(shard.shard().shard().file(), "rank-00000.safetensors");

  // One of an earlier attempt is dropped.
  SchedulerMessage commit;
  *commit.mutable_commit()->mutable_ref() = assignment.ref();
  commit.mutable_commit()->mutable_ref()->set_attempt(1);
  commit.mutable_commit()->set_step(20);
  commit.mutable_commit()->set_write(1);
  runner.OnMessage(commit);
  commit.mutable_commit()->mutable_ref()->set_attempt(2);
  *commit.mutable_commit()->add_shards() = shard.shard();
  runner.OnMessage(commit);

  const WorkerMessage committed =
      outbox.Await([](const WorkerMessage& m) { return m.has_committed(); });
  EXPECT_FALSE(runner.ended()) << "nobody has heard of the checkpoint";
  SchedulerMessage done;
  *done.mutable_done()->mutable_ref() = assignment.ref();
  done.mutable_done()->set_step(20);
  runner.OnMessage(done);
  const RankEnded ended = outbox.AwaitEnd().ended();
  EXPECT_TRUE(ended.ok()) << ended.error();
  EXPECT_EQ(committed.committed().checkpoint().path(),
            directory + "/step-00000020");
  EXPECT_GT(committed.committed().checkpoint().bytes(), 0);
}

// Another rank's disk was full; then the directory of all is in the way.
TEST(RankRunner, WhatIsGivenUpIsWrittenAgain) {
  JobSpec job = SmallJob();
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/rank_runner_again");
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  SmallWorker worker;
  const Assignment assignment = Assign(job, worker);
  Outbox outbox;
  RankRunner runner(assignment, {.resources = worker.resources(),
                                 .send = outbox.Sender(),
                                 .address = "127.0.0.1",
                                 .save_pauses = {absl::ZeroDuration(),
                                                 absl::ZeroDuration()}});
  const auto is_answer = [](const WorkerMessage& m) {
    return m.has_shard() || m.has_unwritten();
  };
  const std::string aside = CheckpointPath(directory, 20) + ".tmp-" +
                            AttemptToken(assignment.ref(), "");
  EXPECT_TRUE(outbox.Take(is_answer).has_shard());
  std::filesystem::remove_all(aside);
  std::ofstream(aside) << "in the way";
  SchedulerMessage given_up;
  *given_up.mutable_done()->mutable_ref() = assignment.ref();
  given_up.mutable_done()->set_step(20);
  given_up.mutable_done()->set_given_up("rank 1: ENOSPC");
  given_up.mutable_done()->set_write(1);
  runner.OnMessage(given_up);
  const WorkerMessage unwritten = outbox.Take(is_answer);
  ASSERT_TRUE(unwritten.has_unwritten());
  EXPECT_EQ(unwritten.unwritten().step(), 20);
  EXPECT_THAT(unwritten.unwritten().error(), testing::HasSubstr(aside));
  EXPECT_EQ(unwritten.unwritten().write(), 2);
  std::filesystem::remove_all(aside);
  runner.OnMessage(given_up);  // of the write before: said again for others
  given_up.mutable_done()->set_write(2);
  runner.OnMessage(given_up);
  const WorkerMessage shard = outbox.Take(is_answer);
  ASSERT_TRUE(shard.has_shard());
  EXPECT_EQ(shard.shard().write(), 3);
  SchedulerMessage commit;
  *commit.mutable_commit()->mutable_ref() = assignment.ref();
  commit.mutable_commit()->set_step(20);
  commit.mutable_commit()->set_write(3);
  *commit.mutable_commit()->add_shards() = shard.shard();
  runner.OnMessage(commit);
  outbox.Await([](const WorkerMessage& m) { return m.has_committed(); });
  SchedulerMessage done;
  *done.mutable_done()->mutable_ref() = assignment.ref();
  done.mutable_done()->set_step(20);
  runner.OnMessage(done);
  const RankEnded ended = outbox.AwaitEnd().ended();
  EXPECT_TRUE(ended.ok()) << ended.error();
}

// What is obsolete by a checkpoint of which the next scheduler may not know.
TEST(RankRunner, RemovesNothingForACheckpointThatIsNotStored) {
  for (const bool unstored : {false, true}) {
    JobSpec job = SmallJob();
    const std::string directory =
        absl::StrCat(testing::TempDir(), "/rank_runner_unstored");
    std::filesystem::remove_all(directory);
    job.mutable_checkpoint()->set_directory(directory);
    job.mutable_checkpoint()->set_every(10);
    job.mutable_checkpoint()->set_keep(1);
    SmallWorker worker;
    const Assignment assignment = Assign(job, worker);
    Outbox outbox;
    RankRunner runner(assignment, {.resources = worker.resources(),
                                   .send = outbox.Sender(),
                                   .address = "127.0.0.1"});
    for (const int64_t step : {10, 20}) {
      const WorkerMessage shard = outbox.Await([step](const WorkerMessage& m) {
        return m.has_shard() && m.shard().step() == step;
      });
      SchedulerMessage commit;
      *commit.mutable_commit()->mutable_ref() = assignment.ref();
      commit.mutable_commit()->set_step(step);
      commit.mutable_commit()->set_write(shard.shard().write());
      *commit.mutable_commit()->add_shards() = shard.shard();
      runner.OnMessage(commit);
      outbox.Await([step](const WorkerMessage& m) {
        return m.committed().checkpoint().step() == step;
      });
      SchedulerMessage done;
      *done.mutable_done()->mutable_ref() = assignment.ref();
      done.mutable_done()->set_step(step);
      done.mutable_done()->set_unstored(unstored && step == 20);
      runner.OnMessage(done);
    }
    const RankEnded ended = outbox.AwaitEnd().ended();
    EXPECT_TRUE(ended.ok()) << ended.error();
    EXPECT_EQ(std::filesystem::exists(directory + "/step-00000010"), unstored);
    EXPECT_TRUE(std::filesystem::exists(directory + "/step-00000020"));
  }
}

std::vector<nlohmann::json> LinesOf(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

// All files are complete when its end is said.
TEST(RankRunner, WritesARowForEachStep) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/rank_metrics");
  std::filesystem::remove_all(folder);
  JobSpec job = SmallJob();
  job.mutable_training()->set_validate_every(10);
  job.mutable_metrics()->set_directory(folder);
  job.mutable_metrics()->set_tensorboard(folder + "/tb");
  for (const int attempt : {1, 2}) {
    SmallWorker worker;
    Assignment assignment = Assign(job, worker);
    assignment.mutable_ref()->set_attempt(attempt);
    assignment.set_ran_before(attempt > 1);
    Outbox outbox;
    RankRunner runner(assignment, {.resources = worker.resources(),
                                   .send = outbox.Sender(),
                                   .address = "127.0.0.1"});
    const RankEnded ended = outbox.AwaitEnd().ended();
    EXPECT_TRUE(ended.ok()) << ended.error();
    const std::vector<nlohmann::json> rows = LinesOf(folder + "/metrics.jsonl");
    ASSERT_EQ(rows.size(), 20u);
    const Curves curves = ReadCurves(folder + "/tb");
    EXPECT_EQ(curves.at("loss").size(), 20u);
    for (int64_t step = 1; step <= 20; ++step) {
      const StepRecord record = outbox
                                    .Await([&](const WorkerMessage& m) {
                                      return m.step().record().step() == step;
                                    })
                                    .step()
                                    .record();
      const nlohmann::json& row = rows[step - 1];
      EXPECT_EQ(row["step"], step);
      EXPECT_EQ(row["attempt"], attempt);
      EXPECT_EQ(row["loss"].get<double>(), record.loss());
      EXPECT_EQ(row["step_seconds"].get<double>(), record.step_seconds());
      EXPECT_EQ(row.contains("validation_loss"), step % 10 == 0);
      EXPECT_EQ(curves.at("loss").at(step), static_cast<float>(record.loss()));
    }
  }
}

// The first attempt is refused where nothing can be written, a later one goes
// on without.
TEST(RankRunner, MetricsThatCannotBeWrittenStopNobodyWhoHasTrained) {
  for (const char* const field : {"directory", "tensorboard"}) {
    JobSpec job = SmallJob();
    MetricsSpec& metrics = *job.mutable_metrics();
    (*field == 'd' ? *metrics.mutable_directory()
                   : *metrics.mutable_tensorboard()) = "/proc/metrics";
    for (const bool ran_before : {false, true}) {
      SmallWorker worker;
      Assignment assignment = Assign(job, worker);
      assignment.set_ran_before(ran_before);
      Outbox outbox;
      RankRunner runner(assignment, {.resources = worker.resources(),
                                     .send = outbox.Sender(),
                                     .address = "127.0.0.1"});
      const RankEnded ended = outbox.AwaitEnd().ended();
      EXPECT_EQ(ended.ok(), ran_before) << ended.error();
      if (!ran_before) {
        EXPECT_THAT(ended.error(), testing::StartsWith(absl::StrCat(
                                       "metrics.", field, ": /proc/metrics")));
        EXPECT_TRUE(ended.local_cause());
        EXPECT_EQ(outbox.Steps(), 0);
        continue;
      }
      const WorkerMessage notice =
          outbox.Await([](const WorkerMessage& m) { return m.has_notice(); });
      EXPECT_EQ(notice.notice().ref().job(), 5);
      EXPECT_THAT(notice.notice().text(),
                  testing::StartsWith("metrics cannot be written now, and "
                                      "training goes on: /proc/metrics"));
      outbox.Await([](const WorkerMessage& m) {
        return m.notice().text().find("20 rows between step 1 and step 20 were "
                                      "left out") != std::string::npos;
      });
    }
  }
}

TEST(RankRunner, OnlyRankZeroWritesRows) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/no_metrics");
  std::filesystem::remove_all(folder);
  JobSpec job = SmallJob();
  job.mutable_metrics()->set_directory(folder);
  SmallWorker worker;
  Assignment assignment = Assign(job, worker);
  assignment.mutable_ref()->set_rank(1);
  Outbox outbox;
  RankRunner runner(assignment, {.resources = worker.resources(),
                                 .send = outbox.Sender(),
                                 .address = "127.0.0.1"});
  EXPECT_TRUE(outbox.AwaitEnd().ended().ok());
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(RankRunner, StopsWhereverItIs) {
  for (const bool peers_gone : {false, true}) {
    JobSpec job = SmallJob();
    job.mutable_training()->set_steps(100'000);
    SmallWorker worker;
    const Assignment assignment = Assign(job, worker);
    Outbox outbox;
    RankRunner runner(assignment, {.resources = worker.resources(),
                                   .send = outbox.Sender(),
                                   .address = "127.0.0.1"});
    outbox.Await(IsStep3);
    // Not ours: of another attempt.
    SchedulerMessage other = StopOf(assignment, true);
    other.mutable_stop()->mutable_ref()->set_attempt(1);
    runner.OnMessage(other);
    runner.OnMessage(StopOf(assignment, peers_gone));
    const RankEnded ended = outbox.AwaitEnd().ended();
    EXPECT_FALSE(ended.ok());
    EXPECT_TRUE(ended.stopped());
    EXPECT_GE(ended.step(), 3);
    EXPECT_FALSE(ended.has_missing_rank());
    EXPECT_EQ(worker.arenas().used(), 0u);
  }
}

TEST(RankRunner, ARankThatWaitsForItsPeersCanBeStopped) {
  SmallWorker worker;
  Assignment assignment = Assign(SmallJob(), worker);
  // A group whose other member never comes.
  Plan& plan = *assignment.mutable_plan();
  plan.mutable_mesh()->mutable_axes(1)->set_size(2);
  Group& group = *plan.add_groups();
  group.set_name("lonely");
  group.add_carriers()->set_backend("gloo");
  group.add_spans()->set_axis("data");
  Instruction& sum =
      *plan.mutable_roles(0)->mutable_programs(0)->add_instructions();
  sum.set_kind(Instruction::REDUCE_SCALARS);
  sum.set_group(plan.groups_size() - 1);
  Outbox outbox;
  RankRunner runner(assignment, {.resources = worker.resources(),
                                 .send = outbox.Sender(),
                                 .address = "127.0.0.1"});
  outbox.Await([](const WorkerMessage& m) { return m.has_store_get(); });
  runner.OnMessage(StopOf(assignment, false));
  const RankEnded ended = outbox.AwaitEnd().ended();
  EXPECT_FALSE(ended.ok());
  EXPECT_EQ(ended.error(), "its user cancelled it");
  EXPECT_TRUE(ended.stopped());
}

TEST(RankRunner, DestructionEndsWhatRuns) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(100'000);
  SmallWorker worker;
  Outbox outbox;
  {
    RankRunner runner(Assign(job, worker), {.resources = worker.resources(),
                                            .send = outbox.Sender(),
                                            .address = "127.0.0.1"});
    outbox.Await(IsStep3);
  }
  EXPECT_FALSE(outbox.AwaitEnd().ended().ok());
  EXPECT_EQ(worker.arenas().used(), 0u);
}

}  // namespace
}  // namespace troupe
