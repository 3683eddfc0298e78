#include "clients/cli/view/message_json.h"

#include <cmath>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/job.pb.h"
#include "proto/program.pb.h"

namespace troupe {
namespace {

using nlohmann::json;

JobDescription Job() {
  JobDescription job;
  job.mutable_status()->set_id(3);
  job.mutable_status()->set_name("a \"name\"");
  job.mutable_status()->set_state(SUCCEEDED);
  job.mutable_status()->add_workers("worker-0");
  job.mutable_plan()->set_fingerprint("abc");
  job.mutable_plan()->mutable_prediction()->set_step_seconds(0.5);
  StepRecord& step = *job.add_steps();
  step.set_step(1);
  step.set_loss(2.5);
  step.set_memory_bytes(int64_t{1} << 40);
  *job.add_steps() = step;
  job.mutable_steps(1)->set_validation_loss(2.25);
  job.mutable_steps(1)->set_loss(std::nan(""));
  job.add_events()->set_text("queued");
  return job;
}

TEST(DescriptionJson, HasWhatScriptsRead) {
  const json parsed = json::parse(DescriptionJson(Job()));
  EXPECT_EQ(parsed["id"], 3);
  EXPECT_EQ(parsed["name"], "a \"name\"");
  EXPECT_EQ(parsed["state"], "SUCCEEDED");
  EXPECT_EQ(parsed["workers"][0], "worker-0");
  EXPECT_EQ(parsed["plan"]["fingerprint"], "abc");
  EXPECT_EQ(parsed["plan"]["prediction"]["step_seconds"], 0.5);
  EXPECT_EQ(parsed["events"][0]["text"], "queued");
  const json& step = parsed["steps"][0];
  for (const char* key :
       {"step", "loss", "grad_norm", "learning_rate", "tokens_per_second",
        "mfu", "step_seconds", "memory_bytes"}) {
    EXPECT_TRUE(step[key].is_number()) << key;
  }
  EXPECT_EQ(step["memory_bytes"], int64_t{1} << 40);
  EXPECT_TRUE(step["validation_loss"].is_null());
  EXPECT_EQ(parsed["steps"][1]["validation_loss"], 2.25);
  EXPECT_TRUE(parsed["steps"][1]["loss"].is_null()) << "not a number";
}

TEST(MessageJson, KnowsEveryKindOfField) {
  JobSpec job;
  job.mutable_training()->set_seed(~uint64_t{0});
  job.mutable_model()->set_tie_word_embeddings(true);
  job.mutable_optimizer()->add_betas(0.9);
  const json parsed = json::parse(MessageJsonText(job));
  EXPECT_EQ(parsed["training"]["seed"], ~uint64_t{0});
  EXPECT_EQ(parsed["model"]["tie_word_embeddings"], true);
  EXPECT_TRUE(parsed["model"]["hidden_size"].is_null());
  EXPECT_EQ(parsed["optimizer"]["betas"], json::array({0.9}));
  EXPECT_FALSE(parsed.contains("checkpoint"));

  Program program;
  program.set_kind(Program::TRAIN);
  program.add_instructions()->add_after(4);
  const json instruction = json::parse(MessageJsonText(program));
  EXPECT_EQ(instruction["kind"], "TRAIN");
  EXPECT_EQ(instruction["instructions"][0]["after"], json::array({4}));
  EXPECT_EQ(instruction["instructions"][0]["kind"], "KIND_UNSPECIFIED");
}

}  // namespace
}  // namespace troupe
