#include "clients/gantt/svg_bar.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr BarShape kShape = {.scale = {.left = 100, .pixels_per_second = 10},
                             .height = 20,
                             .font_size = 10};

Bar ABar(double seconds) {
  Bar bar = {.kind = BarKind::kForward,
             .start = 1,
             .run = 1,
             .end = 1 + seconds,
             .label = "12",
             .title = "a < b"};
  bar.pieces = {{.kind = bar.kind, .start = 1, .end = bar.end}};
  return bar;
}

bool Has(const std::string& svg, const std::string& what) {
  return svg.find(what) != std::string::npos;
}

TEST(BarSvg, LiesWhereItsTimeIs) {
  const std::string svg = BarSvg(ABar(2), kShape);
  EXPECT_TRUE(Has(svg, "class=\"f\" d=\"M110 0h20v20h-20z\"")) << svg;
  EXPECT_TRUE(Has(svg, "<title>a &lt; b</title>"));
  EXPECT_TRUE(Has(svg, "x=\"120\"")) << "the label's middle";
  EXPECT_FALSE(Has(svg, "path\"")) << "not on the critical path";
}

TEST(BarSvg, LabelsOnlyWhatHasRoom) {
  EXPECT_TRUE(Has(BarSvg(ABar(1.5), kShape), ">12</text>"));
  EXPECT_FALSE(Has(BarSvg(ABar(1.4), kShape), "<text")) << "14 pixels";
}

TEST(BarSvg, NeverVanishes) {
  Bar bar = ABar(0);
  bar.critical = true;
  const std::string svg = BarSvg(bar, kShape);
  EXPECT_TRUE(Has(svg, "M110 0h0.6v20")) << svg;
  EXPECT_FALSE(Has(svg, "class=\"edge\""));
}

TEST(BarSvg, WaitingIsPale) {
  Bar bar = ABar(4);
  bar.run = 3;
  const std::string svg = BarSvg(bar, kShape);
  EXPECT_TRUE(Has(svg, "class=\"f wait\" d=\"M110 0h20v20"));
  EXPECT_TRUE(Has(svg, "class=\"f\" d=\"M130 0h20v20"));
}

TEST(BarSvg, MarksTheCriticalPathAndWorkAhead) {
  Bar bar = ABar(2);
  bar.critical = true;
  bar.ahead = 1;
  const std::string svg = BarSvg(bar, kShape);
  EXPECT_TRUE(Has(svg, "class=\"path\""));
  EXPECT_TRUE(Has(svg, "class=\"ahead\""));
}

TEST(BarSvg, SharesItsHeightBetweenThePartsOfBackward) {
  Bar bar = ABar(4);
  bar.kind = BarKind::kBackwardInput;
  bar.pieces = {{.kind = BarKind::kBackwardInput, .start = 1, .end = 4},
                {.kind = BarKind::kBackwardWeight, .start = 4, .end = 5}};
  const std::string svg = BarSvg(bar, kShape);
  EXPECT_TRUE(Has(svg, "class=\"i\" d=\"M110 0h40v20"));
  EXPECT_TRUE(Has(svg, "class=\"w\" d=\"M110 15h40v5")) << svg;
  EXPECT_TRUE(Has(svg, "class=\"edge unit\" d=\"M140 0v20")) << svg;
}

TEST(Pixels, HaveOneDecimalAtMost) {
  EXPECT_EQ(Pixels(12.0), "12");
  EXPECT_EQ(Pixels(12.04), "12");
  EXPECT_EQ(Pixels(12.06), "12.1");
  EXPECT_EQ(Pixels(-0.25), "-0.2");
}

}  // namespace
}  // namespace troupe
