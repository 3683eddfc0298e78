#include "clients/gantt/svg.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace troupe {
namespace {

// Pixels.
constexpr double kWidth = 1280;
constexpr double kLeft = 176;  // row names
constexpr double kRight = 24;
constexpr double kRowHeight = 24;
constexpr double kBarHeight = 18;
constexpr double kTitleHeight = 34;
constexpr double kAxisHeight = 26;
constexpr double kRankGap = 6;
constexpr double kChartGap = 22;
constexpr double kLegendHeight = 40;
constexpr double kPlotWidth = kWidth - kLeft - kRight;

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

struct TextAt {
  double x = 0;
  double y = 0;
  const char* style = "";  // further attributes
};

std::string TextElement(const TextAt& at, const std::string& text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", at.x,
                         at.y, at.style, Escaped(text));
}

// A round number of seconds, so that about eight ticks fit.
double TickSeconds(double seconds) {
  const double raw = std::max(seconds, 1e-9) / 8;
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

// Draws charts downwards; `y_` is where the next thing goes.
class Drawing {
 public:
  explicit Drawing(double seconds) : seconds_(std::max(seconds, 1e-9)) {}

  void Add(const Chart& chart) {
    body_ += TextElement({16, y_ + 22, "class=\"title\""}, chart.title);
    body_ += TextElement(
        {kWidth - kRight, y_ + 22, "text-anchor=\"end\" class=\"name\""},
        absl::StrFormat("%.2f ms", chart.seconds * 1e3));
    y_ += kTitleHeight;
    const double top = y_;
    const size_t axis_at = body_.size();
    for (const Row& row : chart.rows) AddRow(row);
    y_ += 4;
    body_.insert(axis_at, Axis(top));
    y_ += kAxisHeight + kChartGap;
  }

  void AddLegend() {
    double x = kLeft;
    for (const BarKind kind : kBarKinds) {
      const BarStyle style = StyleOf(kind);
      absl::StrAppendFormat(
          &body_,
          "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"14\" rx=\"2\" "
          "fill=\"%s\"/>\n",
          x, y_, style.colour);
      body_ += TextElement({x + 20, y_ + 12, "class=\"name\""}, style.name);
      x += 52 + 6.6 * std::string(style.name).size();
    }
    y_ += kLegendHeight;
  }

  std::string Svg() const {
    return absl::StrFormat(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
               "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
               "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n",
               kWidth, y_, kWidth, y_) +
           "<style>.title{font-size:15px;font-weight:600;fill:#20242b}"
           ".name{font-size:12px;fill:#4a505a}"
           ".rank{font-size:12px;font-weight:600;fill:#20242b}"
           ".label{font-size:10px;text-anchor:middle;pointer-events:none}"
           "</style>\n"
           "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" +
           body_ + "</svg>\n";
  }

 private:
  double X(double at) const { return kLeft + at / seconds_ * kPlotWidth; }

  void AddRow(const Row& row) {
    if (row.first_of_rank) {
      y_ += kRankGap;
      body_ += TextElement({16, y_ + 16, "class=\"rank\""},
                           absl::StrCat("rank ", row.rank));
    }
    body_ += TextElement(
        {kLeft - 12, y_ + 16, "text-anchor=\"end\" class=\"name\""}, row.lane);
    absl::StrAppendFormat(&body_,
                          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                          "height=\"%.1f\" fill=\"#f3f4f6\"/>\n",
                          kLeft, y_ + 3, kPlotWidth, kBarHeight);
    for (const Bar& bar : row.bars) AddBar(bar);
    y_ += kRowHeight;
  }

  void AddBar(const Bar& bar) {
    const double x = X(bar.start);
    const double width = std::max(0.6, X(bar.end) - x);
    // A white edge parts neighbours, where there is room for one.
    absl::StrAppendFormat(
        &body_,
        "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" "
        "height=\"%.1f\" fill=\"%s\"%s><title>%s</title>"
        "</rect>\n",
        x, y_ + 3, width, kBarHeight, StyleOf(bar.kind).colour,
        width > 3 ? " stroke=\"#ffffff\" stroke-width=\"0.8\"" : "",
        Escaped(bar.title));
    if (bar.label.empty() || width < 7.0 * bar.label.size() + 3) return;
    const bool is_light =
        bar.kind == BarKind::kBackwardWeight || bar.kind == BarKind::kOther;
    body_ += TextElement({x + width / 2, y_ + 15.5,
                          is_light ? "class=\"label\" fill=\"#20242b\""
                                   : "class=\"label\" fill=\"#ffffff\""},
                         bar.label);
  }

  std::string Axis(double top) const {
    std::string out;
    const double tick = TickSeconds(seconds_);
    for (int i = 0; i * tick <= seconds_ * 1.0001; ++i) {
      const double x = X(i * tick);
      absl::StrAppendFormat(&out,
                            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
                            "y2=\"%.1f\" stroke=\"#d5d9e0\"/>\n",
                            x, top, x, y_ + 4);
      out += TextElement({x, y_ + 18, "text-anchor=\"middle\" class=\"name\""},
                         TickText(i * tick, tick));
    }
    return out;
  }

  const double seconds_;
  double y_ = 8;
  std::string body_;
};

}  // namespace

std::string ChartSvg(const std::vector<Chart>& charts) {
  double seconds = 0;
  for (const Chart& chart : charts) seconds = std::max(seconds, chart.seconds);
  Drawing drawing(seconds);
  for (const Chart& chart : charts) drawing.Add(chart);
  drawing.AddLegend();
  return drawing.Svg();
}

}  // namespace troupe
