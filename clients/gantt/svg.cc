#include "clients/gantt/svg.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "clients/gantt/svg_bar.h"
#include "clients/gantt/svg_legend.h"
#include "clients/gantt/svg_style.h"

namespace troupe {
namespace {

// Pixels.
constexpr double kMargin = 16;
constexpr double kLeft = 128;  // names of ranks and lanes
constexpr double kRight = 76;  // bubbles
constexpr double kPlotWidthMin = 1000;
constexpr double kPlotWidthMax = 2600;
constexpr double kPassWidth = 14;  // of a short pass, where the plot can be so
constexpr double kLegendGap = 8;   // below it
constexpr double kTitleHeight = 46;
constexpr double kAxisHeight = 40;
constexpr double kRankGap = 8;
constexpr double kComputeHeight = 22;
constexpr double kThinHeight = 9;
constexpr double kRowGap = 1;
constexpr double kThinFontSize = 7;

double HeightOf(const Row& row) {
  return row.is_compute ? kComputeHeight : kThinHeight;
}

// A round number of seconds, so that about ten ticks fit.
double TickSeconds(double seconds) {
  const double raw = std::max(seconds, 1e-9) / 10;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power) return factor * power;
  }
  return 10 * power;
}

std::string TickText(double at, double tick) {
  if (tick >= 1) return absl::StrFormat("%.0f s", at);
  if (tick >= 1e-3) return absl::StrFormat("%.0f ms", at * 1e3);
  return absl::StrFormat("%.0f us", at * 1e6);
}

// Seconds of a short pass over a stage; 0: there is none.
double PassSeconds(const std::vector<Chart>& charts) {
  std::vector<double> passes;
  for (const Chart& chart : charts) {
    for (const RankRows& rank : chart.ranks) {
      for (const Row& row : rank.rows) {
        for (const Bar& bar : row.bars) {
          if (IsPass(bar.kind)) passes.push_back(bar.end - bar.start);
        }
      }
    }
  }
  if (passes.empty()) return 0;
  // Most bars are at least as long.
  const auto tenth = passes.begin() + passes.size() / 10;
  std::nth_element(passes.begin(), tenth, passes.end());
  return *tenth;
}

std::string Summary(const Chart& chart) {
  std::string text = absl::StrFormat("step %.2f ms", chart.step_seconds * 1e3);
  const double total = chart.path.total_ns();
  if (total <= 0) return text;
  absl::StrAppendFormat(&text, "; bubble %.1f %%", chart.bubble * 100);
  std::vector<std::string> parts;
  const auto add = [&](const char* name, int64_t ns) {
    if (ns > 0) {
      parts.push_back(absl::StrFormat("%s %.1f %%", name, 100 * ns / total));
    }
  };
  add("compute", chart.path.compute_ns);
  add("transfers", chart.path.transfer_ns);
  add("collectives", chart.path.collective_ns);
  add("tiers of memory", chart.path.move_ns);
  add("other", chart.path.other_ns);
  add("waiting", chart.path.waiting_ns);
  return absl::StrCat(text, "; critical path: ", absl::StrJoin(parts, ", "));
}

// Draws charts downwards; `y_` is where the next thing goes.
class Drawing {
 public:
  explicit Drawing(const std::vector<Chart>& charts) {
    double seconds = 1e-9;
    for (const Chart& chart : charts) {
      seconds = std::max(seconds, chart.seconds);
    }
    const double pass = PassSeconds(charts);
    const double wanted = pass > 0 ? kPassWidth * seconds / pass : 0;
    plot_width_ = std::clamp(wanted, kPlotWidthMin, kPlotWidthMax);
    scale_ = {.left = kLeft, .pixels_per_second = plot_width_ / seconds};
    // Two digits fit a short pass, and one that is a little shorter.
    label_size_ = std::clamp(
        (0.93 * pass * scale_.pixels_per_second - 1.5) / DigitsWidth(2), 7.0,
        11.0);
    y_ += 12;
    const Legend legend =
        LegendSvg(charts, {.x = kLeft, .y = y_, .right = width() - kMargin});
    front_ += legend.svg;
    y_ += legend.height + kLegendGap;
    for (const Chart& chart : charts) Add(chart);
  }

  std::string Svg() const {
    const std::string size =
        absl::StrCat("width=\"", Pixels(width()), "\" height=\"", Pixels(y_),
                     "\" viewBox=\"0 0 ", Pixels(width()), " ", Pixels(y_));
    return absl::StrCat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" ", size, "\">\n<style>",
        SvgStyle(),
        "</style>\n<defs><pattern id=\"ahead\" width=\"4\" height=\"4\" "
        "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
        "<path d=\"M0 0v4\" stroke=\"#fff\" stroke-width=\"2.4\" "
        "stroke-opacity=\".55\"/></pattern></defs>\n"
        "<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n",
        back_, front_, "</svg>\n");
  }

 private:
  double width() const { return kLeft + plot_width_ + kRight; }
  double right() const { return kLeft + plot_width_; }

  void Add(const Chart& chart) {
    front_ += TextSvg("title", kMargin, y_ + 18, chart.title);
    front_ += TextSvg("name", kMargin, y_ + 36, Summary(chart));
    front_ += TextSvg("end", width() - kMargin, y_ + 36, "bubble");
    y_ += kTitleHeight;
    const double top = y_;
    std::vector<std::vector<double>> middles;  // of rows
    for (const RankRows& rank : chart.ranks) middles.push_back(AddRank(rank));
    back_ += Axis(top, chart.seconds);
    for (const Hop& hop : chart.hops) {
      const auto end = [&](const Hop::End& at) {
        return absl::StrCat(Pixels(scale_.X(at.at)), " ",
                            Pixels(middles[at.rank][at.row]));
      };
      absl::StrAppend(&front_, "<path class=\"hop\" d=\"M", end(hop.from), "L",
                      end(hop.to), "\"/>\n");
    }
    y_ += kAxisHeight;
  }

  // Returns where the middles of its rows are.
  std::vector<double> AddRank(const RankRows& rank) {
    std::vector<double> middles;
    y_ += kRankGap;
    front_ +=
        TextSvg("rank", kMargin, y_ + 15, absl::StrCat("rank ", rank.rank));
    front_ += TextSvg("end", width() - kMargin, y_ + 15,
                      absl::StrFormat("%.1f %%", rank.bubble * 100));
    for (const Row& row : rank.rows) {
      const double height = HeightOf(row);
      middles.push_back(y_ + height / 2);
      absl::StrAppend(&back_, "<rect class=\"row\" x=\"", Pixels(kLeft),
                      "\" y=\"", Pixels(y_), "\" width=\"", Pixels(plot_width_),
                      "\" height=\"", Pixels(height), "\"/>\n");
      front_ += TextSvg("lane", kLeft - 6, y_ + height / 2 + 3, row.lane);
      const double size = row.is_compute ? label_size_ : kThinFontSize;
      absl::StrAppend(&front_, "<g class=\"",
                      row.is_compute ? "compute" : "thin", "\" font-size=\"",
                      Pixels(size), "\" transform=\"translate(0 ", Pixels(y_),
                      ")\">\n");
      for (const Bar& bar : row.bars) {
        front_ +=
            BarSvg(bar, {.scale = scale_, .height = height, .font_size = size});
      }
      front_ += "</g>\n";
      y_ += height + kRowGap;
    }
    return middles;
  }

  std::string Axis(double top, double seconds) {
    std::string out;
    const double tick = TickSeconds(plot_width_ / scale_.pixels_per_second);
    for (int i = 0; i * tick <= seconds * 1.0001; ++i) {
      const double x = scale_.X(i * tick);
      if (x > right() + 0.5) break;
      absl::StrAppend(&out, "<path class=\"tick\" d=\"M", Pixels(x), " ",
                      Pixels(top), "V", Pixels(y_ + 6), "\"/>");
      front_ += TextSvg("mid", x, y_ + 19, TickText(i * tick, tick));
    }
    return out + "\n";
  }

  TimeScale scale_;
  double plot_width_ = kPlotWidthMin;
  double label_size_ = 0;
  double y_ = 0;
  std::string back_;  // what lies under the bars
  std::string front_;
};

}  // namespace

std::string ChartSvg(const std::vector<Chart>& charts) {
  return Drawing(charts).Svg();
}

}  // namespace troupe
