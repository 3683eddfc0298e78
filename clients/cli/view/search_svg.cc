#include "clients/cli/view/search_svg.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cli/view/explain_view.h"
#include "clients/cli/view/format.h"
#include "clients/gantt/svg_bar.h"

namespace troupe {
namespace {

// Pixels.
constexpr double kWidth = 980;
constexpr double kHeight = 620;
constexpr double kLeft = 84;
constexpr double kRight = 24;
constexpr double kTop = 92;
constexpr double kBottom = 64;
constexpr double kDot = 2.5;
constexpr double kCross = 2.5;
constexpr double kRing = 4.5;
constexpr double kChoice = 7;
// Of both ends of an axis, as a factor.
constexpr double kRoom = 1.15;

// Okabe and Ito's colours, as in clients/gantt/svg_style.h.
constexpr char kStyle[] =
    "text{font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"
    "fill:#4a505a;font-size:12px}"
    ".bg{fill:#fff}.title{font-size:16px;font-weight:bold;fill:#1b1f26}"
    ".end{text-anchor:end}.mid{text-anchor:middle}"
    ".tick{stroke:#e3e6eb}.axis{stroke:#7a828e}"
    ".fits{fill:#0072b2;fill-opacity:.55}"
    ".lacks{stroke:#e07b00;stroke-opacity:.7;stroke-width:1.2;fill:none}"
    ".plan{fill:none;stroke:#009e73;stroke-width:1.6}"
    ".front{fill:none;stroke:#0072b2;stroke-width:1.5;stroke-dasharray:5 3}"
    ".budget{stroke:#c1121f;stroke-dasharray:2 3}.red{fill:#c1121f}"
    ".choice{fill:#c1121f;stroke:#fff;stroke-width:1.5}"
    "@media(prefers-color-scheme:dark){"
    "text{fill:#a9b0bb}.bg{fill:#14171c}.title{fill:#f0f2f5}"
    ".tick{stroke:#2a2f37}.axis{stroke:#8b93a0}.fits{fill:#66b2e0}"
    ".lacks{stroke:#f5b05c}.plan{stroke:#3fd0a5}.front{stroke:#66b2e0}"
    ".budget{stroke:#ff5a5f}.red,.choice{fill:#ff5a5f}.choice{stroke:#14171c}}";

// A logarithmic axis from `least` to `most`, drawn from one pixel to another.
class Axis {
 public:
  Axis(double from, double to) : from_(from), to_(to) {}

  void Include(double value) {
    if (!(value > 0) || !std::isfinite(value)) return;
    least_ = std::min(least_, value / kRoom);
    most_ = std::max(most_, value * kRoom);
  }
  double least() const { return least_; }
  double most() const { return most_; }
  double At(double value) const {
    return from_ +
           (to_ - from_) * std::log(value / least_) / std::log(most_ / least_);
  }

 private:
  const double from_, to_;
  double least_ = std::numeric_limits<double>::infinity();
  double most_ = 0;
};

// 1, 2 and 5 of each power of ten; where these would be many, only the powers.
std::vector<double> DecimalTicks(const Axis& axis) {
  std::vector<double> ticks;
  const double first = std::pow(10, std::floor(std::log10(axis.least())));
  const bool few = axis.most() / axis.least() > 1e4;
  for (double power = first; power <= axis.most(); power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (few && factor > 1) continue;
      const double tick = factor * power;
      if (tick >= axis.least() && tick <= axis.most()) ticks.push_back(tick);
    }
  }
  return ticks;
}

// Powers of two of bytes.
std::vector<double> BinaryTicks(const Axis& axis) {
  std::vector<double> ticks;
  const double powers = std::log2(axis.most() / axis.least());
  const double step = std::exp2(std::ceil(powers / 12));
  double tick = std::exp2(std::ceil(std::log2(axis.least())));
  for (; tick <= axis.most(); tick *= step) ticks.push_back(tick);
  return ticks;
}

struct Ends {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};
std::string Line(const char* name, const Ends& ends) {
  return absl::StrCat("<line class=\"", name, "\" x1=\"", Pixels(ends.x1),
                      "\" y1=\"", Pixels(ends.y1), "\" x2=\"", Pixels(ends.x2),
                      "\" y2=\"", Pixels(ends.y2), "\"/>\n");
}

class Picture {
 public:
  explicit Picture(const Explanation& explanation)
      : explanation_(explanation),
        search_(explanation.search()),
        memory_(kLeft, kWidth - kRight),
        seconds_(kHeight - kBottom, kTop) {
    for (const EstimatedWay& way : search_.estimates()) {
      Include(way.memory_bytes(), way.step_seconds());
    }
    for (const ExplainedWay& way : explanation.ways()) {
      if (IsOfDevice(way)) Include(way.memory_bytes(), way.step_seconds());
    }
    if (Budget() > 0) memory_.Include(Budget());
    // Of a choice that needs a lower tier, and nothing else.
    if (!(memory_.most() > 0)) Include(1 << 30, 1);
  }

  std::string Svg() {
    Frame();
    Estimates(false);
    Estimates(true);
    Frontier();
    BudgetLine();
    Simulated();
    Choice();
    return absl::StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"",
                        Pixels(kWidth), "\" height=\"", Pixels(kHeight),
                        "\" viewBox=\"0 0 ", Pixels(kWidth), " ",
                        Pixels(kHeight), "\">\n<style>", kStyle, "</style>\n",
                        svg_, "</svg>\n");
  }

 private:
  static bool IsOfDevice(const ExplainedWay& way) {
    return way.tier() == DEVICE && way.memory_bytes() > 0;
  }
  void Include(int64_t bytes, double seconds) {
    memory_.Include(static_cast<double>(bytes));
    seconds_.Include(seconds);
  }
  // Of the rank that fills its device most.
  double Budget() const {
    const ExplainedWay& best = explanation_.ways(0);
    return IsOfDevice(best) ? static_cast<double>(best.budget_bytes()) : 0;
  }
  double X(int64_t bytes) const {
    return memory_.At(std::max<double>(bytes, memory_.least()));
  }
  double Y(double seconds) const {
    return seconds_.At(std::max(seconds, seconds_.least()));
  }

  void Add(const std::string& svg) { svg_ += svg; }

  void Frame() {
    const double bottom = kHeight - kBottom;
    const double right = kWidth - kRight;
    Add("<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n");
    Add(TextSvg("title", kLeft, 28,
                absl::StrCat("The search for ", search_.workers(),
                             search_.workers() == 1 ? " worker" : " workers",
                             ", by ", search_.objective())));
    Add(TextSvg(
        "", kLeft, 48,
        absl::StrCat(GroupedText(search_.estimated()), " estimated, ",
                     GroupedText(search_.simulated()), " simulated; chosen: ",
                     WayText(explanation_.ways(0).fields()))));
    Legend();
    for (const double tick : BinaryTicks(memory_)) {
      const double x = memory_.At(tick);
      Add(Line("tick", {x, kTop, x, bottom}));
      Add(TextSvg("mid", x, bottom + 18, BytesText(std::llround(tick))));
    }
    for (const double tick : DecimalTicks(seconds_)) {
      const double y = seconds_.At(tick);
      Add(Line("tick", {kLeft, y, right, y}));
      Add(TextSvg("end", kLeft - 8, y + 4, TickText(tick)));
    }
    Add(Line("axis", {kLeft, bottom, right, bottom}));
    Add(Line("axis", {kLeft, kTop, kLeft, bottom}));
    Add(TextSvg(
        "mid", (kLeft + right) / 2, bottom + 42,
        "memory of the device on the fullest rank; of estimates a lower "
        "bound"));
    Add(absl::StrCat("<text class=\"mid\" transform=\"translate(18 ",
                     Pixels((kTop + bottom) / 2),
                     ") rotate(-90)\">step time</text>\n"));
  }

  static std::string TickText(double seconds) {
    if (seconds >= 0.9995) return absl::StrFormat("%.0f s", seconds);
    if (seconds >= 0.9995e-3) return absl::StrFormat("%.0f ms", seconds * 1e3);
    return absl::StrFormat("%.3g us", seconds * 1e6);
  }

  void Legend() {
    double x = kLeft;
    const double y = 70;
    const auto entry = [&](const std::string& mark, const std::string& text,
                           double width) {
      Add(mark);
      Add(TextSvg("", x + 14, y + 4, text));
      x += width;
    };
    entry(DotSvg(x + 4, y, ""), "estimate that fits", 140);
    entry(CrossSvg(x + 4, y, ""), "too little memory", 140);
    entry(RingSvg(x + 4, y, ""), "simulated", 96);
    entry(Line("front", {x - 6, y, x + 10, y}),
          "shortest step in so much memory", 220);
    entry(ChoiceSvg(x + 4, y, ""), "chosen", 80);
  }

  static std::string Titled(const std::string& mark, const std::string& title) {
    if (title.empty()) return mark + "\n";
    return absl::StrCat("<g><title>", EscapedXml(title), "</title>", mark,
                        "</g>\n");
  }
  static std::string CircleSvg(const char* name, double x, double y,
                               double radius) {
    return absl::StrCat("<circle class=\"", name, "\" cx=\"", Pixels(x),
                        "\" cy=\"", Pixels(y), "\" r=\"", Pixels(radius),
                        "\"/>");
  }
  static std::string DotSvg(double x, double y, const std::string& title) {
    return Titled(CircleSvg("fits", x, y, kDot), title);
  }
  static std::string RingSvg(double x, double y, const std::string& title) {
    return Titled(CircleSvg("plan", x, y, kRing), title);
  }
  static std::string ChoiceSvg(double x, double y, const std::string& title) {
    return Titled(CircleSvg("choice", x, y, kChoice), title);
  }
  static std::string CrossSvg(double x, double y, const std::string& title) {
    const auto stroke = [&](double up) {
      return absl::StrCat("M", Pixels(x - kCross), " ", Pixels(y - up), "L",
                          Pixels(x + kCross), " ", Pixels(y + up));
    };
    return Titled(absl::StrCat("<path class=\"lacks\" d=\"", stroke(kCross),
                               stroke(-kCross), "\"/>"),
                  title);
  }

  static std::string NumbersText(double seconds, int64_t bytes) {
    return absl::StrCat(SecondsText(seconds), ", ", BytesText(bytes));
  }

  void Estimates(bool fits) {
    std::set<std::pair<int, int>> drawn;  // pixels
    for (const EstimatedWay& way : search_.estimates()) {
      if (way.fits() != fits || !(way.step_seconds() > 0)) continue;
      const double x = X(way.memory_bytes());
      const double y = Y(way.step_seconds());
      const std::pair<int, int> pixel = {static_cast<int>(x),
                                         static_cast<int>(y)};
      if (!drawn.insert(pixel).second) continue;
      const std::string title = absl::StrCat(
          way.ranks(), way.ranks() == 1 ? " rank, " : " ranks, ",
          NumbersText(way.step_seconds(), way.memory_bytes()), ", estimated");
      Add(fits ? DotSvg(x, y, title) : CrossSvg(x, y, title));
    }
  }

  // Over what fits: with more memory a step is no longer.
  void Frontier() {
    std::vector<std::pair<int64_t, double>> points;
    for (const EstimatedWay& way : search_.estimates()) {
      if (!way.fits() || !(way.step_seconds() > 0)) continue;
      points.emplace_back(way.memory_bytes(), way.step_seconds());
    }
    if (points.empty()) return;
    std::sort(points.begin(), points.end());
    std::string path;
    double best = std::numeric_limits<double>::infinity();
    for (const auto& [bytes, seconds] : points) {
      if (seconds >= best) continue;
      best = seconds;
      absl::StrAppend(&path, path.empty() ? "M" : "H", Pixels(X(bytes)),
                      path.empty() ? " " : "V", Pixels(Y(seconds)));
    }
    const double end =
        X(Budget() > 0 ? std::llround(Budget()) : points.back().first);
    Add(absl::StrCat("<path class=\"front\" d=\"", path, "H", Pixels(end),
                     "\"/>\n"));
  }

  void BudgetLine() {
    if (!(Budget() > 0)) return;
    const double x = memory_.At(Budget());
    Add(Line("budget", {x, kTop, x, kHeight - kBottom}));
    Add(TextSvg("red end", x - 4, kTop + 12,
                absl::StrCat("device: ", BytesText(std::llround(Budget())))));
  }

  void Simulated() {
    for (const ExplainedWay& way : explanation_.ways()) {
      if (!IsOfDevice(way)) continue;
      Add(RingSvg(X(way.memory_bytes()), Y(way.step_seconds()), TitleOf(way)));
    }
  }

  static std::string TitleOf(const ExplainedWay& way) {
    return absl::StrCat(WayText(way.fields()), ": ",
                        NumbersText(way.step_seconds(), way.memory_bytes()));
  }

  void Choice() {
    const ExplainedWay& best = explanation_.ways(0);
    if (!IsOfDevice(best)) return;  // another tier is its fullest
    const double x = X(best.memory_bytes());
    const double y = Y(best.step_seconds());
    Add(ChoiceSvg(x, y, TitleOf(best)));
    // Where it is least in the way: towards the middle, below the frontier.
    const bool left = x > (kLeft + kWidth - kRight) / 2;
    Add(TextSvg(left ? "red end" : "red", x + (left ? -12 : 12), y + 18,
                absl::StrCat("chosen: ", NumbersText(best.step_seconds(),
                                                     best.memory_bytes()))));
  }

  const Explanation& explanation_;
  const SearchSummary& search_;
  Axis memory_;
  Axis seconds_;
  std::string svg_;
};

}  // namespace

std::string SearchSvg(const Explanation& explanation) {
  return Picture(explanation).Svg();
}

}  // namespace troupe
