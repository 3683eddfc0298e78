#include <stdlib.h>

#include <filesystem>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

class DoctorTest : public CommandTestBase {
 protected:
  // A folder of a "troupe-worker" with this body.
  static void UseWorker(const std::string& body) {
    const fs::path worker = File("troupe-worker", "#!/bin/sh\n" + body + "\n");
    fs::permissions(worker, fs::perms::owner_all);
    setenv("PATH", (worker.parent_path().string() + ":/bin").c_str(), 1);
  }
};

// What it says of the machine is the machine's; this is what it always says.
TEST_F(DoctorTest, AsksTheRealWorkerProgram) {
  setenv("PATH", "worker", 1);  // troupe-worker, among the runfiles
  const CommandOutcome outcome =
      RunCommand({"doctor", "--json", "--state", testing::TempDir()});
  const nlohmann::json findings =
      nlohmann::json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(findings.is_array()) << outcome.out << outcome.err;
  int failures = 0;
  for (const nlohmann::json& finding : findings) {
    EXPECT_EQ(finding.size(), 4);
    EXPECT_FALSE(finding["text"].get<std::string>().empty()) << finding;
    if (finding["state"] == "fail") ++failures;
  }
  EXPECT_EQ(findings[0]["check"], "instruction set");
  EXPECT_EQ(findings.size(), 18);
  EXPECT_EQ(outcome.code, failures == 0 ? 0 : 1);
  EXPECT_EQ(outcome.err.find(" of 18 checks fail") != std::string::npos,
            failures > 0)
      << outcome.err;

  const CommandOutcome text = RunCommand({"doctor"});
  EXPECT_NE(text.out.find("\nok     loopback          a byte there"),
            std::string::npos)
      << text.out;
}

// The scheduler's workers have measured it; this machine is not looked at.
TEST_F(DoctorTest, ShowsTheNetworkOfACluster) {
  for (const char* name : {"a", "b"}) {
    HostTopology& host = *scheduler_.topology.add_hosts();
    host.set_host(name);
    HostPair& pair = *host.add_pairs();
    pair.set_host(host.host() == "a" ? "b" : "a");
    pair.mutable_rate()->set_bytes_per_second(1.2e9);
    pair.mutable_rate()->set_latency_us(31);
  }
  const CommandOutcome outcome = Ask({"doctor", "--network"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("1.2 GB/s 31 us"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("1 of 1 pairs of hosts are measured"),
            std::string::npos)
      << outcome.out;
  const nlohmann::json topology = nlohmann::json::parse(
      Ask({"doctor", "--network", "--json"}).out, nullptr, false);
  EXPECT_EQ(topology["hosts"][1]["pairs"][0]["host"], "a") << topology;
  const std::string both = Ask({"doctor", "--network", "--nvme", "/x"}).err;
  EXPECT_NE(both.find("are for checks of this machine"), std::string::npos)
      << both;
  const std::string none = Ask({"doctor"}).err;
  EXPECT_NE(none.find("the cluster that --network looks at"), std::string::npos)
      << none;
}

TEST_F(DoctorTest, HandsArgumentsAndExitCodeOn) {
  UseWorker("echo \"$@\"; echo 1 of 14 checks fails: ports >&2; exit 1");
  const CommandOutcome outcome =
      RunCommand({"doctor", "--port", "9", "--state", "dir"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "doctor --port 9 --state dir\n");
  EXPECT_EQ(outcome.err, "troupe: 1 of 14 checks fails: ports\n");
  EXPECT_EQ(RunCommand({"doctor", "--port", "70000"}).code, 2);
}

TEST_F(DoctorTest, SaysWhereTheWorkerIsNotOrBreaks) {
  UseWorker("echo no such library >&2; exit 127");
  const CommandOutcome broken = RunCommand({"doctor"});
  EXPECT_EQ(broken.code, 1);
  EXPECT_NE(broken.err.find("ended with 127: no such library"),
            std::string::npos)
      << broken.err;
  setenv("PATH", "/no/such", 1);
  EXPECT_NE(RunCommand({"doctor"}).err.find("cannot find troupe-worker"),
            std::string::npos);
}

}  // namespace
}  // namespace troupe
