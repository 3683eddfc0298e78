// The lines of a picture that say what its colours mean: what is in the charts
// and nothing else.
#ifndef TROUPE_CLIENTS_GANTT_SVG_LEGEND_H_
#define TROUPE_CLIENTS_GANTT_SVG_LEGEND_H_

#include <string>
#include <vector>

#include "clients/gantt/chart.h"

namespace troupe {

struct LegendPlace {
  double x = 0;  // pixels
  double y = 0;  // of the upper edge
  double right = 0;
};
struct Legend {
  std::string svg;
  double height = 0;  // one line or more
};

Legend LegendSvg(const std::vector<Chart>& charts, const LegendPlace& place);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_GANTT_SVG_LEGEND_H_
