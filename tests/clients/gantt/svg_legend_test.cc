#include "clients/gantt/svg_legend.h"

#include "gtest/gtest.h"
#include "tests/clients/gantt/made_pipeline.h"

namespace troupe {
namespace {

bool Has(const std::string& svg, const std::string& what) {
  return svg.find(what) != std::string::npos;
}

TEST(SvgLegend, NamesWhatIsThereAndNothingElse) {
  const Chart plain = LayOut(MakePipeline(OneForwardOneBackward(2, 4), {}));
  const std::string svg =
      LegendSvg({plain}, {.x = 10, .y = 5, .right = 2000}).svg;
  for (const char* name : {"forward", "backward, input", "transfer",
                           "optimizer step", "waiting", "critical path"}) {
    EXPECT_TRUE(Has(svg, name)) << name;
  }
  for (const char* name : {"data", "lighter", "later step", "other<"}) {
    EXPECT_FALSE(Has(svg, name)) << name;
  }
  EXPECT_TRUE(Has(svg, "M10 5h14v14")) << "where it belongs";
}

TEST(SvgLegend, CoversAllCharts) {
  const Chart plain = LayOut(MakePipeline(OneForwardOneBackward(2, 4), {}));
  const Chart chunks = LayOut(MakePipeline(Interleaved(2, 4), {}));
  const Chart ahead = LayOut(MakePipeline(Asynchronous(2, 4), {}));
  const std::string svg = LegendSvg({plain, chunks, ahead}, {.right = 900}).svg;
  EXPECT_TRUE(Has(svg, "lighter: another stage of the rank"));
  EXPECT_TRUE(Has(svg, "for a later step"));
}

TEST(SvgLegend, TakesMoreLinesWhereItIsNarrow) {
  const Chart plain = LayOut(MakePipeline(OneForwardOneBackward(2, 4), {}));
  const Legend wide = LegendSvg({plain}, {.x = 10, .y = 5, .right = 2000});
  const Legend narrow = LegendSvg({plain}, {.x = 10, .y = 5, .right = 500});
  EXPECT_FALSE(Has(wide.svg, "M10 27h"));
  EXPECT_TRUE(Has(narrow.svg, "M10 27h")) << narrow.svg;
  EXPECT_GE(narrow.height, wide.height + 22);
}

}  // namespace
}  // namespace troupe
