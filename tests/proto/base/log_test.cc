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

TEST(Log, RefusesAFileThatCannotBeOpened) {
  EXPECT_FALSE(StartLog({.name = "x", .file = "/proc/no/such"}).ok());
}

}  // namespace
}  // namespace troupe
