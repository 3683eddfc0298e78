#include "scheduler/status/api.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/scheduler/status/made_up_cluster.h"

namespace troupe {
namespace {

class ApiTest : public testing::Test {
 protected:
  nlohmann::json Get(const std::string& path, const ApiQuery& query = {}) {
    const auto answer = ApiAnswer(made_up_.host, path, query, started_);
    CHECK_OK(answer.status());
    return nlohmann::json::parse(*answer);
  }
  MadeUpCluster made_up_;
  const absl::Time started_ = absl::Now() - absl::Minutes(5);
};

TEST_F(ApiTest, ClusterWorkersAndJobs) {
  const auto cluster = Get("/cluster");
  EXPECT_GE(cluster["uptime_seconds"], 300);
  EXPECT_EQ(cluster["started_unix_ms"], absl::ToUnixMillis(started_));
  EXPECT_EQ(cluster["workers"]["busy"], 4);
  EXPECT_EQ(cluster["workers"]["idle"], 1);
  EXPECT_EQ(cluster["workers"]["lost"], 1);
  EXPECT_EQ(cluster["jobs"]["running"], 1);
  EXPECT_EQ(cluster["jobs"]["queued"], 1);
  const auto hosts = Get("/workers")["topology"]["hosts"];
  ASSERT_GT(hosts.size(), 0u);
  EXPECT_EQ(hosts[0]["devices"][0]["between"]["source"], "ASSUMED");
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
  const auto steps = Get(path + "/steps", {.from = 100})["steps"];
  ASSERT_EQ(steps.size(), 20u);
  EXPECT_EQ(steps[0]["step"], 101);
  EXPECT_TRUE(steps[0]["loss"].is_number());
  const auto timeline = Get(path + "/timeline");
  EXPECT_EQ(timeline["measured"]["ranks"].size(), 4u);
  EXPECT_TRUE(
      timeline["predicted"]["ranks"][0]["spans"][0]["end_ns"].is_number());
}

TEST_F(ApiTest, JobsComePageByPage) {
  for (int i = 0; i < 100; ++i) made_up_.Wait();
  const auto newest = Get("/jobs", {.limit = 10});
  const int total = newest["total"];
  ASSERT_GT(total, 100);
  ASSERT_EQ(newest["jobs"].size(), 10u);
  std::set<int64_t> seen;
  for (int offset = 0; offset < total + 30; offset += 30) {
    const auto page = Get("/jobs", {.offset = offset, .limit = 30});
    for (const auto& job : page["jobs"]) {
      seen.insert(job["id"].get<int64_t>());
    }
  }
  EXPECT_EQ(static_cast<int>(seen.size()), total) << "each once";
  EXPECT_EQ(Get("/jobs", {.offset = -5, .limit = -5})["jobs"].size(), 0u);
  EXPECT_EQ(Get("/cluster")["newest_running"], made_up_.running().value());
}

TEST_F(ApiTest, ABriefLookAtAJob) {
  const std::string path = absl::StrCat("/jobs/", made_up_.running().value());
  const auto brief = Get(path + "/brief");
  EXPECT_EQ(brief["status"]["state"], "RUNNING");
  EXPECT_LE(brief["status"]["checkpoints"].size(), 1u);
  EXPECT_EQ(brief["worker_count"], 4);
  EXPECT_GT(brief["recent_step_seconds"], 0);
  EXPECT_EQ(brief["sample"]["prompt"], "Once ");
  EXPECT_EQ(brief["sample"]["text"], "<b>upon a time");
  const int sample_step = brief["sample_step"];
  EXPECT_EQ(sample_step % 25, 0);
  const int events = brief["event_count"];
  ASSERT_GT(events, 1);
  EXPECT_EQ(static_cast<int>(brief["events"].size()), events);
  const auto news = Get(path + "/brief", {.from = events - 1});
  EXPECT_EQ(news["events"].size(), 1u);
  EXPECT_EQ(Get(path + "/brief", {.from = 1000})["events"].size(), 0u);
  const auto plan = Get(path + "/plan");
  EXPECT_EQ(plan["plan"]["derived"]["tokens_per_step"], 8192);
  EXPECT_EQ(plan["rank_count"], 4);
  EXPECT_FALSE(plan["plan"].contains("job"));
  ASSERT_EQ(plan["tiers"].size(), 1u);
  EXPECT_EQ(plan["tiers"][0]["tier"], "NVME");
  EXPECT_EQ(plan["tiers"][0]["bytes_in"], 4 * (300 << 20));
  EXPECT_EQ(plan["tiers"][0]["waited_seconds"], 0.05 + 0.01 * 3)
      << "of the rank that waits longest";
}

// Every field of the status has its place in brief; lists are cut.
TEST_F(ApiTest, ABriefStatusLacksNothingButTheLengthOfLists) {
  const std::string path = absl::StrCat("/jobs/", made_up_.running().value());
  auto whole = Get(path)["status"];
  auto brief = Get(path + "/brief")["status"];
  ASSERT_GT(whole["workers"].size(), 0u);
  EXPECT_EQ(brief["workers"][0], whole["workers"][0]);
  if (!whole["checkpoints"].empty()) {
    EXPECT_EQ(brief["checkpoints"][0], whole["checkpoints"].back());
  }
  for (const char* list : {"workers", "checkpoints"}) {
    whole.erase(list);
    brief.erase(list);
  }
  EXPECT_EQ(brief, whole);
}

// As the page does: only what is new is sent, and all of it is there.
TEST_F(ApiTest, CurvesStaySmallAndComeAsTheyGrow) {
  const std::string path =
      absl::StrCat("/jobs/", made_up_.running().value(), "/curves");
  std::map<int64_t, nlohmann::json> points;  // by their first step
  int64_t stride = 0, most = 0;
  const auto look = [&] {
    const int64_t from =
        points.empty() ? 0 : points.rbegin()->second["last"].get<int64_t>();
    const auto got = Get(path, {.from = from, .stride = stride});
    if (got["stride"] != stride) points.clear();
    stride = got["stride"];
    for (const auto& point : got["points"]) points[point["first"]] = point;
    return got["points"].size();
  };
  EXPECT_EQ(look(), 120u);
  for (int i = 0; i < 3000; ++i) {
    made_up_.Step();
    if (i % 10 == 0) most = std::max<int64_t>(most, look());
  }
  look();
  EXPECT_LE(most, 512) << "all, where neighbours became one";
  EXPECT_LE(points.size(), 512u);
  EXPECT_EQ(stride, 8);
  int64_t next = 1;
  for (const auto& [first, point] : points) {
    EXPECT_EQ(first, next);
    EXPECT_LE(point["loss"][0], point["loss"][1]);
    next = point["last"].get<int64_t>() + 1;
  }
  EXPECT_EQ(next, 3121);
  EXPECT_EQ(look(), 0u) << "nothing is new";
}

TEST_F(ApiTest, LoadsOfExpertsAreOverTheMeanOfTheirLayer) {
  const std::string path =
      absl::StrCat("/jobs/", made_up_.running().value(), "/experts");
  const auto all = Get(path);
  EXPECT_EQ(all["stride"], 1);
  ASSERT_EQ(all["points"].size(), 120u);
  const auto layers = all["points"].back()["layers"];
  ASSERT_EQ(layers.size(), 6u);
  EXPECT_EQ(layers[2]["unit"], 3);
  double sum = 0;
  for (const double load : layers[2]["load"]) sum += load;
  EXPECT_NEAR(sum, 16, 0.1);
  EXPECT_EQ(Get(path, {.from = 118, .stride = 1})["points"].size(), 2u);
  for (int i = 0; i < 10; ++i) made_up_.Step();
  const auto halved = Get(path, {.from = 120, .stride = 1});
  EXPECT_EQ(halved["stride"], 2) << "all points, for they are others";
  EXPECT_EQ(halved["points"].size(), 65u);
}

TEST_F(ApiTest, WhatIsNotThereIsNotFound) {
  for (const char* path :
       {"", "/", "/nothing", "/jobs/99", "/jobs/99/steps", "/jobs/x",
        "/jobs/1/nothing", "/jobs/99/brief", "/jobs/99/plan", "/jobs/99/curves",
        "/jobs/1/steps/2", "/cluster/x"}) {
    EXPECT_TRUE(
        absl::IsNotFound(ApiAnswer(made_up_.host, path, {}, {}).status()))
        << path;
  }
}

}  // namespace
}  // namespace troupe
