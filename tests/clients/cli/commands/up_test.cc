#include <stdlib.h>

#include <filesystem>

#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"
#include "tests/clients/cli/local/scripted_daemons.h"

namespace troupe {
namespace {

class UpTest : public CommandTestBase {};

// With real daemons it is tested in tests/cluster.
TEST_F(UpTest, NeedsAFolderAndWorkers) {
  EXPECT_EQ(RunCommand({"up", "--workers", "1"}).code, 2);
  EXPECT_EQ(RunCommand({"up", "--dir", testing::TempDir()}).code, 2);
  EXPECT_EQ(
      RunCommand({"up", "--dir", testing::TempDir(), "--workers", "0"}).code,
      2);
}

// With scripts for daemons, which are found on the PATH.
class ScriptedUpTest : public UpTest {
 protected:
  ScriptedUpTest()
      : dir_(std::filesystem::path(testing::TempDir()) / "my cluster"),
        daemons_(std::filesystem::path(testing::TempDir()) / "programs",
                 scheduler_),
        path_(getenv("PATH")) {
    setenv("PATH", (daemons_.folder().string() + ":/usr/bin:/bin").c_str(), 1);
  }
  ~ScriptedUpTest() override {
    RunCommand({"down", "--dir", dir_});
    setenv("PATH", path_.c_str(), 1);
  }

  const std::string dir_;
  ScriptedDaemons daemons_;
  const std::string path_;
};

TEST_F(ScriptedUpTest, SaysHowToComeDown) {
  const CommandOutcome up =
      RunCommand({"up", "--workers", "1", "--dir", dir_, "--threads", "2"});
  EXPECT_EQ(up.code, 0) << up.err;
  EXPECT_NE(up.out.find("workers      1, 2 threads each\n"), std::string::npos)
      << up.out;
  EXPECT_NE(up.out.find("stop it with: troupe down --dir '" + dir_ + "'\n"),
            std::string::npos)
      << up.out;
  // Those scripts' scheduler has no certificates.
  EXPECT_NE(up.out.find("INSECURE     no certificates, no TLS"),
            std::string::npos)
      << up.out;
}

TEST_F(UpTest, NeedsTheDaemonsPrograms) {
  setenv("PATH", "/no/such", 1);
  const CommandOutcome outcome =
      RunCommand({"up", "--dir", testing::TempDir() + "/up", "--workers", "1"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("troupe: cannot find troupe-scheduler"),
            std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace troupe
