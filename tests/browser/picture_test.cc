// The charts of clients/gantt as Chromium draws them.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "clients/gantt/svg.h"
#include "gtest/gtest.h"
#include "tests/browser/chromium.h"
#include "tests/clients/gantt/made_pipeline.h"

namespace troupe {
namespace {

using nlohmann::json;

std::string MeasureScript() {
  std::ifstream file("tests/browser/measure.js");
  std::stringstream script;
  script << file.rdbuf();
  return script.str();
}

// Where people can look at it after the test.
std::string Screenshot(const std::string& name) {
  const char* kept = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  const char* directory = kept != nullptr ? kept : std::getenv("TEST_TMPDIR");
  return absl::StrCat(directory, "/", name, ".png");
}

struct Picture {
  std::string name;
  MadeOrder order;
  int ranks = 8;
  int passes = 0;  // bars of forward and backward, over all ranks
  bool alternating = true;
  bool dark = false;
};

class PictureTest : public testing::Test {
 protected:
  // Draws measured over predicted, and returns what the browser made of it.
  static json Shown(const Picture& picture, const std::string& screenshot) {
    const ChartOptions options = {.stages = StagesOf(16, 3)};
    Timeline predicted =
        MakePipeline(picture.order, {.alternating = picture.alternating});
    predicted.set_predicted(true);
    const Timeline measured =
        MakePipeline(picture.order,
                     {.jitter_ns = 50'000, .alternating = picture.alternating});
    const std::string svg =
        ChartSvg({LayOut(measured, options), LayOut(predicted, options)});
    const std::string page = absl::StrCat(
        "<!doctype html><meta charset=\"utf-8\"><style>body{margin:0}svg{"
        "display:block}</style>",
        svg, "<script>", MeasureScript(),
        "leaveReport(measureCharts([document.querySelector('svg')])[0]);"
        "</script>");
    const auto report =
        ReportOf({.url = FileUrl(TestFile(picture.name + ".html", page)),
                  .width = 2200,
                  .height = 1300,
                  .screenshot = screenshot,
                  .dark = picture.dark});
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : json::object();
  }

  static void ExpectLegible(const json& report, const Picture& picture) {
    ASSERT_FALSE(report.empty());
    EXPECT_EQ(report["compute_rows"], 2 * picture.ranks);
    EXPECT_GE(report["rows"], 4 * 2 * picture.ranks - 4) << "one a lane";
    EXPECT_EQ(report["passes"], 2 * picture.passes);
    EXPECT_EQ(report["pass_labels"], 2 * picture.passes) << "all numbered";
    EXPECT_EQ(report["untitled"], 0);
    EXPECT_GT(report["critical"], 10);
    EXPECT_TRUE(report["outside"].empty()) << report["outside"].dump(1);
    EXPECT_TRUE(report["overlapping"].empty()) << report["overlapping"].dump(1);
    EXPECT_TRUE(report["bars_overlapping"].empty())
        << report["bars_overlapping"].dump(1);
    EXPECT_TRUE(report["clipped"].empty()) << report["clipped"].dump(1);
  }
};

TEST_F(PictureTest, EightStagesAndThirtyTwoMicroBatchesAreLegible) {
  for (const Picture& picture : {
           Picture{.name = "1f1b",
          .order = OneForwardOneBackward(8, 32),
          .passes = 2 * 8 * 32},
           Picture{.name = "zero_bubble",
           .order = ZeroBubble(8, 32),
           .passes = 3 * 8 * 32,
           .alternating = false},
           Picture{.name = "interleaved",
           .order = Interleaved(8, 32),
           .passes = 4 * 8 * 32},
           Picture{.name = "asynchronous",
           .order = Asynchronous(8, 32),
           .passes = 2 * 8 * 32},
       }) {
    SCOPED_TRACE(picture.name);
    const std::string screenshot = Screenshot(picture.name);
    ExpectLegible(Shown(picture, screenshot), picture);
    EXPECT_GT(std::filesystem::file_size(screenshot), 50'000);
  }
}

Rgb ParseRgb(const std::string& css) {
  Rgb colour = {};
  EXPECT_EQ(std::sscanf(css.c_str(), "rgb(%d, %d, %d)", &colour[0], &colour[1],
                        &colour[2]),
            3)
      << css;
  return colour;
}

TEST_F(PictureTest, ColoursAreWhereTheBarsAre) {
  for (const bool dark : {false, true}) {
    const Picture picture = {.name = dark ? "dark" : "light",
                             .order = ZeroBubble(4, 8),
                             .ranks = 4,
                             .alternating = false,
                             .dark = dark};
    const std::string screenshot = Screenshot(picture.name);
    const json report = Shown(picture, screenshot);
    ASSERT_FALSE(report.empty());
    std::vector<Pixel> places = {{.x = 3, .y = 3}};  // the background
    std::vector<Rgb> expected = {dark ? Rgb{0x14, 0x17, 0x1c}
                                      : Rgb{255, 255, 255}};
    std::set<std::string> kinds;
    for (const json& sample : report["samples"]) {
      kinds.insert(sample["kind"]);
      places.push_back({.x = sample["x"], .y = sample["y"]});
      expected.push_back(ParseRgb(sample["fill"]));
    }
    for (const char* kind : {"f", "i", "w"}) EXPECT_EQ(kinds.count(kind), 1);
    const auto colours = ColoursAt(screenshot, places);
    ASSERT_TRUE(colours.ok()) << colours.status();
    EXPECT_EQ(*colours, expected) << picture.name;
    EXPECT_EQ(std::set<Rgb>(colours->begin(), colours->end()).size(),
              colours->size())
        << "all of them different";
  }
}

}  // namespace
}  // namespace troupe
