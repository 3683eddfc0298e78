#include "clients/cpp/find_scheduler.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace troupe {
namespace {

class FindSchedulerTest : public testing::Test {
 protected:
  std::string DirWith(const std::string& name, const std::string& endpoints) {
    const std::filesystem::path dir =
        std::filesystem::path(testing::TempDir()) / name;
    std::filesystem::create_directories(dir);
    std::ofstream(dir / kEndpointsFile) << endpoints;
    return dir;
  }
};

TEST_F(FindSchedulerTest, TakesTheAddress) {
  EXPECT_EQ(FindScheduler({.scheduler = "host:4321"}).value().grpc,
            "host:4321");
  for (const char* bad :
       {"host", ":1", "host:", "host:0", "host:x", "host:70000"}) {
    EXPECT_EQ(FindScheduler({.scheduler = bad}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bad;
  }
}

TEST_F(FindSchedulerTest, ReadsTheFolder) {
  const std::string dir = DirWith("alive",
                                  "{\"grpc\": \"127.0.0.1:5\", \"http\": "
                                  "\"http://127.0.0.1:6\", \"pid\": " +
                                      std::to_string(getpid()) + "}");
  const Endpoints endpoints = FindScheduler({.dir = dir}).value();
  EXPECT_EQ(endpoints.grpc, "127.0.0.1:5");
  EXPECT_EQ(endpoints.http, "http://127.0.0.1:6");
  EXPECT_EQ(endpoints.process.pid, getpid());
  EXPECT_EQ(FindScheduler({.environment_dir = dir}).value().grpc,
            "127.0.0.1:5");
  EXPECT_EQ(FindScheduler({.scheduler = "h:1", .dir = dir}).value().grpc,
            "h:1");
}

// The folder's certificate; that of a flag before it.
TEST_F(FindSchedulerTest, SaysHowTheTwoKnowEachOther) {
  const std::string rest = "\"grpc\": \"127.0.0.1:5\"}";
  const std::string dir = DirWith("trusted", "{\"security\": \"tls\", " + rest);
  const std::string open = DirWith("open", "{\"security\": \"none\", " + rest);
  const auto trust = [](const FindSchedulerOptions& options) {
    return FindScheduler(options).value().trust;
  };
  EXPECT_EQ(trust({.dir = dir}).certificates, dir + "/trust/client");
  EXPECT_EQ(trust({.dir = dir}).insecure, 0);
  EXPECT_EQ(trust({.dir = dir, .certificates = "/c"}).certificates, "/c");
  EXPECT_EQ(trust({.scheduler = "h:1", .environment_dir = dir}).certificates,
            dir + "/trust/client");
  EXPECT_EQ(trust({.scheduler = "h:1"}).certificates, "");
  EXPECT_EQ(trust({.scheduler = "h:1", .insecure = 2}).insecure, 2);
  // The user who started it has said it once.
  EXPECT_EQ(trust({.dir = open}).insecure, 1);
  EXPECT_EQ(trust({.dir = open, .insecure = 1}).insecure, 2);
  // A certificate on the command line is used.
  EXPECT_EQ(trust({.dir = open, .certificates = "/c"}).insecure, 0);
}

// Into which others could write where they listen.
TEST_F(FindSchedulerTest, BelievesNoFolderOfEverybody) {
  const std::string dir = DirWith("shared", "{\"grpc\": \"127.0.0.1:5\"}");
  ASSERT_EQ(chmod(dir.c_str(), 0777), 0);
  const absl::Status status = FindScheduler({.dir = dir}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_NE(status.message().find("may be written by everybody"),
            std::string::npos);
  ASSERT_EQ(chmod(dir.c_str(), 0775), 0);
  EXPECT_TRUE(FindScheduler({.dir = dir}).ok());
}

TEST_F(FindSchedulerTest, SaysWhatIsWrong) {
  EXPECT_EQ(FindScheduler({}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FindScheduler({.dir = "/no/such"}).status().message(),
            "no cluster in /no/such (there is no /no/such/endpoints.json); "
            "start one with: troupe up --workers N --dir /no/such");
  for (const char* bad : {"", "[]", "{\"grpc\": 5}", "{"}) {
    EXPECT_EQ(ReadEndpoints(DirWith("bad", bad)).status().code(),
              absl::StatusCode::kDataLoss)
        << bad;
  }
}

TEST_F(FindSchedulerTest, KnowsTheDead) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const std::string dir = DirWith(
      "dead",
      "{\"grpc\": \"127.0.0.1:5\", \"pid\": " + std::to_string(child) + "}");
  EXPECT_EQ(ReadEndpoints(dir).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

std::string EndpointsOf(const std::string& address, const std::string& host,
                        const ProcessId& process) {
  return "{\"grpc\": \"" + address + "\", \"host\": \"" + host +
         "\", \"pid\": " + std::to_string(process.pid) +
         ", \"start_ticks\": " + std::to_string(process.start_ticks) + "}";
}

TEST_F(FindSchedulerTest, KnowsAnotherProcessOfTheSameNumber) {
  ProcessId self = Identify(getpid());
  const auto read = [&] {
    return ReadEndpoints(
        DirWith("reused", EndpointsOf("127.0.0.1:5", HostName(), self)));
  };
  EXPECT_TRUE(read().ok()) << read().status();
  self.start_ticks -= 1;
  EXPECT_EQ(read().status().code(), absl::StatusCode::kFailedPrecondition);
}

// On a file system that hosts share, ids of processes are another host's.
TEST_F(FindSchedulerTest, OfAnotherHostIsFoundByItsAddress) {
  const ProcessId nobody = {.pid = 99999999, .start_ticks = 7};
  const auto read = [&](const std::string& address) {
    return ReadEndpoints(
        DirWith("elsewhere", EndpointsOf(address, "no-such-host", nobody)));
  };
  ASSERT_TRUE(read("10.1.2.3:5").ok()) << read("10.1.2.3:5").status();
  EXPECT_EQ(read("10.1.2.3:5")->space.host, "no-such-host");
  for (const char* local : {"127.0.0.1:5", "localhost:5", "[::1]:5"}) {
    const absl::Status status = read(local).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("runs on no-such-host and is reached there "
                                    "only"),
              std::string::npos)
        << status;
    EXPECT_NE(status.message().find("troupe-scheduler --state "),
              std::string::npos)
        << status << " says which program takes --listen";
  }
}

}  // namespace
}  // namespace troupe
