#include "clients/gantt/svg.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/clients/gantt/made_pipeline.h"
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

// For people who want to look at it.
void Keep(const std::string& name, const std::string& svg) {
  if (const char* dir = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR")) {
    std::ofstream(absl::StrCat(dir, "/", name)) << svg;
  }
}

TEST(ChartSvg, HasABarForEachSpanOfTwoCharts) {
  const std::string svg =
      ChartSvg({LayOut(SampleTimeline(false)), LayOut(SampleTimeline(true))});
  Keep("sample.svg", svg);
  // Two ranks with six spans each, measured and predicted.
  EXPECT_EQ(Count(svg, "<title>"), 24);
  EXPECT_EQ(Count(svg, "class=\"rank\""), 4);
  EXPECT_EQ(Count(svg, "<path class=\"f\" "), 2 * 2 + 1) << "and the legend";
  EXPECT_EQ(svg.substr(0, 5), "<svg ");
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
  EXPECT_EQ(Count(svg, "measured, step 20"), 1);
  EXPECT_EQ(Count(svg, ">predicted<"), 1);
  EXPECT_EQ(Count(svg, ">28.9 %<"), 4) << "64 of 90 ms compute";
}

TEST(ChartSvg, EscapesText) {
  Chart chart;
  chart.title = "a < b & \"c\"";
  const std::string svg = ChartSvg({chart});
  EXPECT_NE(svg.find("a &lt; b &amp; &quot;c&quot;"), std::string::npos);
}

TEST(ChartSvg, NumbersEveryPassOfALongPipeline) {
  struct Picture {
    const char* name;
    MadeOrder order;
    bool alternating = false;
    int passes;  // that have a number
  };
  for (const Picture& picture : {
           Picture{"1f1b", OneForwardOneBackward(8, 32), true, 2 * 8 * 32},
           Picture{"zero_bubble", ZeroBubble(8, 32), false, 3 * 8 * 32},
           Picture{"interleaved", Interleaved(8, 32), true, 4 * 8 * 32},
           Picture{"asynchronous", Asynchronous(8, 32), true, 2 * 8 * 32},
       }) {
    const Timeline timeline =
        MakePipeline(picture.order,
                     {.jitter_ns = 50'000, .alternating = picture.alternating});
    const std::vector<Stage> stages = StagesOf(16, 3);
    const std::string svg = ChartSvg({LayOut(timeline, {.stages = stages})});
    Keep(absl::StrCat(picture.name, ".svg"), svg);
    int labels = 0;
    size_t at = 0;
    while ((at = svg.find("<g class=\"compute\"", at)) != std::string::npos) {
      const size_t end = svg.find("\n</g>", at);
      labels += Count(svg.substr(at, end - at), "<text class=\"label ");
      at = end;
    }
    EXPECT_EQ(labels, picture.passes) << picture.name;
  }
}

// The example of docs/gantt.md. After a change: copy it from this test's
// outputs.
TEST(ChartSvg, IsAsTheDocsShow) {
  Timeline timeline = MakePipeline(OneForwardOneBackward(4, 8),
                                   {.units_per_stage = 2, .alternating = true});
  timeline.set_predicted(true);
  const std::string svg =
      ChartSvg({LayOut(timeline, {.stages = StagesOf(4, 2)})});
  Keep("gantt.svg", svg);
  EXPECT_LT(svg.size(), 60'000);
  std::ifstream file("docs/gantt.svg");
  std::stringstream shown;
  shown << file.rdbuf();
  EXPECT_TRUE(shown.str() == svg) << "docs/gantt.svg is out of date";
}

}  // namespace
}  // namespace troupe
