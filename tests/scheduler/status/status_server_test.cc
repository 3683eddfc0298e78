#include "scheduler/status/status_server.h"

#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "nlohmann/json.hpp"
#include "tests/scheduler/status/made_up_cluster.h"

namespace troupe {
namespace {

class StatusServerTest : public testing::Test {
 protected:
  StatusServerTest()
      : server_(made_up_.host, metrics_, [this] { return health_; }) {
    CHECK_OK(server_.Start("127.0.0.1:0"));
  }
  httplib::Result Get(const std::string& path) {
    httplib::Client client(server_.url());
    return client.Get(path);
  }

  absl::Status health_;
  Metrics metrics_;
  MadeUpCluster made_up_{&metrics_};
  StatusServer server_;
};

TEST_F(StatusServerTest, ServesThePageWithoutForeignAssets) {
  const auto page = Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_EQ(page->get_header_value("Content-Type"), "text/html; charset=utf-8");
  EXPECT_TRUE(absl::StrContains(page->body, "</html>")) << "whole";
  // A pattern of the page's own is not foreign.
  const std::string body = absl::StrReplaceAll(page->body, {{"url(#", "("}});
  for (const char* foreign :
       {"src=\"", "url(", "@import", "href=\"http", "https://"}) {
    EXPECT_FALSE(absl::StrContains(body, foreign)) << foreign;
  }
}

TEST_F(StatusServerTest, ServesJson) {
  const auto jobs = Get("/api/v1/jobs");
  ASSERT_TRUE(jobs);
  EXPECT_EQ(jobs->status, 200);
  EXPECT_EQ(jobs->get_header_value("Content-Type"), "application/json");
  EXPECT_EQ(nlohmann::json::parse(jobs->body)["jobs"].size(), 3u);
  const auto steps = Get("/api/v1/jobs/2/steps?from=118");
  ASSERT_TRUE(steps);
  EXPECT_EQ(nlohmann::json::parse(steps->body)["steps"].size(), 2u);
}

TEST_F(StatusServerTest, ErrorsAreJsonToo) {
  for (const char* path : {"/nothing", "/api/v1/nothing", "/api/v1/jobs/99",
                           "/api/v2", "/index.php"}) {
    const auto answer = Get(path);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 404) << path;
    EXPECT_TRUE(nlohmann::json::parse(answer->body)["error"].is_string());
  }
  EXPECT_EQ(Get("/api/v1/jobs/2/steps?from=x")->status, 400);
}

TEST_F(StatusServerTest, TellsItsHealth) {
  EXPECT_EQ(Get("/healthz")->body, "ok\n");
  health_ = absl::ResourceExhaustedError("the disk is full");
  EXPECT_EQ(Get("/healthz")->status, 503);
  EXPECT_EQ(Get("/healthz")->body, "the disk is full\n");
}

TEST_F(StatusServerTest, ServesMetrics) {
  EXPECT_TRUE(absl::StrContains(Get("/metrics")->body, "troupe_steps_total"));
}

TEST_F(StatusServerTest, ManyAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 32; ++i) {
    threads.emplace_back([&] {
      const auto answer = Get("/api/v1/cluster");
      if (answer && answer->status == 200) ++good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 32);
}

TEST_F(StatusServerTest, RefusesATakenPortAndNonsense) {
  StatusServer other(made_up_.host, metrics_, [] { return absl::OkStatus(); });
  const std::string taken = server_.url().substr(std::string("http://").size());
  EXPECT_TRUE(absl::IsUnavailable(other.Start(taken)));
  EXPECT_TRUE(absl::IsInvalidArgument(other.Start("nonsense")));
  EXPECT_TRUE(absl::IsInvalidArgument(other.Start("127.0.0.1:99999")));
}

}  // namespace
}  // namespace troupe
