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

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void SetField(const FieldDescriptor& field, int depth, Message& message);

// Something in each field, one level after the other.
void Fill(int depth, Message& message) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    SetField(*message.GetDescriptor()->field(i), depth, message);
  }
}

void SetField(const FieldDescriptor& field, int depth, Message& message) {
  const google::protobuf::Reflection& set = *message.GetReflection();
  const bool repeated = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (depth > 0) {
        Fill(depth - 1, repeated ? *set.AddMessage(&message, &field)
                                 : *set.MutableMessage(&message, &field));
      }
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      return repeated ? set.AddString(&message, &field, "text")
                      : set.SetString(&message, &field, "text");
    case FieldDescriptor::CPPTYPE_INT32:
      return repeated ? set.AddInt32(&message, &field, 1)
                      : set.SetInt32(&message, &field, 1);
    case FieldDescriptor::CPPTYPE_INT64:
      return repeated ? set.AddInt64(&message, &field, 1)
                      : set.SetInt64(&message, &field, 1);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return repeated ? set.AddDouble(&message, &field, 1)
                      : set.SetDouble(&message, &field, 1);
    case FieldDescriptor::CPPTYPE_UINT64:
      ASSERT_FALSE(repeated) << field.full_name();
      return set.SetUInt64(&message, &field, 1);
    case FieldDescriptor::CPPTYPE_BOOL:
      ASSERT_FALSE(repeated) << field.full_name();
      return set.SetBool(&message, &field, true);
    case FieldDescriptor::CPPTYPE_ENUM:
      return repeated ? set.AddEnumValue(&message, &field, 1)
                      : set.SetEnumValue(&message, &field, 1);
    default:
      FAIL() << "no JSON form for " << field.full_name();
  }
}

TEST(DescriptionJson, EveryFieldOfAJobAndItsPlanHasAForm) {
  JobDescription job;
  Fill(/*depth=*/9, job);
  EXPECT_FALSE(json::parse(DescriptionJson(job))["plan"]["tables"].empty());
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
