#include "clients/cli/view/search_svg.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Explanation Parse(const std::string& text) {
  Explanation explanation;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(text, &explanation));
  return explanation;
}

constexpr char kSearch[] =
    "ways { fields { parallelism { data: 2 } micro_batch_size: 4 } tier: DEVICE"
    " memory_bytes: 3221225472 budget_bytes: 4294967296 fits: true"
    " step_seconds: 0.5 }"
    "ways { fields { parallelism { tensor: 2 } } tier: DEVICE"
    " memory_bytes: 1073741824 budget_bytes: 4294967296 fits: true"
    " step_seconds: 0.8 }"
    "search { objective: 'time' workers: 2 estimated: 2 simulated: 2"
    " estimates { step_seconds: 0.5 memory_bytes: 3000000000 fits: true"
    " ranks: 2 }"
    " estimates { step_seconds: 0.7 memory_bytes: 1000000000 fits: true"
    " ranks: 1 }"
    " estimates { step_seconds: 0.4 memory_bytes: 9000000000 ranks: 2 }";

size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

// Beside one of each in the legend.
TEST(SearchSvg, MarksWhatFitsAndWhatDoesNot) {
  const std::string svg = SearchSvg(Parse(absl::StrCat(kSearch, "}")));
  EXPECT_THAT(svg, StartsWith("<svg "));
  EXPECT_EQ(Count(svg, "class=\"fits\""), 2 + 1);
  EXPECT_EQ(Count(svg, "class=\"lacks\""), 1 + 1);
  EXPECT_EQ(Count(svg, "class=\"plan\""), 2 + 1);
  EXPECT_EQ(Count(svg, "class=\"choice\""), 1 + 1);
  EXPECT_THAT(svg, HasSubstr("2 ranks, 400 ms, 8.4 GiB, estimated"));
  EXPECT_THAT(svg, HasSubstr("chosen: data: 2, micro_batch_size: 4"));
  EXPECT_THAT(svg, HasSubstr("chosen: 500 ms, 3.0 GiB"));
  EXPECT_THAT(svg, HasSubstr("device: 4.0 GiB"));
}

// Many estimates are alike.
TEST(SearchSvg, DrawsWhatFallsTogetherOnce) {
  std::string search = kSearch;
  for (int i = 0; i < 100; ++i) {
    search +=
        " estimates { step_seconds: 0.5 memory_bytes: 3000000000 fits: true"
        " ranks: 2 }";
  }
  const std::string svg = SearchSvg(Parse(search + "}"));
  EXPECT_EQ(Count(svg, "class=\"fits\""), 2 + 1);
}

// Memory is not known, or another tier is fullest: nothing is out of range.
TEST(SearchSvg, WorksWithoutMemory) {
  for (const char* const way :
       {"ways { fits: true step_seconds: 1 }",
        "ways { tier: HOST memory_bytes: 5 budget_bytes: 6 fits: true"
        " step_seconds: 1 }",
        "ways { tier: DEVICE memory_bytes: 7 fits: true step_seconds: 1 }"}) {
    const std::string svg =
        SearchSvg(Parse(absl::StrCat(way, "search { workers: 1 }")));
    EXPECT_THAT(svg, Not(HasSubstr("nan"))) << way;
    EXPECT_THAT(svg, Not(HasSubstr("inf"))) << way;
    EXPECT_THAT(svg, HasSubstr("The search for 1 worker,"));
    EXPECT_THAT(svg, Not(HasSubstr("class=\"budget\"")));
  }
}

}  // namespace
}  // namespace troupe
