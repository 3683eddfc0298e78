#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class TraceTest : public CommandTestBase {};

TEST_F(TraceTest, DrawsInThreeForms) {
  Span& span =
      *scheduler_.timeline.mutable_measured()->add_ranks()->add_spans();
  span.set_kind(Instruction::FORWARD);
  span.set_lane(COMPUTE);
  span.set_end_ns(1000);
  EXPECT_NE(Ask({"trace", "1"}).out.find("rank 0  compute  FFF"),
            std::string::npos);
  EXPECT_NE(Ask({"trace", "1", "--format", "chrome"}).out.find("traceEvents"),
            std::string::npos);
  const std::string file = File("trace.svg", "");
  EXPECT_EQ(Ask({"trace", "1", "--format", "svg", "--out", file}).out,
            file + "\n");
  EXPECT_EQ(Content(file).substr(0, 4), "<svg");
}

TEST_F(TraceTest, SaysWhatIsWrong) {
  EXPECT_EQ(Ask({"trace", "1", "--format", "gif"}).code, 2);
  EXPECT_EQ(Ask({"trace", "1", "--out", "/no/such/file"}).code, 1);
  EXPECT_EQ(Ask({"trace", "9"}).err, "troupe: no job 9\n");
}

}  // namespace
}  // namespace troupe
