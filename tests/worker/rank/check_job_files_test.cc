#include "worker/rank/check_job_files.h"

#include <filesystem>
#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"
#include "tests/storage/dataset/foreign_files.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

JobSpec Resolved(const JobSpec& job) {
  return CompileForThreads(job, 1).value().job();
}

// A checkpoint of the job after two steps, in `directory`.
std::string Saved(const std::string& directory) {
  JobSpec job = SmallJob();
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_training()->set_stop_after(2);
  EXPECT_TRUE(Train(job, {}).status().ok());
  return CheckpointPath(directory, 2);
}

JobSpec Resuming(const std::string& resume, const std::string& directory) {
  JobSpec job = SmallJob();
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_checkpoint()->set_resume(resume);
  return job;
}

void ExpectRefused(const JobSpec& job, absl::string_view begin,
                   absl::string_view part) {
  const absl::Status status = CheckFilesOf(job);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StartsWith(status.message(), begin)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), part)) << status;
}

TEST(CheckJobFiles, AJobThatWouldStartIsLetThrough) {
  const TempDir dir;
  const std::string checkpoint = Saved(dir.File("ckpt"));
  EXPECT_TRUE(CheckFilesOf(Resolved(SmallJob())).ok());
  for (const std::string& resume :
       {checkpoint, dir.File("ckpt"), std::string("latest"),
        std::string("auto")}) {
    const absl::Status status =
        CheckFilesOf(Resolved(Resuming(resume, dir.File("ckpt"))));
    EXPECT_TRUE(status.ok()) << resume << ": " << status;
  }
  // A fresh start, in a directory that is made when the job starts.
  EXPECT_TRUE(CheckFilesOf(Resolved(Resuming("auto", dir.File("new")))).ok());
  EXPECT_FALSE(std::filesystem::exists(dir.File("new")));
}

TEST(CheckJobFiles, TokenFilesThatAreMissingOrDoNotFit) {
  const TempDir dir;
  JobSpec job = Resolved(SmallJob());
  const std::string tokens = job.data().tokens();
  job.mutable_data()->set_tokens(dir.File("none.tokens"));
  ExpectRefused(job, "data.tokens: ", dir.File("none.tokens"));
  WriteText(dir.File("text.tokens"), "no tokens at all");
  job.mutable_data()->set_tokens(dir.File("text.tokens"));
  ExpectRefused(job, "data.tokens: ", dir.File("text.tokens"));
  job.mutable_data()->set_tokens(tokens);
  job.mutable_data()->set_validation(dir.File("none.tokens"));
  ExpectRefused(job, "data.validation: ", dir.File("none.tokens"));
  job.mutable_data()->clear_validation();
  job.mutable_model()->set_vocab_size(3);
  ExpectRefused(job, "model.vocab_size: 3, but ", tokens);
}

TEST(CheckJobFiles, PromptsThatItsTokenizerDoesNotTake) {
  const auto sampling = [](const std::string& prompt) {
    JobSpec job = SmallJob();
    SampleSpec& sample = *job.mutable_data()->mutable_sample();
    sample.set_prompt(prompt);
    sample.set_tokens(12);
    return Resolved(job);
  };
  EXPECT_TRUE(CheckFilesOf(sampling("0123")).ok());
  EXPECT_TRUE(CheckFilesOf(sampling("01234567")).ok());
  ExpectRefused(sampling("012345678"), "data.sample.prompt: ",
                "has 9 tokens, with 12 more that data.sample.tokens adds, and "
                "the model sees 20");
  ExpectRefused(sampling("01z"), "data.sample.prompt: ",
                "token 122 of it is not in the model's vocabulary of 61");
  const TempDir dir;
  JobSpec unknown = sampling("0123");
  WriteText(dir.File("data.bin"),
            LlmcHeaderBytes({.tokens = 4000}) + std::string(8000, '\0'));
  unknown.mutable_data()->set_tokens(dir.File("data.bin"));
  ExpectRefused(unknown,
                "data.sample: ", "do not say which tokenizer made them");
}

// Before it has been planned.
TEST(CheckJobFiles, OfAJobThatIsNotResolvedTokenFilesAreLookedAt) {
  const TempDir dir;
  JobSpec job;
  job.mutable_data()->set_tokens(dir.File("none.tokens"));
  ExpectRefused(job, "data.tokens: ", dir.File("none.tokens"));
  job.mutable_data()->clear_tokens();
  EXPECT_TRUE(CheckFilesOf(job).ok());
}

TEST(CheckJobFiles, CheckpointsThatAreMissingOrOfAnotherTraining) {
  const TempDir dir;
  const std::string ckpt = dir.File("ckpt");
  const std::string checkpoint = Saved(ckpt);
  constexpr char kField[] = "checkpoint.resume: ";
  ExpectRefused(Resolved(Resuming(dir.File("none"), ckpt)), kField,
                dir.File("none"));
  ExpectRefused(Resolved(Resuming("latest", dir.File("none"))), kField,
                "no complete checkpoint among 0");

  const auto changed = [&](const std::function<void(JobSpec&)>& change) {
    JobSpec job = Resuming("auto", ckpt);
    change(job);
    return Resolved(job);
  };
  ExpectRefused(
      changed([](JobSpec& j) { j.mutable_model()->set_num_hidden_layers(1); }),
      kField, "it has transformer.h.1.");
  ExpectRefused(
      changed([](JobSpec& j) { j.mutable_model()->set_intermediate_size(24); }),
      kField, "in this job");
  JobSpec shorter = Resuming(checkpoint, ckpt);
  shorter.mutable_training()->set_steps(1);
  ExpectRefused(Resolved(shorter), kField,
                "of step 2, but training.steps is 1");
  // With `auto` it is done, which is no error.
  shorter.mutable_checkpoint()->set_resume("auto");
  EXPECT_TRUE(CheckFilesOf(Resolved(shorter)).ok());

  const std::string shard = checkpoint + "/rank-00000.safetensors";
  EXPECT_TRUE(CheckFilesOf(Resolved(Resuming(checkpoint, ckpt))).ok());
  std::filesystem::resize_file(shard, 100);
  ExpectRefused(Resolved(Resuming(checkpoint, ckpt)), kField,
                "rank-00000.safetensors: has 100 bytes, the manifest says ");
  std::filesystem::remove(shard);
  ExpectRefused(Resolved(Resuming(checkpoint, ckpt)), kField,
                "is not whole: " + shard + ": is missing; name another one");
  ExpectRefused(Resolved(Resuming("auto", ckpt)), kField,
                "no complete checkpoint among 1");
}

// Adapters are part of what is trained, so their checkpoints fit.
TEST(CheckJobFiles, ACheckpointWithAdaptersFitsAJobWithThem) {
  const TempDir dir;
  JobSpec job = Resuming("", dir.File("ckpt"));
  job.mutable_training()->mutable_lora()->set_rank(2);
  job.mutable_training()->set_stop_after(2);
  ASSERT_TRUE(Train(job, {}).status().ok());
  job.mutable_training()->clear_stop_after();
  job.mutable_checkpoint()->set_resume("auto");
  const absl::Status status = CheckFilesOf(Resolved(job));
  EXPECT_TRUE(status.ok()) << status;
  job.mutable_training()->clear_lora();
  ExpectRefused(Resolved(job), "checkpoint.resume: ", "lora_");
}

// A job that cannot be planned yet is sent as its file has it, which may say
// some of what resolved jobs say: its adapters are not known then.
TEST(CheckJobFiles, OfAJobThatIsNotResolvedNoModelIsLookedAt) {
  const TempDir dir;
  JobSpec job = Resuming("", dir.File("ckpt"));
  job.mutable_training()->mutable_lora()->set_rank(2);
  job.mutable_training()->set_stop_after(2);
  ASSERT_TRUE(Train(job, {}).status().ok());
  job = Resolved(job);
  job.mutable_checkpoint()->set_resume("auto");
  job.mutable_training()->mutable_lora()->clear_modules();
  const absl::Status status = CheckFilesOf(job);
  EXPECT_TRUE(status.ok()) << status;
}

TEST(CheckJobFiles, AdaptersThatAreMissingOrOfAnotherRank) {
  const TempDir dir;
  JobSpec job = SmallJob();
  LoraSpec& lora = *job.mutable_training()->mutable_lora();
  lora.set_rank(2);
  lora.set_adapter(dir.File("none"));
  ExpectRefused(Resolved(job), "training.lora.adapter: ", dir.File("none"));
  std::filesystem::create_directory(dir.File("adapter"));
  WriteText(dir.File("adapter/adapter_config.json"),
            R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8})");
  lora.set_adapter(dir.File("adapter"));
  ExpectRefused(Resolved(job), "training.lora.rank: is 2, but r ", " is 4");
  lora.set_rank(4);
  ExpectRefused(Resolved(job),
                "training.lora.adapter: ", "adapter_model.safetensors");
  // They are not read where the job goes on from a checkpoint with adapters.
  lora.clear_adapter();
  job.mutable_training()->set_stop_after(2);
  job.mutable_checkpoint()->set_directory(dir.File("ckpt"));
  ASSERT_TRUE(Train(job, {}).status().ok());
  lora.set_adapter(dir.File("none"));
  job.mutable_training()->clear_stop_after();
  job.mutable_checkpoint()->set_resume("auto");
  EXPECT_TRUE(CheckFilesOf(Resolved(job)).ok()) << CheckFilesOf(Resolved(job));
}

TEST(CheckJobFiles, IsolatedDocumentsNeedFilesThatSayWhereTheyEnd) {
  const TempDir dir;
  const JobSpec resolved = Resolved(IsolatingDocuments(SmallJob()));
  EXPECT_TRUE(CheckFilesOf(resolved).ok()) << CheckFilesOf(resolved);
  // Files of llm.c have tokens only.
  WriteText(dir.File("llm.bin"),
            LlmcHeaderBytes({.tokens = 4096}) + std::string(2 * 4096, '\1'));
  JobSpec without = resolved;
  without.mutable_data()->set_tokens(dir.File("llm.bin"));
  ExpectRefused(without, "data: ", "data.isolate_documents needs");
}

TEST(CheckJobFiles, AModelWhoseWeightsAreNotThere) {
  const TempDir dir;
  JobSpec job = Resolved(SmallJob());
  job.mutable_model()->set_hf(dir.path());
  ExpectRefused(job, "model.hf: ", dir.path());
  // They are not read where the job goes on from a checkpoint.
  Saved(dir.File("ckpt"));
  JobSpec resumed = Resolved(Resuming("auto", dir.File("ckpt")));
  resumed.mutable_model()->set_hf(dir.path());
  EXPECT_TRUE(CheckFilesOf(resumed).ok()) << CheckFilesOf(resumed);
}

TEST(CheckJobFiles, FoldersOfMetricsThatCannotBeMade) {
  const TempDir dir;
  WriteText(dir.File("file"), "");
  const std::string below = dir.File("file") + "/runs";
  JobSpec job = SmallJob();
  job.mutable_metrics()->set_directory(below);
  ExpectRefused(Resolved(job), "metrics.directory: ", "ENOTDIR");
  ExpectRefused(job, "metrics.directory: ", "ENOTDIR");
  job.mutable_metrics()->set_directory("");
  job.mutable_metrics()->set_tensorboard(below);
  ExpectRefused(Resolved(job), "metrics.tensorboard: ", "ENOTDIR");
  // It is there by default that they are.
  job.clear_metrics();
  job.mutable_checkpoint()->set_directory(below);
  ExpectRefused(Resolved(job), "checkpoint.directory: ", "ENOTDIR");
  job.mutable_checkpoint()->set_directory(dir.File("new"));
  job.mutable_metrics()->set_tensorboard(dir.File("tb"));
  EXPECT_TRUE(CheckFilesOf(Resolved(job)).ok());
  EXPECT_FALSE(std::filesystem::exists(dir.File("new")));
  EXPECT_FALSE(std::filesystem::exists(dir.File("tb")));
}

// Of a client that sends what it likes.
TEST(CheckJobFiles, ABatchOfNothingIsRefused) {
  for (const bool evaluate : {false, true}) {
    JobSpec job = Resolved(SmallJob());
    job.mutable_training()->set_global_batch_size(0);
    if (evaluate) {
      job.set_evaluate(true);
      job.mutable_data()->set_validation(job.data().tokens());
      job.mutable_data()->clear_tokens();
      job.mutable_data()->set_validation_fraction(0);
      ExpectRefused(job, "training.global_batch_size: 0", "use 1 or more");
    } else {
      EXPECT_TRUE(CheckFilesOf(job).ok()) << "the planner refuses it";
    }
  }
}

}  // namespace
}  // namespace troupe
