#include "clients/gantt/svg.h"

#include <cstdlib>
#include <fstream>

#include "gtest/gtest.h"
#include "tests/clients/gantt/sample_timeline.h"

namespace troupe {
namespace {

int Count(const std::string& text, const std::string& what) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

TEST(ChartSvg, HasABarForEachSpan) {
  const std::string svg =
      ChartSvg({LayOut(SampleTimeline(false)), LayOut(SampleTimeline(true))});
  // Two ranks with six spans each, measured and predicted.
  EXPECT_EQ(Count(svg, "<title>"), 24);
  EXPECT_EQ(Count(svg, "class=\"rank\">"), 4);
  for (const BarKind kind :
       {BarKind::kForward, BarKind::kCollective, BarKind::kData}) {
    // In both charts on both ranks, and in the legend.
    EXPECT_EQ(Count(svg, std::string("fill=\"") + StyleOf(kind).colour), 5);
  }
  EXPECT_EQ(svg.substr(0, 5), "<svg ");
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
  EXPECT_EQ(Count(svg, "measured, step 20"), 1);
  EXPECT_EQ(Count(svg, ">predicted<"), 1);
  // For people who want to look at it.
  if (const char* dir = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR")) {
    std::ofstream(std::string(dir) + "/sample.svg") << svg;
  }
}

TEST(ChartSvg, EscapesText) {
  Chart chart;
  chart.title = "a < b & \"c\"";
  const std::string svg = ChartSvg({chart});
  EXPECT_NE(svg.find("a &lt; b &amp; &quot;c&quot;"), std::string::npos);
}

}  // namespace
}  // namespace troupe
