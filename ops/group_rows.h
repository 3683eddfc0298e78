// The rows of each group of a grouped product, from offsets that the host can
// read.
#ifndef TROUPE_OPS_GROUP_ROWS_H_
#define TROUPE_OPS_GROUP_ROWS_H_

#include <cstdint>
#include <vector>

#include "proto/base/check.h"

namespace troupe {

struct RowRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// Of offsets [groups + 1], which rise from 0 or more to at most `rows`: that
// they do not is a bug, which fails a CHECK.
inline std::vector<RowRange> GroupRows(const int32_t* offsets, int64_t groups,
                                       int64_t rows) {
  std::vector<RowRange> ranges(groups);
  for (int64_t group = 0; group < groups; ++group) {
    const RowRange range = {offsets[group], offsets[group + 1]};
    CHECK(0 <= range.begin && range.begin <= range.end && range.end <= rows)
        << "group " << group << " has rows [" << range.begin << ", "
        << range.end << ") of " << rows;
    ranges[group] = range;
  }
  return ranges;
}

}  // namespace troupe

#endif  // TROUPE_OPS_GROUP_ROWS_H_
