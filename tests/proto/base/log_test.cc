#include "proto/base/log.h"

#include <fstream>
#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace troupe {
namespace {

// First, so that no test before it has started the log.
TEST(Log, GoesToStderrBeforeItIsStarted) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  LogInfo("early");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("early"),
            std::string::npos);
}

TEST(Log, WritesNamedLinesFromTheLevelUp) {
  const std::string file = testing::TempDir() + "/log_test.log";
  ASSERT_TRUE(StartLog({.name = "worker-2", .file = file}).ok());
  LogInfo("joined");
  LogDebug("unseen");
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_NE(text.str().find("I worker-2  joined"), std::string::npos);
  EXPECT_EQ(text.str().find("unseen"), std::string::npos);
}

TEST(Log, AnEventIsOneLine) {
  testing::internal::CaptureStderr();
  LogInfo("one\ntwo \x1b[31m" + std::string(100'000, 'x'));
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_NE(line.find("one\\ntwo \\x1b[31mxx"), std::string::npos);
  EXPECT_LT(line.size(), 10'000u);
}

TEST(Log, RefusesAFileThatCannotBeOpened) {
  EXPECT_FALSE(StartLog({.name = "x", .file = "/proc/no/such"}).ok());
}

}  // namespace
}  // namespace troupe
