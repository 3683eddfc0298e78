#include "scheduler/status/status_server.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "nlohmann/json.hpp"
#include "proto/base/file_limit.h"
#include "scheduler/status/api.h"
#include "tests/scheduler/status/made_up_cluster.h"

namespace troupe {
namespace {

constexpr char kToken[] = "0123456789abcdef";

class StatusServerTest : public testing::Test {
 protected:
  StatusServerTest()
      : server_(made_up_.host, metrics_,
                {.health = [this] { return health_; },
                 .token = kToken,
                 .names = {"ada"}}) {
    CHECK_OK(server_.Start("127.0.0.1:0"));
  }
  httplib::Result Get(const std::string& path) {
    httplib::Client client(server_.url());
    client.set_bearer_token_auth(kToken);
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
  EXPECT_EQ(Get("/healthz")->body,
            "the scheduler is not well; its log says why\n");
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

constexpr int kThreads = 8;  // of the server

// A connection that says what it is told to.
class RawConnection {
 public:
  RawConnection(const std::string& url, const std::string& text,
                int receive_bytes = 1 << 16)
      : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes,
               sizeof(receive_bytes));
    // A wait for nothing fails.
    const timeval patience = {.tv_sec = 10, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(std::stoi(url.substr(url.rfind(':') + 1)));
    CHECK(connect(socket_, reinterpret_cast<sockaddr*>(&address),
                  sizeof(address)) == 0)
        << errno;
    Send(text);
  }
  ~RawConnection() { close(socket_); }
  RawConnection(const RawConnection&) = delete;

  void Send(const std::string& text) const {
    CHECK(send(socket_, text.data(), text.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(text.size()));
  }
  // Returns when something has come; it stays unread.
  void AwaitBytes() const {
    char byte;
    CHECK(recv(socket_, &byte, 1, MSG_PEEK) == 1) << errno;
  }
  // All that comes until the other side closes.
  std::string ReadAll() {
    std::string all;
    char bytes[1024];
    for (ssize_t count; (count = recv(socket_, bytes, sizeof(bytes), 0)) > 0;) {
      all.append(bytes, count);
    }
    return all;
  }

 private:
  const int socket_;
};

TEST_F(StatusServerTest, ThoseWhoAreSilentKeepNobodyOut) {
  ASSERT_GT(RaiseFileLimit().left(), 1500);
  std::deque<RawConnection> silent;
  for (int i = 0; i < 600; ++i) {
    silent.emplace_back(server_.url(), i % 2 == 0 ? "" : "GET /healthz HTT");
    if (i % 100 != 99) continue;
    // httplib's client asks with select, which ends at descriptor 1,024.
    const std::string health =
        RawConnection(server_.url(),
                      "GET /healthz HTTP/1.1\r\nHost: h\r\n"
                      "Connection: close\r\n\r\n")
            .ReadAll();
    ASSERT_TRUE(absl::StartsWith(health, "HTTP/1.1 200")) << i << health;
    EXPECT_TRUE(absl::EndsWith(health, "ok\n")) << i << health;
  }
}

std::string Asking(const std::string& path, const std::string& header) {
  return absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: ada\r\n",
                      "Authorization: Bearer ", kToken, "\r\n", header, "\r\n");
}

TEST_F(StatusServerTest, ThoseWhoDoNotReadKeepNobodyOut) {
  while (made_up_.host.Read([&](const Cluster& cluster, absl::Time) {
    return (*cluster.FindJob(made_up_.running()))->steps.size() <
           size_t{kStepsMax};
  })) {
    made_up_.Step();
  }
  const std::string path = absl::StrCat(
      "/api/v1/jobs/", made_up_.running().value(), "/steps?from=0");
  const std::string close = "Connection: close\r\n";
  const size_t whole =
      RawConnection(server_.url(), Asking(path, close)).ReadAll().size();
  // Three answers are more than the kernel takes (tcp_wmem: 4 MiB).
  ASSERT_GT(3 * whole, size_t{4} << 20);
  std::deque<RawConnection> lazy;
  for (int i = 0; i < 2 * kThreads; ++i) {
    lazy.emplace_back(server_.url(), Asking(path, ""), 1024);
    lazy.back().AwaitBytes();
    lazy.back().Send(Asking(path, ""));
    const std::string health =
        RawConnection(server_.url(), Asking("/healthz", close)).ReadAll();
    ASSERT_TRUE(absl::EndsWith(health, "ok\n")) << i << health;
    lazy.back().Send(Asking(path, close));
  }
  EXPECT_GT(lazy.front().ReadAll().size(), 3 * whole - 200)
      << "who reads late gets all of it";
}

TEST_F(StatusServerTest, WhatIsNoGetIsAnsweredAtOnce) {
  for (const char* head :
       {"POST /api/v1/jobs HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
        "PUT /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: 99\r\n\r\n",
        "DELETE /api/v1/jobs/1 HTTP/1.1\r\nHost: h\r\n\r\n"}) {
    const std::string answer = RawConnection(server_.url(), head).ReadAll();
    EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 405")) << answer;
    EXPECT_TRUE(absl::StrContains(answer, "Allow: GET, HEAD")) << answer;
  }
}

TEST_F(StatusServerTest, AConnectionServesManyRequests) {
  httplib::Client client(server_.url());
  client.set_keep_alive(true);
  for (int i = 0; i < 20; ++i) {
    const auto answer = client.Get("/healthz");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
    EXPECT_NE(answer->get_header_value("Connection"), "close");
  }
}

// Three requests in one packet, the last of them in two.
TEST_F(StatusServerTest, WhoAsksBeforeItHasItsAnswerIsAnsweredInTurn) {
  const std::string last = Asking("/healthz", "Connection: close\r\n");
  RawConnection connection(
      server_.url(),
      Asking("/healthz", "") + Asking("/none", "") + last.substr(0, 9));
  connection.AwaitBytes();
  connection.Send(last.substr(9));
  const std::string answers = connection.ReadAll();
  const size_t second = answers.find("HTTP/1.1 404");
  EXPECT_EQ(answers.find("HTTP/1.1 200"), 0u) << answers;
  ASSERT_NE(second, std::string::npos) << answers;
  EXPECT_NE(answers.find("HTTP/1.1 200", second), std::string::npos) << answers;
}

TEST_F(StatusServerTest, AHeadWithoutEndIsCutOff) {
  const std::string endless =
      "GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x');
  EXPECT_EQ(RawConnection(server_.url(), endless).ReadAll(), "");
}

TEST_F(StatusServerTest, RefusesATakenPortAndNonsense) {
  StatusServer other(made_up_.host, metrics_,
                     {.health = [] { return absl::OkStatus(); }});
  const std::string taken = server_.url().substr(std::string("http://").size());
  EXPECT_TRUE(absl::IsUnavailable(other.Start(taken)));
  EXPECT_TRUE(absl::IsInvalidArgument(other.Start("nonsense")));
  EXPECT_TRUE(absl::IsInvalidArgument(other.Start("127.0.0.1:99999")));
}

}  // namespace
}  // namespace troupe
