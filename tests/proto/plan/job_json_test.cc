#include "proto/plan/job_json.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(JobJson, ComesBackAsItWas) {
  JobSpec job;
  job.set_name("small");
  job.mutable_model()->set_hidden_size(64);
  job.mutable_model()->set_tie_word_embeddings(false);
  const std::string json = JobJson(job);
  EXPECT_NE(json.find("\"hidden_size\":64"), std::string::npos) << json;
  const auto parsed = ParseJobJson(json);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->SerializeAsString(), job.SerializeAsString());
}

TEST(JobJson, MayHaveFieldsOfANewerVersion) {
  const auto parsed =
      ParseJobJson("{\"name\": \"new\", \"colour\": {\"red\": 1}}");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->name(), "new");
}

TEST(JobJson, RefusesWhatIsNoJob) {
  for (const char* json : {"", "[1]", "{\"name\": {}}", "{\"name\": "}) {
    EXPECT_EQ(ParseJobJson(json).status().code(), absl::StatusCode::kDataLoss)
        << json;
  }
}

}  // namespace
}  // namespace troupe
