// Which peers get an answer over HTTP, by real requests: with the token and
// without, on loopback and elsewhere.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "nlohmann/json.hpp"
#include "proto/trust/member_files.h"
#include "scheduler/status/status_server.h"
#include "tests/proto/trust/captured_log.h"
#include "tests/proto/trust/made_up_members.h"
#include "tests/scheduler/status/made_up_cluster.h"

namespace troupe {
namespace {

constexpr char kSecret[] = "fedcba9876543210";

class StatusDoorTest : public testing::Test {
 protected:
  StatusDoorTest() { signal(SIGPIPE, SIG_IGN); }

  StatusServerOptions Options(const PeerTrust& trust) const {
    return {.health = [] { return absl::OkStatus(); },
            .token = kSecret,
            .trust = trust};
  }
  httplib::Result Get(const std::string& path,
                      const httplib::Headers& headers = {}) const {
    httplib::Client client(server_.url());
    return client.Get(path, headers);
  }

  Metrics metrics_;
  MadeUpCluster made_up_{&metrics_};
  const MadeUpMembers members_{"status-door"};
  StatusServer server_{made_up_.host, metrics_, Options({})};
};

class LoopbackDoorTest : public StatusDoorTest {
 protected:
  LoopbackDoorTest() { CHECK_OK(server_.Start("127.0.0.1:0")); }
};

TEST_F(LoopbackDoorTest, WithoutTheTokenOnlyHealthIsTold) {
  const CapturedLog log;
  for (const char* path : {"/", "/metrics", "/api/v1/cluster", "/api/v1/jobs",
                           "/nothing", "/?token=wrong"}) {
    const auto answer = Get(path);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 401) << path;
    EXPECT_EQ(answer->get_header_value("WWW-Authenticate"),
              "Bearer realm=\"troupe\"");
    EXPECT_TRUE(absl::StrContains(
        std::string(nlohmann::json::parse(answer->body)["error"]),
        "troupe up"));
    EXPECT_FALSE(absl::StrContains(answer->body, kSecret));
    EXPECT_FALSE(answer->has_header("Set-Cookie"));
  }
  EXPECT_EQ(Get("/healthz")->status, 200);
  const std::string told = log.Await(6, "refused a peer: 127.0.0.1:");
  EXPECT_EQ(log.Count("refused a peer: 127.0.0.1:"), 6u) << told;
  EXPECT_FALSE(absl::StrContains(told, "wrong"))
      << "what was tried is not told";
}

TEST_F(LoopbackDoorTest, ABearerIsServed) {
  const httplib::Headers bearer = {
      {"Authorization", absl::StrCat("Bearer ", kSecret)}};
  for (const char* path : {"/", "/metrics", "/api/v1/cluster"}) {
    EXPECT_EQ(Get(path, bearer)->status, 200) << path;
  }
  httplib::Client head(server_.url());
  EXPECT_EQ(head.Head("/metrics", bearer)->status, 200);
  EXPECT_EQ(head.Head("/metrics")->status, 401);
}

TEST_F(LoopbackDoorTest, ALinkIsGoodForACookie) {
  const auto first = Get(absl::StrCat("/?token=", kSecret));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->status, 303);
  EXPECT_EQ(first->get_header_value("Location"), "/");
  const std::string cookie = first->get_header_value("Set-Cookie");
  EXPECT_TRUE(absl::StrContains(cookie, "; HttpOnly; SameSite=Lax"));
  const httplib::Headers with = {
      {"Cookie", cookie.substr(0, cookie.find(';'))}};
  EXPECT_EQ(Get("/", with)->status, 200);
  EXPECT_EQ(Get("/api/v1/cluster", with)->status, 200);
}

TEST_F(LoopbackDoorTest, AnotherHostIsNotServed) {
  const httplib::Headers rebound = {
      {"Host", "evil.example"},
      {"Authorization", absl::StrCat("Bearer ", kSecret)}};
  EXPECT_EQ(Get("/api/v1/jobs", rebound)->status, 421);
  EXPECT_EQ(Get("/healthz", rebound)->status, 200);
}

TEST_F(StatusDoorTest, WhoAsksWithoutPauseIsToldToWait) {
  StatusServerOptions options = Options({});
  options.rate.per_second = 0.001;
  options.rate.burst = 3;
  StatusServer server(made_up_.host, metrics_, options);
  CHECK_OK(server.Start("127.0.0.1:0"));
  httplib::Client client(server.url());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Get("/healthz")->status, 200);
  const auto answer = client.Get("/healthz");
  EXPECT_EQ(answer->status, 429);
  EXPECT_EQ(answer->get_header_value("Retry-After"), "1");
}

TEST_F(LoopbackDoorTest, BrowsersAreToldWhatThePageMayDo) {
  for (const char* path : {"/", "/healthz", "/api/v1/jobs"}) {
    const auto answer =
        Get(path, {{"Authorization", absl::StrCat("Bearer ", kSecret)}});
    EXPECT_TRUE(
        absl::StartsWith(answer->get_header_value("Content-Security-Policy"),
                         "default-src 'none'; script-src 'sha256-"))
        << path;
    EXPECT_EQ(answer->get_header_value("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(answer->get_header_value("X-Frame-Options"), "DENY");
    EXPECT_EQ(answer->get_header_value("Cache-Control"), "no-store");
  }
}

// On all addresses, of which a test uses loopback.
class OpenDoorTest : public StatusDoorTest {
 protected:
  static std::string Local(const StatusServer& server) {
    const std::string url = server.url();
    return absl::StrCat(url.substr(0, url.find("0.0.0.0")), "127.0.0.1",
                        url.substr(url.rfind(':')));
  }
};

TEST_F(OpenDoorTest, ServesHttpsThere) {
  const PeerTrust trust = members_.Member(PeerRole::kScheduler);
  StatusServer server(made_up_.host, metrics_, Options(trust));
  CHECK_OK(server.Start("0.0.0.0:0"));
  EXPECT_TRUE(absl::StartsWith(server.url(), "https://0.0.0.0:"));
  httplib::Client client(Local(server));
  client.set_ca_cert_path(FilesOfMember(trust.certificates).authority.c_str());
  client.enable_server_certificate_verification(true);
  client.set_keep_alive(true);
  EXPECT_EQ(client.Get("/metrics")->status, 401);
  client.set_bearer_token_auth(kSecret);
  for (int i = 0; i < 5; ++i) {
    const auto page = client.Get("/");
    ASSERT_TRUE(page);
    EXPECT_TRUE(absl::EndsWith(page->body, "</html>\n")) << "whole";
  }
  const auto link = client.Get(absl::StrCat("/?token=", kSecret));
  EXPECT_TRUE(
      absl::StrContains(link->get_header_value("Set-Cookie"), "; Secure"));
  const std::string url = Local(server);
  httplib::Client plain("http" + url.substr(std::string("https").size()));
  const CapturedLog log;
  EXPECT_FALSE(plain.Get("/healthz")) << "no HTTP on that port";
  const std::string spoke = "over HTTPS: it speaks HTTP without TLS";
  EXPECT_TRUE(absl::StrContains(log.Await(1, spoke), "refused a peer: 127."));
  EXPECT_EQ(log.Count("refused a peer: "), 1u);
  EXPECT_EQ(client.Get("/healthz")->status, 200) << "others are served";
}

TEST_F(OpenDoorTest, TakesANewCertificateAsItRuns) {
  const PeerTrust trust = members_.Member(PeerRole::kScheduler);
  const MemberFiles files = FilesOfMember(trust.certificates);
  const MadeUpMembers other_cluster("status-door-2");
  const MemberFiles others =
      FilesOfMember(other_cluster.Member(PeerRole::kScheduler).certificates);
  const auto copy = [](const std::string& from, const std::string& to) {
    std::filesystem::copy_file(
        from, to, std::filesystem::copy_options::overwrite_existing);
  };
  copy(files.certificate, files.certificate + ".before");
  copy(files.key, files.key + ".before");
  copy(files.authority, files.authority + ".before");
  StatusServer server(made_up_.host, metrics_, Options(trust));
  CHECK_OK(server.Start("0.0.0.0:0"));
  // Whether its certificate is of our authority.
  const auto is_ours = [&](httplib::Client& client) {
    client.set_ca_cert_path((files.authority + ".before").c_str());
    client.enable_server_certificate_verification(true);
    return client.Get("/healthz") != nullptr;
  };
  const auto ours = [&] {
    httplib::Client client(Local(server));
    return is_ours(client);
  };
  httplib::Client before(Local(server));
  before.set_keep_alive(true);
  EXPECT_TRUE(is_ours(before));
  const CapturedLog log;
  copy(others.key, files.key);
  EXPECT_TRUE(ours()) << "a key without its certificate";
  EXPECT_TRUE(ours());
  const std::string of_no_use = "the certificate in ";
  log.Await(1, of_no_use);
  EXPECT_EQ(log.Count(of_no_use), 1u);
  copy(others.certificate, files.certificate);
  EXPECT_TRUE(ours()) << "one of an authority that is not believed";
  copy(others.authority, files.authority);
  EXPECT_FALSE(ours()) << "the certificate of before";
  EXPECT_TRUE(before.Get("/healthz")) << "a connection that was there";
  copy(files.certificate + ".before", files.certificate);
  copy(files.key + ".before", files.key);
  copy(files.authority + ".before", files.authority);
  EXPECT_TRUE(ours());
}

// As at the start.
TEST_F(OpenDoorTest, TakesNoneAsItRunsWithWhichItWouldNotStart) {
  const PeerTrust trust = members_.Member(PeerRole::kScheduler);
  const MemberFiles files = FilesOfMember(trust.certificates);
  const auto copy = [](const std::string& from, const std::string& to) {
    std::filesystem::copy_file(
        from, to, std::filesystem::copy_options::overwrite_existing);
  };
  StatusServer server(made_up_.host, metrics_, Options(trust));
  CHECK_OK(server.Start("0.0.0.0:0"));
  const CapturedLog log;
  const auto is_refused_for = [&](const std::string& why) {
    httplib::Client client(Local(server));
    client.enable_server_certificate_verification(false);
    EXPECT_TRUE(client.Get("/healthz")) << why;
    log.Await(1, why);
    EXPECT_EQ(log.Count(why), 1u);
  };
  for (const auto& [with, why] :
       {std::pair(members_.Member(PeerRole::kWorker), "is not that of a"),
        std::pair(members_.Expired(PeerRole::kScheduler), "is valid from")}) {
    const MemberFiles other = FilesOfMember(with.certificates);
    copy(other.key, files.key);
    copy(other.certificate, files.certificate);
    is_refused_for(why);
  }
  chmod(files.key.c_str(), 0644);
  is_refused_for("everybody");
}

TEST_F(OpenDoorTest, WhoDoesNotFinishAHandshakeIsTold) {
  StatusServer server(made_up_.host, metrics_,
                      Options(members_.Member(PeerRole::kScheduler)));
  CHECK_OK(server.Start("0.0.0.0:0"));
  const std::string url = Local(server);
  const CapturedLog log;
  // Half a handshake, and one that is none.
  sockaddr_in address = {.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(std::stoi(url.substr(url.rfind(':') + 1)));
  for (const std::string& words :
       {std::string("\x16\x03\x01\x02\x00\x01", 6), std::string(200, '\xa5')}) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(connect(socket, reinterpret_cast<const sockaddr*>(&address),
                      sizeof(address)),
              0);
    ASSERT_GT(send(socket, words.data(), words.size(), MSG_NOSIGNAL), 0);
    shutdown(socket, SHUT_WR);
    char byte = 0;
    while (recv(socket, &byte, 1, 0) > 0) {
    }
    close(socket);
  }
  log.Await(2, "over HTTPS: ");
  EXPECT_EQ(log.Count("refused a peer: 127.0.0.1:"), 2u);
}

TEST_F(OpenDoorTest, ThePageSaysThatTheCertificateEnds) {
  StatusServer server(
      made_up_.host, metrics_,
      Options(members_.Ending(PeerRole::kScheduler, absl::Hours(24 * 12 + 1))));
  CHECK_OK(server.Start("127.0.0.1:0"));
  httplib::Client client(server.url());
  client.set_bearer_token_auth(kSecret);
  const std::string page = client.Get("/")->body;
  EXPECT_TRUE(absl::StrContains(page, "ends in 12 days"));
  EXPECT_TRUE(absl::StrContains(page, "--role scheduler"));
}

TEST_F(OpenDoorTest, WantsACertificateOrToBeToldTwice) {
  StatusServer untold(made_up_.host, metrics_, Options({}));
  EXPECT_TRUE(absl::IsInvalidArgument(untold.Start("0.0.0.0:0")));
  StatusServer once(made_up_.host, metrics_, Options({.insecure = 1}));
  EXPECT_TRUE(absl::IsInvalidArgument(once.Start("0.0.0.0:0")));
  StatusServer twice(made_up_.host, metrics_, Options({.insecure = 2}));
  EXPECT_TRUE(twice.Start("0.0.0.0:0").ok());
  httplib::Client client(Local(twice));
  EXPECT_EQ(client.Get("/")->status, 401) << "the token is wanted all the same";
  client.set_bearer_token_auth(kSecret);
  EXPECT_TRUE(absl::StrContains(client.Get("/")->body, "INSECURE:"));
}

// Every path and every method, over HTTPS, by a client with no token, a wrong
// one or one in another's place: nothing is told, in no time.
// Last, as it takes all lines that the log has for refused peers.
TEST_F(OpenDoorTest, AStrangerLearnsNothing) {
  const PeerTrust trust = members_.Member(PeerRole::kScheduler);
  StatusServer server(made_up_.host, metrics_, Options(trust));
  CHECK_OK(server.Start("0.0.0.0:0"));
  httplib::Client client(Local(server));
  client.set_ca_cert_path(FilesOfMember(trust.certificates).authority.c_str());
  client.set_keep_alive(true);
  const absl::Time start = absl::Now();
  for (const char* path :
       {"/", "/metrics", "/api/v1/cluster", "/api/v1/workers", "/api/v1/jobs",
        "/api/v1/jobs/1", "/api/v1/jobs/1/timeline", "/nothing", "/../etc",
        "/%2e%2e/healthz", "//healthz", "/healthz/",
        "/?token=", "/?token=fedcba987654321"}) {
    for (const char* method :
         {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
      for (const httplib::Headers& shown :
           {httplib::Headers{}, httplib::Headers{{"Authorization", "Bearer "}},
            httplib::Headers{{"Authorization", "Basic fedcba9876543210"}},
            httplib::Headers{{"Cookie", "troupe=fedcba9876543210"}}}) {
        httplib::Request request;
        request.method = method;
        request.path = path;
        request.headers = shown;
        const auto answer = client.send(request);
        ASSERT_TRUE(answer) << method << " " << path;
        const bool reads = request.method == "GET" || request.method == "HEAD";
        EXPECT_EQ(answer->status, reads ? 401 : 405) << method << " " << path;
        EXPECT_FALSE(answer->has_header("Set-Cookie"));
        for (const char* secret : {kSecret, "gpt2", "worker-"}) {
          EXPECT_FALSE(absl::StrContains(answer->body, secret))
              << method << " " << path << ": " << answer->body;
        }
      }
    }
  }
  EXPECT_LT(absl::Now() - start, absl::Seconds(30));
}

}  // namespace
}  // namespace troupe
