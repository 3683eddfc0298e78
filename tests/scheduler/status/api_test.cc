#include "scheduler/status/api.h"

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/scheduler/status/made_up_cluster.h"

namespace troupe {
namespace {

class ApiTest : public testing::Test {
 protected:
  nlohmann::json Get(const std::string& path, int64_t from = 0) {
    const auto answer = ApiAnswer(made_up_.host, path, from, absl::Seconds(5));
    CHECK_OK(answer.status());
    return nlohmann::json::parse(*answer);
  }
  MadeUpCluster made_up_;
};

TEST_F(ApiTest, ClusterWorkersAndJobs) {
  const auto cluster = Get("/cluster");
  EXPECT_EQ(cluster["uptime_seconds"], 5);
  EXPECT_EQ(cluster["workers"]["busy"], 4);
  EXPECT_EQ(cluster["workers"]["idle"], 1);
  EXPECT_EQ(cluster["workers"]["lost"], 1);
  EXPECT_EQ(cluster["jobs"]["running"], 1);
  EXPECT_EQ(cluster["jobs"]["queued"], 1);
  const auto workers = Get("/workers")["workers"];
  ASSERT_EQ(workers.size(), 6u);
  EXPECT_EQ(workers[0]["description"]["name"], "worker-0");
  EXPECT_EQ(workers[0]["state"], "IDLE");
  EXPECT_EQ(workers[1]["state"], "BUSY");
  EXPECT_EQ(workers[5]["state"], "LOST");
  const auto jobs = Get("/jobs/")["jobs"];
  ASSERT_GE(jobs.size(), 2u);
  EXPECT_EQ(jobs[0]["state"], "QUEUED");
}

TEST_F(ApiTest, OneJob) {
  const std::string path = absl::StrCat("/jobs/", made_up_.running().value());
  const auto job = Get(path);
  EXPECT_EQ(job["status"]["state"], "RUNNING");
  EXPECT_EQ(job["plan"]["derived"]["tokens_per_step"], 8192);
  EXPECT_EQ(job["steps"].size(), 0u);
  EXPECT_GT(job["events"].size(), 1u);
  const auto steps = Get(path + "/steps", 100)["steps"];
  ASSERT_EQ(steps.size(), 20u);
  EXPECT_EQ(steps[0]["step"], 101);
  EXPECT_TRUE(steps[0]["loss"].is_number());
  const auto timeline = Get(path + "/timeline");
  EXPECT_EQ(timeline["measured"]["ranks"].size(), 4u);
  EXPECT_TRUE(
      timeline["predicted"]["ranks"][0]["spans"][0]["end_ns"].is_number());
}

TEST_F(ApiTest, WhatIsNotThereIsNotFound) {
  for (const char* path :
       {"", "/", "/nothing", "/jobs/99", "/jobs/99/steps", "/jobs/x",
        "/jobs/1/nothing", "/jobs/1/steps/2", "/cluster/x"}) {
    EXPECT_TRUE(
        absl::IsNotFound(ApiAnswer(made_up_.host, path, 0, {}).status()))
        << path;
  }
}

}  // namespace
}  // namespace troupe
