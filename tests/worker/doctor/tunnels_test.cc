#include "worker/doctor/tunnels.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

TEST(Tunnels, AreFoundByTheirType) {
  const fs::path folder = fs::path(testing::TempDir()) / "net";
  for (const auto& [name, event] :
       {std::pair("wg1", "DEVTYPE=wireguard\nINTERFACE=wg1\n"),
        std::pair("wg0", "DEVTYPE=wireguard\nINTERFACE=wg0\n"),
        std::pair("eth0", "INTERFACE=eth0\n"),
        std::pair("br0", "DEVTYPE=bridge\nINTERFACE=br0\n")}) {
    fs::create_directories(folder / name);
    std::ofstream(folder / name / "uevent") << event;
  }
  const std::vector<Tunnel> tunnels = FindTunnels(folder);
  ASSERT_EQ(tunnels.size(), 2u);
  EXPECT_EQ(tunnels[0].interface, "wg0");
  EXPECT_EQ(tunnels[1].interface, "wg1");
  EXPECT_TRUE(FindTunnels(folder / "none").empty());
}

TEST(Tunnels, WithoutOneThatIsSaid) {
  const Finding finding = JudgeTunnels({});
  EXPECT_EQ(finding.state, FindingState::kNone);
  EXPECT_NE(finding.text.find("not encrypted"), std::string::npos);
  EXPECT_NE(finding.advice.find("docs/security.md"), std::string::npos);
}

TEST(Tunnels, WithOneItSaysHowToUseIt) {
  const Finding finding = JudgeTunnels({{"wg0", ""}, {"wg1", "10.9.0.1"}});
  EXPECT_EQ(finding.state, FindingState::kOk);
  EXPECT_NE(finding.text.find("on wg0, wg1 (10.9.0.1)"), std::string::npos)
      << finding.text;
  EXPECT_NE(finding.advice.find("--address 10.9.0.1"), std::string::npos);
}

}  // namespace
}  // namespace troupe
