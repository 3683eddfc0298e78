#include "clients/gantt/svg_bar.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "clients/gantt/svg_style.h"

namespace troupe {
namespace {

constexpr double kWidthMin = 0.6;      // of a bar, so that it is seen
constexpr double kEdgeWidthMin = 3;    // of a bar that is parted from others
constexpr double kPieceWidthMin = 8;   // of units that are parted
constexpr double kPathWidthMin = 1.5;  // of bars that are outlined

struct Interval {
  double from = 0;
  double to = 0;
  double width() const { return to - from; }
};

class BarDrawing {
 public:
  BarDrawing(const Bar& bar, const BarShape& shape)
      : bar_(bar),
        shape_(shape),
        whole_({X(bar.start), std::max(X(bar.end), X(bar.start) + kWidthMin)}) {
  }

  std::string Svg() const {
    std::string svg =
        absl::StrCat("<g><title>", EscapedXml(bar_.title), "</title>");
    const double run = X(bar_.run);
    const bool waits = run - whole_.from >= kWidthMin;
    const std::string name = BarClass(bar_.kind, bar_.chunk);
    if (waits) svg += Box(name + " wait", {whole_.from, run});
    const double from =
        waits ? std::min(run, whole_.to - kWidthMin) : whole_.from;
    svg += Box(name, {from, whole_.to});
    AddOtherKinds(svg);
    if (bar_.ahead > 0) svg += Box("ahead", whole_);
    svg += Edges();
    if (bar_.critical && whole_.width() >= kPathWidthMin) AddPath(svg);
    svg += "</g>";
    AddLabel(svg);
    return svg + "\n";
  }

 private:
  double X(double seconds) const { return shape_.scale.X(seconds); }

  std::string Box(const std::string& name, const Interval& x,
                  const Interval& y) const {
    return absl::StrCat("<path class=\"", name, "\" d=\"M", Pixels(x.from), " ",
                        Pixels(y.from), "h", Pixels(x.width()), "v",
                        Pixels(y.width()), "h-", Pixels(x.width()), "z\"/>");
  }
  std::string Box(const std::string& name, const Interval& x) const {
    return Box(name, x, {0, shape_.height});
  }

  // Where a bar is all parts of backward, unit by unit, each has so much of its
  // height as it has of its time.
  void AddOtherKinds(std::string& svg) const {
    std::map<BarKind, double> times;
    double all = 0;
    for (const Bar::Piece& piece : bar_.pieces) {
      times[piece.kind] += piece.end - piece.start;
      all += piece.end - piece.start;
    }
    if (!(all > 0)) return;
    double above = times[bar_.kind];
    for (const auto& [kind, time] : times) {
      if (kind == bar_.kind) continue;
      svg += Box(BarClass(kind, bar_.chunk), whole_,
                 {shape_.height * above / all, shape_.height});
      above += time;
    }
  }

  // Lines in the background's colour part neighbours, and fainter ones units,
  // where there is room for them.
  std::string Edges() const {
    std::string edges;
    if (whole_.width() > kEdgeWidthMin) {
      edges = absl::StrCat("<path class=\"edge\" d=\"", Line(whole_.from),
                           Line(whole_.to), "\"/>");
    }
    std::string units;
    if (whole_.width() > kPieceWidthMin * bar_.pieces.size()) {
      for (size_t i = 1; i < bar_.pieces.size(); ++i) {
        absl::StrAppend(&units, Line(X(bar_.pieces[i].start)));
      }
    }
    if (units.empty()) return edges;
    return absl::StrCat(edges, "<path class=\"edge unit\" d=\"", units, "\"/>");
  }

  std::string Line(double x) const {
    return absl::StrCat("M", Pixels(x), " 0v", Pixels(shape_.height));
  }

  void AddPath(std::string& svg) const {
    const double from = std::max(X(bar_.run), whole_.from) + 0.5;
    const double width = std::max(whole_.to - 0.5 - from, 0.3);
    absl::StrAppend(&svg, "<path class=\"path\" d=\"M", Pixels(from), " .7h",
                    Pixels(width), "v", Pixels(shape_.height - 1.4), "h-",
                    Pixels(width), "z\"/>");
  }

  void AddLabel(std::string& svg) const {
    const int length = static_cast<int>(bar_.label.size());
    if (length == 0 ||
        whole_.width() < DigitsWidth(length) * shape_.font_size + 1.5) {
      return;
    }
    // Digits are 0.72 of the font's size high.
    absl::StrAppend(&svg, "<text class=\"label ",
                    LabelClass(bar_.kind, bar_.chunk), "\" x=\"",
                    Pixels((whole_.from + whole_.to) / 2), "\" y=\"",
                    Pixels((shape_.height + 0.72 * shape_.font_size) / 2),
                    "\">", EscapedXml(bar_.label), "</text>");
  }

  const Bar& bar_;
  const BarShape& shape_;
  const Interval whole_;
};

}  // namespace

std::string BarSvg(const Bar& bar, const BarShape& shape) {
  return BarDrawing(bar, shape).Svg();
}

std::string TextSvg(const char* name, double x, double y,
                    const std::string& text) {
  return absl::StrCat("<text class=\"", name, "\" x=\"", Pixels(x), "\" y=\"",
                      Pixels(y), "\">", EscapedXml(text), "</text>\n");
}

std::string EscapedXml(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string Pixels(double value) {
  std::string text = absl::StrFormat("%.1f", value);
  if (absl::EndsWith(text, ".0")) text.resize(text.size() - 2);
  return text;
}

}  // namespace troupe
