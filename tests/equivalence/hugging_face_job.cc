#include "tests/equivalence/hugging_face_job.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "storage/dataset/token_file_writer.h"
#include "storage/tier/allocator.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/text_plan_of.h"
#include "worker/engine/text_generation.h"

namespace troupe {
namespace {

std::string TokensOf(const std::vector<int32_t>& ids, uint64_t vocab_size) {
  const std::string path = FreshPath("tokens");
  auto writer = TokenFileWriter::Create(
      {.path = path, .vocab_size = vocab_size, .tokenizer = "none"});
  EXPECT_TRUE(writer.ok()) << writer.status();
  EXPECT_TRUE((*writer)->Append(ids).ok());
  EXPECT_TRUE((*writer)->Finish().ok());
  return path;
}

}  // namespace

Expected::Expected(const std::string& model)
    : directory(absl::StrCat("tests/oracle/hf/", model)) {
  const nlohmann::json json =
      nlohmann::json::parse(std::ifstream(directory + "/expected.json"));
  ids = json.at("ids").get<std::vector<int32_t>>();
  greedy = json.at("greedy").get<std::vector<int32_t>>();
  loss = json.at("loss_float64").get<double>();
}

std::string FreshPath(const std::string& name) {
  const std::string path = absl::StrCat(testing::TempDir(), "/hf_", name);
  std::filesystem::remove_all(path);
  return path;
}

JobSpec OneStep(const Expected& expected, const ModelSpec& model) {
  JobSpec job = SmallJob();
  *job.mutable_model() = model;
  job.mutable_data()->set_tokens(TokensOf(expected.ids, model.vocab_size()));
  job.mutable_data()->set_validation_fraction(0);
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(1);
  training.set_dropout(0);
  training.clear_validate_every();
  training.set_global_batch_size(1);
  training.set_micro_batch_size(1);
  training.set_sequence_length(static_cast<int>(expected.ids.size()) - 1);
  job.mutable_lr_scheduler()->set_warmup_steps(0);
  return job;
}

std::vector<int32_t> Continue(const std::string& checkpoint,
                              const Expected& expected) {
  const std::unique_ptr<Device> device = NewCpuDevice({.threads = 1});
  TierBudget budget;
  budget.set_tier(DEVICE);
  budget.set_bytes(int64_t{1} << 30);
  HostAllocator allocator;
  const TierArenas arenas({budget}, allocator);
  std::vector<int32_t> ids;
  const absl::Status status = ContinueText(
      {.checkpoint = checkpoint,
       .plan = TextPlanOf(checkpoint),
       .prompt_ids = expected.ids,
       .max_new_tokens = static_cast<int64_t>(expected.greedy.size()),
       .ignore_eos = true,
       .sampling = {.temperature = 0}},
      *device, arenas, [&](const TextPiece& piece) {
        ids.insert(ids.end(), piece.ids.begin(), piece.ids.end());
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  return ids;
}

}  // namespace troupe
