#include "clients/gantt/svg_legend.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "clients/gantt/svg_bar.h"
#include "clients/gantt/svg_style.h"

namespace troupe {
namespace {

// Pixels.
constexpr double kLine = 22;
constexpr double kSwatch = 20;  // and the space behind it
constexpr double kLetter = 5.7;
constexpr double kGap = 24;  // between entries

// "class of the swatch", or several, one over the other.
struct Entry {
  std::vector<std::string> classes;
  std::string text;
};

std::vector<Entry> Entries(const std::vector<Chart>& charts) {
  std::vector<Entry> entries;
  for (const BarKind kind : kBarKinds) {
    if (std::any_of(charts.begin(), charts.end(), [&](const Chart& chart) {
          return std::count(chart.kinds.begin(), chart.kinds.end(), kind) > 0;
        })) {
      entries.push_back({{BarClass(kind, 0)}, NameOf(kind).name});
    }
  }
  bool chunks = false;
  bool waits = false;
  bool works_ahead = false;
  bool has_path = false;
  for (const Chart& chart : charts) {
    chunks = chunks || chart.chunks_max > 1;
    waits = waits || chart.waits;
    works_ahead = works_ahead || chart.works_ahead;
    has_path = has_path || !chart.path.pieces.empty();
  }
  const std::string forward = BarClass(BarKind::kForward, 0);
  if (chunks) {
    entries.push_back({{BarClass(BarKind::kForward, 1)},
                       "lighter: another stage of the rank"});
  }
  if (waits) {
    entries.push_back({{BarClass(BarKind::kTransfer, 0) + " wait"},
                       "waiting for other ranks"});
  }
  if (works_ahead) entries.push_back({{forward, "ahead"}, "for a later step"});
  if (has_path) entries.push_back({{"row", "path"}, "critical path"});
  return entries;
}

}  // namespace

Legend LegendSvg(const std::vector<Chart>& charts, const LegendPlace& place) {
  std::string svg;
  double x = place.x;
  double y = place.y;
  for (const Entry& entry : Entries(charts)) {
    const double width = kSwatch + kLetter * entry.text.size();
    if (x > place.x && x + width > place.right) {
      x = place.x;
      y += kLine;
    }
    for (const std::string& name : entry.classes) {
      absl::StrAppend(&svg, "<path class=\"", name, "\" d=\"M", Pixels(x), " ",
                      Pixels(y), "h14v14h-14z\"/>");
    }
    absl::StrAppend(&svg, "<text x=\"", Pixels(x + kSwatch), "\" y=\"",
                    Pixels(y + 11), "\">", EscapedXml(entry.text), "</text>\n");
    x += width + kGap;
  }
  return {.svg = svg, .height = y + kLine - place.y};
}

}  // namespace troupe
