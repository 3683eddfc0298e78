#include "worker/engine/starting_point.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/manifest.h"
#include "storage/dataset/token_file.h"
#include "storage/dataset/token_file_writer.h"
#include "storage/engine/make_engine.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"
#include "tests/storage/checkpoint/planted_value.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

// Ends after that step; its checkpoints go into an empty folder of that name.
JobSpec SavingJob(const std::string& folder, int64_t stop_after) {
  JobSpec job = SmallJob();
  const std::string directory = absl::StrCat(testing::TempDir(), "/", folder);
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_training()->set_stop_after(stop_after);
  return job;
}

// Inverts a bit of the last tensor of a job's first rank.
void FlipABit(const std::string& shard) {
  std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const char last = static_cast<char>(file.get() ^ 4);
  file.seekp(-1, std::ios::end);
  file.put(last);
}

TEST(StartingPoint, WhereAllAreDamagedTheNewestOnesDamageIsNamed) {
  JobSpec job = SavingJob("all_flipped", 10);
  job.mutable_checkpoint()->set_every(5);
  ASSERT_TRUE(Train(job, {}).status().ok());
  for (const int64_t step : {5, 10}) {
    FlipABit(CheckpointPath(job.checkpoint().directory(), step) +
             "/rank-00000.safetensors");
  }
  EXPECT_TRUE(Fails(
      Train(job, {.resume = "latest"}).status(), absl::StatusCode::kNotFound,
      {"checkpoint.resume latest", "among 2",
       "step-00000010/rank-00000.safetensors: bytes ", "its content changed"}));
}

TEST(StartingPoint, LatestSkipsACheckpointWithAFlippedBit) {
  JobSpec job = SavingJob("flipped", 10);
  const std::string& directory = job.checkpoint().directory();
  job.mutable_checkpoint()->set_every(5);
  ASSERT_TRUE(Train(job, {}).status().ok());
  const std::string shard =
      CheckpointPath(directory, 10) + "/rank-00000.safetensors";
  FlipABit(shard);
  job.mutable_training()->set_stop_after(8);
  const TrainingRun run = Train(job, {.resume = "latest"});
  ASSERT_TRUE(run.status().ok()) << run.status();
  ASSERT_EQ(run.steps[0].size(), 3u);
  EXPECT_EQ(run.steps[0][0].step(), 6);
  ASSERT_EQ(run.warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(run.warnings[0], shard)) << run.warnings[0];
}

// Its bytes are as they were written, so that nothing else shows it.
TEST(StartingPoint, ACheckpointOfNoNumbersIsNamedAndSkipped) {
  JobSpec job = SavingJob("no_numbers", 10);
  const std::string& directory = job.checkpoint().directory();
  job.mutable_checkpoint()->set_every(5);
  ASSERT_TRUE(Train(job, {}).status().ok());
  const std::string checkpoint = CheckpointPath(directory, 10);
  const Manifest manifest = *ReadManifest(checkpoint);
  const ManifestTensor& tensor = manifest.tensors.front();
  PlantValueInCheckpoint(checkpoint, tensor.shards[0].file,
                         {.tensor = tensor.shards[0].key}, INFINITY);
  const std::string named =
      absl::StrCat("tensor ", tensor.name, " is inf at [");

  EXPECT_TRUE(Fails(Train(job, {.resume = checkpoint}).status(),
                    absl::StatusCode::kDataLoss,
                    {checkpoint, named, "this run has changed nothing yet"}));

  job.mutable_training()->set_stop_after(8);
  const TrainingRun run = Train(job, {.resume = "latest"});
  ASSERT_TRUE(run.status().ok()) << run.status();
  EXPECT_EQ(run.steps[0][0].step(), 6);
  ASSERT_EQ(run.warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(run.warnings[0], named)) << run.warnings[0];
}

// Whatever its name, the job's own folder is no other run's.
TEST(StartingPoint, WhatIsSkippedInTheOwnFolderIsSaidOnce) {
  JobSpec job = SavingJob("by_another_name", 10);
  job.mutable_checkpoint()->set_every(5);
  ASSERT_TRUE(Train(job, {}).status().ok());
  const std::string& directory = job.checkpoint().directory();
  FlipABit(CheckpointPath(directory, 10) + "/rank-00000.safetensors");
  job.mutable_training()->set_stop_after(8);
  const TrainingRun run = Train(job, {.resume = directory + "/"});
  ASSERT_TRUE(run.status().ok()) << run.status();
  ASSERT_EQ(run.warnings.size(), 1u) << run.warnings[1];
  EXPECT_TRUE(absl::StrContains(run.warnings[0], "its content changed"))
      << run.warnings[0];
}

// Of another job's folder, the newest that is whole.
TEST(StartingPoint, AFolderStandsForTheNewestInIt) {
  JobSpec job = SavingJob("folder", 10);
  const std::string folder = job.checkpoint().directory();
  job.mutable_checkpoint()->set_every(5);
  ASSERT_TRUE(Train(job, {}).status().ok());
  std::filesystem::remove(CheckpointPath(folder, 10) +
                          "/rank-00000.safetensors");
  job = SavingJob("other_folder", 8);
  const TrainingRun run = Train(job, {.resume = folder});
  ASSERT_TRUE(run.status().ok()) << run.status();
  ASSERT_EQ(run.steps[0].size(), 3u);
  EXPECT_EQ(run.steps[0][0].step(), 6);
  ASSERT_EQ(run.warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(run.warnings[0], CheckpointPath(folder, 10)))
      << run.warnings[0];
  // One that holds none is no checkpoint either.
  std::filesystem::create_directories(folder + "/empty");
  job = SavingJob("other_folder", 8);
  const absl::Status none = Train(job, {.resume = folder + "/empty"}).status();
  EXPECT_TRUE(absl::IsNotFound(none)) << none;
}

// To the folder it is as new as one that resumes nothing.
TEST(StartingPoint, ARunFromElsewhereTakesNobodysPlaceUnasked) {
  JobSpec job = SavingJob("pretrained", 2);
  ASSERT_TRUE(Train(job, {}).status().ok());
  const std::string model = CheckpointPath(job.checkpoint().directory(), 2);
  job = SavingJob("tuned", 10);
  const std::string& directory = job.checkpoint().directory();
  job.mutable_checkpoint()->set_every(5);
  job.mutable_checkpoint()->set_keep(1);
  ASSERT_TRUE(Train(job, {.resume = model}).status().ok());
  for (const std::string& resume :
       {model, std::filesystem::path(model).parent_path().string()}) {
    EXPECT_TRUE(Fails(Train(job, {.resume = resume}).status(),
                      absl::StatusCode::kFailedPrecondition,
                      {directory, "checkpoint.resume: latest",
                       "checkpoint.overwrite: true"}));
  }
  EXPECT_EQ(FindNewestComplete(directory)->step, 10);
  job.mutable_training()->set_stop_after(5);
  job.mutable_checkpoint()->set_overwrite(true);
  const TrainingRun asked = Train(job, {.resume = model});
  ASSERT_TRUE(asked.status().ok()) << asked.status();
  EXPECT_EQ(FindNewestComplete(directory)->step, 5) << "not the other's";
}

// A folder of checkpoints that are kept, or were imported, is another one.
TEST(StartingPoint, ARunFromAFolderBelowItsOwnIsNewToThat) {
  JobSpec job = SavingJob("below", 8);
  const std::string directory = job.checkpoint().directory();
  const std::string keep = directory + "/keep";
  JobSpec kept = job;
  kept.mutable_checkpoint()->set_directory(keep);
  kept.mutable_training()->set_stop_after(2);
  ASSERT_TRUE(Train(kept, {}).status().ok());
  ASSERT_TRUE(Train(job, {}).status().ok());
  EXPECT_TRUE(Fails(Train(job, {.resume = keep}).status(),
                    absl::StatusCode::kFailedPrecondition,
                    {directory, "checkpoint.overwrite: true"}));
  job.mutable_training()->set_stop_after(5);
  job.mutable_checkpoint()->set_overwrite(true);
  const TrainingRun asked = Train(job, {.resume = keep});
  ASSERT_TRUE(asked.status().ok()) << asked.status();
  ASSERT_EQ(asked.warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(asked.warnings[0], "is removed when"))
      << asked.warnings[0];
  EXPECT_EQ(FindNewestComplete(directory)->step, 5) << "not the other's";
  EXPECT_EQ(FindNewestComplete(keep)->step, 2);
}

// A disk that answers reads of some files with other bytes than it has, or with
// an error.
class FaultyDisk final : public IoEngine {
 public:
  struct Fault {
    std::string path;    // a part of it
    absl::Status error;  // OK: a bit is flipped
  };
  explicit FaultyDisk(Fault fault)
      : fault_(std::move(fault)),
        disk_(MakeIoEngine({.kind = "thread_pool", .log = false}).value()) {}

  absl::string_view name() const override { return "faulty"; }
  int depth() const override { return disk_->depth(); }
  int in_flight() const override { return disk_->in_flight(); }
  absl::StatusOr<IoFile> Open(const std::string& path, IoMode mode) override {
    ASSIGN_OR_RETURN(const IoFile file, disk_->Open(path, mode));
    faulty_[file.id] = absl::StrContains(path, fault_.path);
    return file;
  }
  absl::StatusOr<uint64_t> Size(IoFile file) override {
    return disk_->Size(file);
  }
  std::vector<IoCompletion> Poll(absl::Duration timeout) override {
    std::vector<IoCompletion> done = disk_->Poll(timeout);
    for (IoCompletion& completion : done) {
      const IoRequest& request = requests_[completion.tag];
      if (!faulty_[request.file.id]) continue;
      if (request.kind != IoKind::kRead || !completion.status.ok()) continue;
      completion.status = fault_.error;
      request.data[request.bytes / 2] ^= 1;
    }
    return done;
  }
  void Cancel() override { disk_->Cancel(); }
  absl::Status Sync(IoFile file) override { return disk_->Sync(file); }
  absl::Status Close(IoFile file) override { return disk_->Close(file); }

 protected:
  void Start(absl::Span<const IoRequest> requests) override {
    for (const IoRequest& request : requests) requests_[request.tag] = request;
    CHECK_OK(disk_->Submit(requests));
  }

 private:
  const Fault fault_;
  const std::unique_ptr<IoEngine> disk_;
  std::map<int, bool> faulty_;              // by file
  std::map<uint64_t, IoRequest> requests_;  // by tag
};

// Two ranks, of which the second has the fault.
TrainOptions WithAFaultOfRankOne(const FaultyDisk::Fault& fault) {
  return {.ranks = 2, .resume = "latest", .new_io = [fault](int rank) {
            return std::make_unique<FaultyDisk>(
                rank == 1 ? fault : FaultyDisk::Fault{.path = "no file"});
          }};
}

JobSpec TwoRanks(const std::string& folder) {
  JobSpec job = SavingJob(folder, 10);
  job.mutable_checkpoint()->set_every(5);
  job.mutable_training()->set_micro_batch_size(4);
  job.mutable_parallelism()->set_data(2);
  return job;
}

TEST(StartingPoint, DamageThatOneRankMeetsMakesAllResumeFromTheSame) {
  JobSpec job = TwoRanks("one_rank");
  ASSERT_TRUE(Train(job, {.ranks = 2}).status().ok());
  job.mutable_training()->set_stop_after(12);
  const TrainingRun run =
      Train(job, WithAFaultOfRankOne({.path = "step-00000010/"}));
  ASSERT_TRUE(run.status().ok()) << run.status();
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(run.steps[rank].size(), 7u);
    EXPECT_EQ(run.steps[rank][0].step(), 6);
  }
  ASSERT_EQ(run.warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(run.warnings[0], "its content changed"))
      << run.warnings[0];
}

TEST(StartingPoint, AnErrorOfADiskIsNoReasonToTakeAnOlderOne) {
  JobSpec job = TwoRanks("disk_error");
  ASSERT_TRUE(Train(job, {.ranks = 2}).status().ok());
  job.mutable_training()->set_stop_after(12);
  const TrainingRun run = Train(
      job,
      WithAFaultOfRankOne({.path = "step-00000010/",
                           .error = absl::UnavailableError("EIO: the shard")}));
  EXPECT_TRUE(absl::IsUnavailable(run.statuses[1])) << run.statuses[1];
  EXPECT_TRUE(absl::StrContains(run.statuses[1].message(), "EIO"))
      << run.statuses[1];
  EXPECT_FALSE(run.statuses[0].ok()) << "it waits for the other";
}

TEST(StartingPoint, WhatRankZeroCannotReadIsAnErrorToo) {
  JobSpec job = SavingJob("unreadable", 10);
  job.mutable_checkpoint()->set_every(5);
  ASSERT_TRUE(Train(job, {}).status().ok());
  const std::string manifest =
      CheckpointPath(job.checkpoint().directory(), 10) + "/manifest.json";
  std::filesystem::remove(manifest);
  std::filesystem::create_symlink(manifest, manifest);
  const absl::Status status = Train(job, {.resume = "latest"}).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "ELOOP")) << status;
}

TEST(StartingPoint, AStopBeforeTheCheckpointIsRefused) {
  JobSpec job = SavingJob("past", 5);
  ASSERT_TRUE(Train(job, {}).status().ok());
  job.mutable_training()->set_stop_after(4);
  const TrainingRun run = Train(job, {.resume = "latest"});
  EXPECT_TRUE(absl::IsInvalidArgument(run.status())) << run.status();
  EXPECT_TRUE(
      absl::StrContains(run.status().message(), "training.stop_after: 4, but"))
      << run.status();
}

TEST(StartingPoint, ACheckpointOfAnotherModelIsRefused) {
  JobSpec job = SavingJob("other", 1);
  ASSERT_TRUE(Train(job, {}).status().ok());
  JobSpec shallow = job;
  shallow.mutable_model()->set_num_hidden_layers(1);
  absl::Status status = Train(shallow, {.resume = "latest"}).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "it has transformer.h.1."))
      << "the layers that are left over do not vanish silently: " << status;
  JobSpec heads = job;
  heads.mutable_model()->set_num_attention_heads(1);
  status = Train(heads, {.resume = "latest"}).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "there, but 1 in this job"))
      << status;
}

TEST(StartingPoint, WarnsOfOtherSettingsThanTheCheckpointWasTrainedWith) {
  JobSpec job = SavingJob("settings", 1);
  const std::string& directory = job.checkpoint().directory();
  ASSERT_TRUE(Train(job, {}).status().ok());
  job.mutable_training()->set_stop_after(2);
  job.mutable_optimizer()->set_lr(2 * job.optimizer().lr());
  const TrainingRun run = Train(job, {.resume = CheckpointPath(directory, 1)});
  ASSERT_TRUE(run.status().ok()) << run.status();
  ASSERT_EQ(run.warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(run.warnings[0],
                                "was trained with other settings: "
                                "optimizer.lr is "))
      << run.warnings[0];
}

// Their damage may have been found after this, and mended since.
TEST(StartingPoint, WarnsOfTokensThatWereNotChecked) {
  JobSpec job = SavingJob("unchecked", 1);
  ASSERT_TRUE(Train(job, {}).status().ok());
  const std::string path = CheckpointPath(job.checkpoint().directory(), 1);
  absl::StatusOr<Manifest> manifest = ReadManifest(path);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_FALSE(manifest->data_unchecked);
  manifest->data_unchecked = true;
  WriteText(path + "/manifest.json", FormatManifest(*manifest));
  job.mutable_training()->set_stop_after(2);
  const TrainingRun run = Train(job, {.resume = path});
  ASSERT_TRUE(run.status().ok()) << run.status();
  ASSERT_EQ(run.warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(
      run.warnings[0], path + " was written before it was known whether"))
      << run.warnings[0];
}

TEST(StartingPoint, WarnsOfWhatAnEarlierRunLeft) {
  JobSpec job = SavingJob("again", 5);
  job.mutable_checkpoint()->set_every(3);
  const std::string& directory = job.checkpoint().directory();
  EXPECT_TRUE(Train(job, {}).warnings.empty());
  job.mutable_training()->set_stop_after(4);
  const TrainingRun again =
      Train(job, {.resume = CheckpointPath(directory, 3)});
  ASSERT_TRUE(again.status().ok()) << again.status();
  ASSERT_EQ(again.warnings.size(), 1u);
  EXPECT_TRUE(
      absl::StrContains(again.warnings[0], CheckpointPath(directory, 5)))
      << again.warnings[0];
  job.mutable_training()->set_stop_after(6);
  EXPECT_TRUE(
      Train(job, {.resume = CheckpointPath(directory, 5)}).warnings.empty());
}

// Writes other tokens to the job's path; the former ones come back with
// WriteText.
void PrepareOtherTokens(const JobSpec& job) {
  const std::string& path = job.data().tokens();
  const auto old = TokenFile::Open(path);
  ASSERT_TRUE(old.ok()) << old.status();
  std::vector<int32_t> tokens(old->size());
  ASSERT_TRUE(old->Read(0, tokens.size(), tokens.data()).ok());
  std::swap(tokens.front(), tokens.back());
  tokens[5] = (tokens[5] + 1) % 3;
  auto writer = TokenFileWriter::Create({.path = path,
                                         .vocab_size = old->layout().vocab_size,
                                         .tokenizer = old->layout().tokenizer});
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Append(tokens).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
}

// Wherever a run stops, and by whatever plan the next one goes on, the samples
// of a mix come in one order.
TEST(StartingPoint, AMixIsResumedExactlyByAnotherPlan) {
  const auto mix_job = [](int64_t stop_after) {
    JobSpec job = SavingJob("mix", stop_after);
    DataSpec& data = *job.mutable_data();
    const std::string tokens = data.tokens();
    DataSource& first = *data.add_sources();
    first.set_tokens(tokens);
    first.set_weight(0.6);
    JobSpec other = job;
    other.mutable_data()->set_tokens(tokens + ".mixed");
    WriteText(other.data().tokens(), ReadText(tokens));
    PrepareOtherTokens(other);
    DataSource& second = *data.add_sources();
    second.set_tokens(other.data().tokens());
    second.set_weight(0.4);
    data.clear_tokens();
    data.set_validation_blocks(2);
    return job;
  };
  const TrainingRun whole = Train(mix_job(6), {});
  ASSERT_TRUE(whole.status().ok()) << whole.status();
  JobSpec job = mix_job(3);
  ASSERT_TRUE(Train(job, {}).status().ok());
  const std::string path = CheckpointPath(job.checkpoint().directory(), 3);
  job.mutable_training()->set_stop_after(6);
  job.mutable_training()->set_micro_batch_size(4);
  job.mutable_parallelism()->set_data(2);
  const TrainingRun rest = Train(job, {.ranks = 2, .resume = path});
  ASSERT_TRUE(rest.status().ok()) << rest.status();
  ASSERT_EQ(rest.steps[0].size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(rest.steps[0][i].loss(), whole.steps[0][3 + i].loss(), 1e-4);
  }
  // Another order of the sources is another order of the samples.
  job.mutable_data()->mutable_sources()->SwapElements(0, 1);
  EXPECT_TRUE(Fails(Train(job, {.ranks = 2, .resume = path}).status(),
                    absl::StatusCode::kInvalidArgument,
                    {"in another order: a mix of 2; 3 of 5: troupe, 4000",
                     "0.2 held back in 2 blocks"}));
}

// As two hosts may, under one path, where nothing is resumed either.
TEST(StartingPoint, RanksThatHaveOtherTokensDoNotStart) {
  JobSpec job = TwoRanks("other_hosts_tokens");
  const std::string other = job.data().tokens() + ".other";
  WriteText(other, ReadText(job.data().tokens()));
  JobSpec with_other = job;
  with_other.mutable_data()->set_tokens(other);
  PrepareOtherTokens(with_other);
  const TrainingRun run =
      Train(job, {.ranks = 2, .change_assignment = [&](int rank, Plan& plan) {
                    if (rank == 0) return;
                    plan.mutable_job()->mutable_data()->set_tokens(other);
                  }});
  EXPECT_TRUE(Fails(run.statuses[0], absl::StatusCode::kFailedPrecondition,
                    {"data.tokens: worker-1 (rank 1) has troupe, 4000 tokens",
                     "worker-0 (rank 0) has troupe, 4000 tokens"}));
  EXPECT_FALSE(run.statuses[1].ok());
  EXPECT_TRUE(run.steps[0].empty());
}

TEST(StartingPoint, OtherTokensThanTheCheckpointsAreRefused) {
  JobSpec job = SavingJob("tokens", 2);
  ASSERT_TRUE(Train(job, {}).status().ok());
  const std::string path = CheckpointPath(job.checkpoint().directory(), 2);
  const std::string tokens = ReadText(job.data().tokens());
  PrepareOtherTokens(job);
  job.mutable_training()->set_stop_after(4);
  const absl::Status refused = Train(job, {.resume = path}).status();
  EXPECT_TRUE(
      Fails(refused, absl::StatusCode::kInvalidArgument,
            {path,
             "trained on other tokens, or on the same in another order: "
             "troupe, 4000 tokens",
             "data.tokens: " + job.data().tokens(), "put that back",
             "data.changed: true"}));
  job.mutable_data()->set_changed(true);
  const TrainingRun meant = Train(job, {.resume = path});
  ASSERT_TRUE(meant.status().ok()) << meant.status();
  ASSERT_EQ(meant.warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(meant.warnings[0], "data.tokens: troupe"))
      << meant.warnings[0];
  // The same tokens at another place are the same tokens.
  job.mutable_data()->set_changed(false);
  WriteText(job.data().tokens(), tokens);
  job.mutable_data()->set_tokens(job.data().tokens() + ".copy");
  WriteText(job.data().tokens(), tokens);
  const TrainingRun copy = Train(job, {.resume = path});
  EXPECT_TRUE(copy.status().ok()) << copy.status();
}

}  // namespace
}  // namespace troupe
