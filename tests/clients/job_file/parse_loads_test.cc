#include "clients/job_file/parse_loads.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(ParseLoads, SaysWhatIsWrong) {
  const auto refusal = [](const char* json) {
    return std::string(ParseLoads(json).status().message());
  };
  struct Case {
    const char* json;
    const char* message;
  };
  const Case cases[] = {
      {"", "is no JSON"},
      {"[]", "has no \"points\""},
      {R"({"points": 3})", "has no \"points\""},
      {R"({"points": []})", "has no load of any layer"},
      {R"({"points": [3]})", "a point has no \"first\""},
      {R"({"points": [{"first": 1, "last": 2}]})", "a point has no \"first\""},
      {R"({"points": [{"first": 3, "last": 1, "layers": []}]})",
       "a point ends before it begins"},
      {R"({"points": [{"first": 1, "last": 1, "layers": [{"unit": 1}]}]})",
       "a layer has no \"unit\" or no \"load\""},
      {R"({"points": [{"first": 1, "last": 1, "layers": [
           {"unit": 4, "load": [1, -1]}]}]})",
       "the load of expert 1 of unit 4 is no number of at least 0"},
      {R"({"points": [
           {"first": 1, "last": 1, "layers": [{"unit": 4, "load": [1, 1]}]},
           {"first": 2, "last": 2, "layers": [{"unit": 4, "load": [1]}]}]})",
       "unit 4 has 2 experts in one point and 1 in another"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(refusal(c.json), testing::HasSubstr(c.message)) << c.json;
    EXPECT_TRUE(absl::IsInvalidArgument(ParseLoads(c.json).status()));
  }
}

TEST(ParseLoads, IsOfEachLayerTheMeanOfTheSteps) {
  const auto loads = ParseLoads(R"({"points": [
      {"first": 1, "last": 4, "layers": [{"unit": 2, "load": [1, 1]}]},
      {"first": 5, "last": 5, "layers": [{"unit": 2, "load": [0, 2]},
                                         {"unit": 1, "load": [1.5, 0.5]}]}]})");
  ASSERT_TRUE(loads.ok()) << loads.status();
  ASSERT_EQ(loads->size(), 2u);
  EXPECT_EQ((*loads)[0].unit(), 1);
  EXPECT_DOUBLE_EQ((*loads)[0].load(0), 1.5);
  EXPECT_EQ((*loads)[1].unit(), 2);
  EXPECT_DOUBLE_EQ((*loads)[1].load(0), 0.8);
  EXPECT_DOUBLE_EQ((*loads)[1].load(1), 1.2);
}

}  // namespace
}  // namespace troupe
