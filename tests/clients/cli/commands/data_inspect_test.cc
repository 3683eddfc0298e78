#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"
#include "tests/storage/dataset/foreign_files.h"

namespace troupe {
namespace {

class DataInspectTest : public CommandTestBase {};

TEST_F(DataInspectTest, ShowsATokenFileOfOurs) {
  const std::string text = File("text.txt", "hello\n");
  const std::string out = text + ".tokens";
  ASSERT_EQ(RunCommand({"data", "prepare", text, "--out", out}).code, 0);
  const CommandOutcome shown = RunCommand({"data", "inspect", out, "--verify"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(shown.out,
            "format      troupe\nfile        " + out +
                ", 144 B\n"
                "tokens      6, of 1 byte\n"
                "documents   1\n"
                "vocabulary  256\n"
                "tokenizer   bytes\n"
                "first text  \"hello\\n\"\n"
                "first ids   104 101 108 108 111 10\n"
                "verified    every id and the checksum, and the ends "
                "of documents\n");
}

TEST_F(DataInspectTest, ShowsThoseOfOthers) {
  const std::string bin = File("m.bin", Packed({5, 6, 7}, 4));
  const std::string prefix = bin.substr(0, bin.size() - 4);
  File("m.idx", MegatronIndexBytes({.code = 4,
                                    .lengths = {2, 1},
                                    .pointers = {0, 8},
                                    .documents = {0, 1, 2}}));
  const CommandOutcome shown = RunCommand({"data", "inspect", prefix});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(shown.out.rfind("format      megatron\n", 0), 0) << shown.out;
  EXPECT_NE(shown.out.find("documents   2\nvocabulary  not said in the file\n"
                           "tokenizer   not said in the file\n"
                           "first ids   5 6 7\n"),
            std::string::npos)
      << shown.out;
}

TEST_F(DataInspectTest, SaysWhatIsWrong) {
  const CommandOutcome none = RunCommand({"data", "inspect", "/no/such"});
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.err.find("/no/such"), std::string::npos) << none.err;
}

}  // namespace
}  // namespace troupe
