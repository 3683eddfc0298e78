#include "worker/engine/train_loop.h"

#include <atomic>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/manifest.h"
#include "storage/dataset/troupe_file.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"
#include "tests/storage/endless_tokens.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

TEST(TrainLoop, ReportsWhatPeopleWantToKnow) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(12);
  const TrainingRun run = Train(job, {});
  ASSERT_TRUE(run.status().ok()) << run.status();
  ASSERT_EQ(run.steps[0].size(), 12u);
  for (const StepRecord& step : run.steps[0]) {
    EXPECT_GT(step.loss(), 0);
    EXPECT_GT(step.grad_norm(), 0);
    EXPECT_GT(step.step_seconds(), 0);
    EXPECT_NEAR(step.tokens_per_second() * step.step_seconds(), 8 * 17, 1e-6);
    EXPECT_GT(step.mfu(), 0);
    EXPECT_GT(step.memory_bytes(), 1 << 20);
    EXPECT_EQ(step.samples_consumed(), step.step() * 8);
    // Every ten steps, and after the last.
    EXPECT_EQ(step.has_validation_loss(),
              step.step() == 10 || step.step() == 12);
  }
}

TEST(TrainLoop, AbortEndsEveryRankAndFreesItsMemory) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(1'000'000);
  job.mutable_training()->set_micro_batch_size(4);
  job.mutable_parallelism()->set_data(2);
  const TrainingRun run =
      Train(job, {.ranks = 2,
                  .on_step = [](int rank, const StepRecord& record,
                                const std::vector<TrainLoop*>& loops) {
                    if (rank != 0 || record.step() != 3) return;
                    loops[0]->Abort(
                        absl::CancelledError("its user changed his mind"));
                  }});
  EXPECT_EQ(run.statuses[0], absl::CancelledError("its user changed his mind"));
  // The other rank notices that its peer is gone.
  EXPECT_FALSE(run.statuses[1].ok());
  EXPECT_TRUE(absl::StartsWith(run.statuses[1].message(), "step 4: "))
      << run.statuses[1];
  EXPECT_EQ(MissingRank(run.statuses[1]), 0) << run.statuses[1];
  EXPECT_EQ(run.bytes_left, 0u);
}

TEST(TrainLoop, ARequestToStopEndsAllRanksAfterTheSameStep) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(1'000'000);
  job.mutable_training()->set_micro_batch_size(4);
  job.mutable_parallelism()->set_data(2);
  const TrainingRun run =
      Train(job, {.ranks = 2,
                  .on_step = [](int rank, const StepRecord& record,
                                const std::vector<TrainLoop*>& loops) {
                    if (rank == 1 && record.step() == 3) {
                      loops[1]->RequestStop();
                    }
                  }});
  EXPECT_TRUE(absl::IsCancelled(run.statuses[0])) << run.statuses[0];
  EXPECT_TRUE(absl::IsCancelled(run.statuses[1])) << run.statuses[1];
  EXPECT_EQ(run.steps[0].size(), 4u);
  EXPECT_EQ(run.steps[1].size(), 4u);
}

// Writes one after every fifth step of its twenty.
JobSpec CheckpointedJob(const std::string& name, bool background) {
  JobSpec job = SmallJob();
  const std::string directory = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_checkpoint()->set_every(5);
  job.mutable_checkpoint()->set_background(background);
  return job;
}

TEST(TrainLoop, TrainsOnWhileACheckpointIsWrittenButNotIntoTheNext) {
  const TrainingRun waiting = Train(CheckpointedJob("waiting", false), {});
  ASSERT_TRUE(waiting.status().ok()) << waiting.status();
  const JobSpec job = CheckpointedJob("background", true);
  absl::Notification trained_on;
  std::atomic<bool> written = false;
  const TrainingRun run = Train(
      job,
      {.on_step =
           [&](int, const StepRecord& record, const std::vector<TrainLoop*>&) {
             if (record.step() == 8) trained_on.Notify();
             // Behind the checkpoint of step 10.
             EXPECT_TRUE(record.step() != 11 || written);
           },
       .on_shard =
           [&](int, const WrittenShard& shard, const std::vector<TrainLoop*>&) {
             if (shard.step == 5) trained_on.WaitForNotification();
             written = true;
             return absl::OkStatus();
           }});
  ASSERT_TRUE(run.status().ok()) << run.status();
  ASSERT_EQ(run.checkpoints.size(), 4u);
  for (size_t i = 0; i < 20; ++i) {
    // The first step after a checkpoint says what it cost.
    for (const TrainingRun* of : {&run, &waiting}) {
      EXPECT_EQ(of->steps[0][i].checkpoint_stall_seconds() > 0,
                i > 0 && i % 5 == 0)
          << "step " << i + 1;
    }
    EXPECT_EQ(run.steps[0][i].loss(), waiting.steps[0][i].loss());
  }
  for (const int64_t step : {10, 15, 20}) {
    const absl::Status whole =
        CheckCheckpoint(CheckpointPath(job.checkpoint().directory(), step),
                        CheckDepth::kChecksums)
            .status();
    EXPECT_TRUE(whole.ok()) << whole;
  }
}

TEST(TrainLoop, ARankThatHasWrittenWaitsInNoCollectiveForOneThatWrites) {
  for (const bool background : {false, true}) {
    JobSpec job = CheckpointedJob("slow_writer", background);
    job.mutable_training()->set_micro_batch_size(4);
    job.mutable_parallelism()->set_data(2);
    absl::Notification waits[4];  // by checkpoint
    const TrainingRun run = Train(
        job,
        {.ranks = 2,
         .on_shard =
             [&](int rank, const WrittenShard& shard,
                 const std::vector<TrainLoop*>&) {
               const int64_t index = shard.step / 5 - 1;
               if (rank == 0) waits[index].WaitForNotification();
               return absl::OkStatus();
             },
         .on_await =
             [&](int rank, int64_t step, const std::vector<TrainLoop*>& loops) {
               if (rank == 0) return;
               if (!background) {
                 EXPECT_EQ(loops[1]->Progress().lanes_size(), 0);
               }
               waits[step / 5 - 1].Notify();
             }});
    EXPECT_TRUE(run.status().ok()) << run.status();
    EXPECT_EQ(run.checkpoints.size(), 4u);
  }
}

TEST(TrainLoop, ARankThatIsAskedToSavesWithAllOthers) {
  for (const bool background : {false, true}) {
    JobSpec job = CheckpointedJob("save_and_stop", background);
    job.mutable_training()->set_steps(1'000'000);
    job.mutable_training()->set_micro_batch_size(4);
    job.mutable_parallelism()->set_data(2);
    const TrainingRun run =
        Train(job, {.ranks = 2,
                    .on_step = [](int rank, const StepRecord& record,
                                  const std::vector<TrainLoop*>& loops) {
                      if (rank == 1 && record.step() == 6) {
                        loops[1]->RequestSaveAndStop();
                      }
                    }});
    EXPECT_TRUE(absl::IsCancelled(run.statuses[0])) << run.statuses[0];
    EXPECT_TRUE(absl::IsCancelled(run.statuses[1])) << run.statuses[1];
    const auto newest = FindNewestComplete(job.checkpoint().directory(),
                                           CheckDepth::kChecksums);
    ASSERT_TRUE(newest.ok()) << newest.status();
    EXPECT_EQ(newest->step, 7);
  }
}

TEST(TrainLoop, AWriterThatFailsEndsTheRun) {
  const JobSpec job = CheckpointedJob("writer_fails", true);
  const TrainingRun run = Train(
      job, {.on_shard = [](int, const WrittenShard&,
                           const std::vector<TrainLoop*>&) -> absl::Status {
        return absl::ResourceExhaustedError("the disk is full");
      }});
  EXPECT_TRUE(absl::IsResourceExhausted(run.status())) << run.status();
  EXPECT_TRUE(absl::StrContains(run.status().message(),
                                "checkpoint of step 5: the disk is full"))
      << run.status();
  EXPECT_LE(run.steps[0].size(), 10u);
  EXPECT_TRUE(std::filesystem::is_empty(job.checkpoint().directory()));
  EXPECT_EQ(run.bytes_left, 0u);
}

TEST(TrainLoop, AnAbortDuringAWriteLeavesAWholeCheckpointOrNone) {
  const absl::Status why = absl::CancelledError("its user changed his mind");
  for (const absl::Status& told : {absl::OkStatus(), why}) {
    const JobSpec job = CheckpointedJob("abort_during_write", true);
    const TrainingRun run =
        Train(job, {.on_shard = [&](int rank, const WrittenShard&,
                                    const std::vector<TrainLoop*>& loops) {
                loops[rank]->Abort(why);
                return told;
              }});
    EXPECT_EQ(run.status(), why);
    EXPECT_EQ(run.bytes_left, 0u);
    const std::string& directory = job.checkpoint().directory();
    if (told.ok()) {
      EXPECT_EQ(FindNewestComplete(directory, CheckDepth::kChecksums)->step, 5);
      EXPECT_EQ(ListCheckpoints(directory)->size(), 1u);
    } else {
      EXPECT_TRUE(std::filesystem::is_empty(directory));
    }
  }
}

TEST(TrainLoop, DivergenceIsAnErrorThatSaysWhatMayHelp) {
  JobSpec job = SmallJob();
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_lr(1e4);
  job.mutable_training()->set_gradient_clipping(0);
  job.mutable_lr_scheduler()->set_warmup_steps(0);
  const TrainingRun run = Train(job, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(run.status())) << run.status();
  EXPECT_TRUE(absl::StrContains(run.status().message(), "training diverged"))
      << run.status();
}

TEST(TrainLoop, AnEarlierRunsCheckpointsAreNotReplacedUnasked) {
  JobSpec job = CheckpointedJob("earlier_run", false);
  job.mutable_training()->set_stop_after(10);
  job.mutable_checkpoint()->set_keep(1);
  const std::string& directory = job.checkpoint().directory();
  ASSERT_TRUE(Train(job, {}).status().ok());
  const absl::Status refused = Train(job, {}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  for (const char* part :
       {"checkpoint.directory: ", "checkpoint.resume: latest",
        "checkpoint.overwrite: true"}) {
    EXPECT_TRUE(absl::StrContains(refused.message(), part)) << refused;
  }
  EXPECT_EQ(FindNewestComplete(directory)->step, 10);
  job.mutable_checkpoint()->set_overwrite(true);
  job.mutable_training()->set_stop_after(5);
  const TrainingRun again = Train(job, {});
  ASSERT_TRUE(again.status().ok()) << again.status();
  EXPECT_EQ(FindNewestComplete(directory)->step, 5) << "not the other's";
  ASSERT_EQ(again.warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(
      again.warnings[0], absl::StrCat(CheckpointPath(directory, 10),
                                      " the last, is removed when this run's "
                                      "first checkpoint is there")))
      << again.warnings[0];
}

// The attempt that wrote the one that it goes on from may have died before it
// could.
TEST(TrainLoop, AnAttemptRemovesWhatIsOlderThanTheJobsOwnThatItGoesOnFrom) {
  for (const bool ran_before : {true, false}) {
    JobSpec job = CheckpointedJob("goes_on", false);
    const std::string& directory = job.checkpoint().directory();
    job.mutable_training()->set_stop_after(15);
    job.mutable_checkpoint()->set_keep(0);
    ASSERT_TRUE(Train(job, {}).status().ok());
    job.mutable_checkpoint()->set_keep(1);
    job.mutable_training()->set_stop_after(11);
    job.mutable_checkpoint()->set_every(100);
    std::vector<int64_t> steps;
    const TrainingRun run =
        Train(job, {.resume = CheckpointPath(directory, 10),
                    .ran_before = ran_before,
                    .on_step = [&](int, const StepRecord&,
                                   const std::vector<TrainLoop*>&) {
                      const auto all = ListCheckpoints(directory);
                      for (const CheckpointEntry& there : *all) {
                        steps.push_back(there.step);
                      }
                    }});
    ASSERT_TRUE(run.status().ok()) << run.status();
    EXPECT_EQ(steps, (ran_before ? std::vector<int64_t>{10, 15}
                                 : std::vector<int64_t>{5, 10, 15}));
  }
}

TEST(TrainLoop, OneJobAtATimeSavesInADirectoryWhateverItsName) {
  JobSpec job = CheckpointedJob("held", false);
  JobSpec other = job;
  const std::string link = job.checkpoint().directory() + "-link";
  std::filesystem::remove(link);
  std::filesystem::create_directory_symlink(job.checkpoint().directory(), link);
  other.mutable_checkpoint()->set_directory(link);
  absl::Status refused;
  const TrainingRun run =
      Train(job, {.on_step = [&](int, const StepRecord& record,
                                 const std::vector<TrainLoop*>&) {
              if (record.step() == 1) refused = Train(other, {}).status();
            }});
  EXPECT_TRUE(run.status().ok()) << run.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_TRUE(absl::StrContains(refused.message(), "job small (test), pid "))
      << refused;
  EXPECT_TRUE(absl::StrContains(refused.message(), link)) << refused;
}

// A copy of the job's tokens that a test may spoil.
std::string OwnTokens(JobSpec& job) {
  const std::string path = absl::StrCat(testing::TempDir(), "/own.tokens");
  std::filesystem::copy_file(job.data().tokens(), path,
                             std::filesystem::copy_options::overwrite_existing);
  job.mutable_data()->set_tokens(path);
  return path;
}

TEST(TrainLoop, ATokenFileThatShrinksIsNamed) {
  JobSpec job = SmallJob();
  const std::string tokens = OwnTokens(job);
  const TrainingRun run =
      Train(job, {.on_step = [&](int, const StepRecord& record,
                                 const std::vector<TrainLoop*>&) {
              if (record.step() == 3) std::filesystem::resize_file(tokens, 100);
            }});
  EXPECT_TRUE(absl::IsDataLoss(run.status())) << run.status();
  for (const std::string& part :
       {std::string("step 4: "), tokens, std::string("put the file back")}) {
    EXPECT_TRUE(absl::StrContains(run.status().message(), part))
        << run.status();
  }
  EXPECT_EQ(run.bytes_left, 0u);
}

TEST(TrainLoop, FlippedBytesInTheTokenFileAreFound) {
  JobSpec job = SmallJob();
  const std::string tokens = OwnTokens(job);
  {
    std::fstream file(tokens, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(kTokenFileHeaderBytes + 6);
    file.put('\2');
    file.seekp(kTokenFileHeaderBytes + 7);
    file.put('\0');
  }
  const TrainingRun run = Train(job, {.checks_data = true});
  EXPECT_TRUE(absl::IsDataLoss(run.status())) << run.status();
  EXPECT_TRUE(absl::StrContains(run.status().message(),
                                "data.tokens: " + tokens + ": offset 128"))
      << run.status();
}

// What is not known to hold yet may turn out damaged: then it is too late for
// what was saved by then to say so.
TEST(TrainLoop, CheckpointsOfTokensThatAreNotCheckedYetSaySo) {
  JobSpec job = CheckpointedJob("unchecked_tokens", false);
  job.mutable_checkpoint()->set_every(1);
  job.mutable_checkpoint()->set_keep(0);
  job.mutable_training()->set_steps(1'000'000);
  job.mutable_training()->set_validate_every(0);
  const TempDir dir;
  WriteEndlessTokens(dir.File("t"), 61);
  job.mutable_data()->set_tokens(dir.File("t"));
  const TrainingRun run =
      Train(job, {.checks_data = true,
                  .on_step = [](int, const StepRecord& record,
                                const std::vector<TrainLoop*>& loops) {
                    if (record.step() == 2) loops[0]->RequestSaveAndStop();
                  }});
  EXPECT_TRUE(absl::IsCancelled(run.status())) << run.status();
  ASSERT_EQ(run.checkpoints.size(), 3u);
  for (const CheckpointRecord& saved : run.checkpoints) {
    const auto manifest = ReadManifest(saved.path());
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    EXPECT_TRUE(manifest->data_unchecked) << saved.path();
  }
}

TEST(TrainLoop, AMissingTokenFileIsNamed) {
  JobSpec job = SmallJob();
  job.mutable_data()->set_tokens("/no/such/file.tokens");
  const TrainingRun run = Train(job, {});
  EXPECT_TRUE(absl::IsNotFound(run.status())) << run.status();
  EXPECT_TRUE(absl::StrContains(run.status().message(), "/no/such/file.tokens"))
      << run.status();
}

}  // namespace
}  // namespace troupe
