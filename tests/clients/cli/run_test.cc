#include "clients/cli/run.h"

#include <cstdio>
#include <sstream>
#include <streambuf>

#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

using Arguments = std::vector<std::string>;

TEST(RunTroupe, UsageErrorsAreOneLineAndExitWithTwo) {
  for (const Arguments& arguments :
       std::vector<Arguments>{{},
                              {"dance"},
                              {"submit"},
                              {"submit", "x", "--sett", "a=1"},
                              {"submit", "x", "y"},
                              {"up", "--workers", "0"},
                              {"up", "--workers", "many"},
                              {"data"},
                              {"data", "prepare", "x"}}) {
    const CommandOutcome outcome = RunCommand(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.substr(0, 8), "troupe: ");
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  }
  EXPECT_EQ(RunCommand({"submit"}).err,
            "troupe: FILE is required (see troupe submit --help)\n");
  EXPECT_EQ(RunCommand({"submitt", "x"}).err,
            "troupe: no such command: submitt; did you mean submit? (see "
            "troupe --help)\n");
  EXPECT_EQ(RunCommand({"data", "dance"}).err,
            "troupe: no such command: dance (see troupe data --help)\n");
}

TEST(RunTroupe, HelpIsNoError) {
  const CommandOutcome help = RunCommand({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_NE(help.out.find("troupe up --workers 4"), std::string::npos);
}

// Takes `bytes` bytes and no more, as a full disk does.
class SmallDisk final : public std::streambuf {
 public:
  explicit SmallDisk(int bytes) : left_(bytes) {}

 protected:
  int overflow(int c) override { return left_-- > 0 ? c : EOF; }

 private:
  int left_;
};

TEST(RunTroupe, OutputThatIsNotWrittenIsAnError) {
  for (const int bytes : {0, 100, 1 << 20}) {
    SmallDisk disk(bytes);
    std::ostream out(&disk);
    std::ostringstream err;
    Console console{.out = out, .err = err};
    const int code = RunTroupe({"--help"}, console);
    EXPECT_EQ(code, bytes == 1 << 20 ? 0 : 1);
    EXPECT_EQ(err.str(), code == 0 ? ""
                                   : "troupe: the output could not be written, "
                                     "not all of it; is the disk full?\n");
  }
}

TEST(RunTroupe, OtherErrorsAreOneLineAndExitWithOne) {
  const CommandOutcome outcome = RunCommand({"jobs", "--dir", "/no/such"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err.substr(0, 33), "troupe: no cluster in /no/such (t");
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1);
}

}  // namespace
}  // namespace troupe
