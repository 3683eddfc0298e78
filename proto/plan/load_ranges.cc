#include "proto/plan/load_ranges.h"

#include <algorithm>

#include "proto/plan/at_rest.h"
#include "proto/plan/slices.h"

namespace troupe {

std::vector<LoadRange> LoadRanges(const Unit& unit, const Range& of) {
  std::vector<LoadRange> ranges;
  for (const Parameter& parameter : unit.parameters()) {
    if (!parameter.has_load() || parameter.frozen()) continue;
    int64_t elements = 1;
    for (const int64_t dim : LocalShape(parameter)) elements *= dim;
    const Range here =
        Both({parameter.offset(), parameter.offset() + elements}, of);
    if (here.size() > 0) ranges.push_back({here, parameter.load()});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const LoadRange& a, const LoadRange& b) {
              return a.range.begin < b.range.begin;
            });
  return ranges;
}

std::vector<Range> WeightRanges(const Unit& unit, const Range& of) {
  std::vector<Range> ranges;
  int64_t begin = of.begin;
  for (const LoadRange& load : LoadRanges(unit, of)) {
    if (load.range.begin > begin) ranges.push_back({begin, load.range.begin});
    begin = load.range.end;
  }
  if (of.end > begin) ranges.push_back({begin, of.end});
  return ranges;
}

}  // namespace troupe
