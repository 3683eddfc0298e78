// A program that does not end fails the test with its name.
#include "tests/cluster/troupe_program.h"

#include <string>

#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr char kWaits[] = "echo ready; exec sleep 1000";

TEST(TroupeProgram, ThatDoesNotEndIsNamedAndKilled) {
  Outcome outcome;
  EXPECT_NONFATAL_FAILURE(
      outcome = RunProgram({"/bin/sh", "-c", kWaits}, absl::Milliseconds(100)),
      "exec sleep 1000 says nothing more and does not end, 100ms after");
  EXPECT_EQ(outcome.code, 128 + 9);
}

TEST(TroupeProgram, ThatDoesNotSayWhatIsWaitedForIsNamed) {
  TroupeProgram program({"/bin/sh", "-c", kWaits}, absl::Milliseconds(100));
  std::string line;
  EXPECT_NONFATAL_FAILURE(line = program.WaitForLine("steady"),
                          "exec sleep 1000 says nothing more");
  EXPECT_EQ(line, "");
}

TEST(TroupeProgram, ThatEndsSaysHow) {
  const Outcome outcome = RunProgram(
      {"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}, absl::Seconds(60));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.out, "out\n");
  EXPECT_EQ(outcome.err, "err\n");
}

}  // namespace
}  // namespace troupe
