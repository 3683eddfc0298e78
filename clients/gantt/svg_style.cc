#include "clients/gantt/svg_style.h"

#include "absl/strings/str_cat.h"

namespace troupe {
namespace {

struct Colours {
  BarKind kind;
  const char* name;    // class
  const char* first;   // of a rank's first stage, its third, ...
  const char* second;  // of its second one
  bool light_text;     // on the first; on the second it is dark
};

constexpr Colours kColours[] = {
    {BarKind::kForward, "f", "#0072b2", "#66b2e0", true},
    {BarKind::kRecompute, "a", "#6a4fb3", "#b3a2e0", true},
    {BarKind::kBackwardInput, "i", "#e07b00", "#f5b05c", false},
    {BarKind::kBackwardWeight, "w", "#f2d13c", "#f8e795", false},
    {BarKind::kTransfer, "t", "#009e73", "#009e73", true},
    {BarKind::kExchange, "x", "#c0392b", "#c0392b", true},
    {BarKind::kCollective, "c", "#b5579a", "#b5579a", true},
    {BarKind::kMove, "m", "#7a5230", "#7a5230", true},
    {BarKind::kStep, "s", "#59616e", "#59616e", true},
    {BarKind::kData, "d", "#9aa2ad", "#9aa2ad", false},
    {BarKind::kOther, "o", "#c4c9d0", "#c4c9d0", false},
};

const Colours& ColoursOf(BarKind kind) {
  for (const Colours& colours : kColours) {
    if (colours.kind == kind) return colours;
  }
  return kColours[std::size(kColours) - 1];
}

constexpr char kStyle[] =
    "text{font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"
    "fill:#4a505a;font-size:12px}"
    ".bg{fill:#fff}.row{fill:#f1f3f6}"
    ".title{font-size:16px;font-weight:bold;fill:#1b1f26}"
    ".rank{font-weight:bold;fill:#1b1f26}"
    ".lane{font-size:8px;fill:#7a828e;text-anchor:end}"
    ".end{text-anchor:end}.mid{text-anchor:middle}"
    ".tick{stroke:#d9dde3}.edge{fill:none;stroke:#fff;stroke-width:.7;"
    "stroke-opacity:.9}.unit{stroke-opacity:.35}"
    ".label{font-size:inherit;text-anchor:middle;pointer-events:none}"
    ".dark{fill:#1b1f26}.light{fill:#fff}"
    ".thin .dark,.thin .light{fill:#2d333c}"
    ".wait{fill-opacity:.22}"
    ".ahead{fill:url(#ahead);pointer-events:none}.line{stroke:#1b1f26}"
    ".path{fill:none;stroke:#c1121f;stroke-width:1.5;pointer-events:none}"
    ".hop{fill:none;stroke:#c1121f;stroke-width:1.2;pointer-events:none}"
    "@media(prefers-color-scheme:dark){"
    "text{fill:#a9b0bb}.bg{fill:#14171c}.row{fill:#20242b}"
    ".title,.rank{fill:#f0f2f5}.lane{fill:#8b93a0}.tick{stroke:#343a44}"
    ".edge{stroke:#14171c}.dark{fill:#14171c}"
    ".thin .dark,.thin .light{fill:#dfe3e8}.wait{fill-opacity:.35}"
    ".path,.hop{stroke:#ff5a5f}.s,.s1{fill:#8d96a5}}";

}  // namespace

std::string BarClass(BarKind kind, int chunk) {
  return absl::StrCat(ColoursOf(kind).name, chunk % 2 == 0 ? "" : "1");
}

std::string LabelClass(BarKind kind, int chunk) {
  return ColoursOf(kind).light_text && chunk % 2 == 0 ? "light" : "dark";
}

std::string SvgStyle() {
  std::string style;
  for (const Colours& colours : kColours) {
    absl::StrAppend(&style, ".", colours.name, "{fill:", colours.first, "}.",
                    colours.name, "1{fill:", colours.second, "}");
  }
  return style + kStyle;
}

double DigitsWidth(int characters) { return 0.64 * characters; }

}  // namespace troupe
