// One row's bars as SVG elements, in a coordinate system of the row: x runs
// along the whole picture, y from 0 at the row's upper edge.
#ifndef TROUPE_CLIENTS_GANTT_SVG_BAR_H_
#define TROUPE_CLIENTS_GANTT_SVG_BAR_H_

#include <string>

#include "clients/gantt/chart.h"

namespace troupe {

// Seconds to pixels.
struct TimeScale {
  double left = 0;
  double pixels_per_second = 0;
  double X(double seconds) const { return left + seconds * pixels_per_second; }
};

struct BarShape {
  TimeScale scale;
  double height = 0;
  double font_size = 0;  // of labels
};

// The bar, its title, and its label where that fits.
std::string BarSvg(const Bar& bar, const BarShape& shape);

// A line of text, of a class of the picture's style, whose baseline is at y.
std::string TextSvg(const char* name, double x, double y,
                    const std::string& text);

// "a &lt; b".
std::string EscapedXml(const std::string& text);

// A number of pixels with at most one decimal: "12.5", "7".
std::string Pixels(double value);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_GANTT_SVG_BAR_H_
