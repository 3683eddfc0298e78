// Which part of a table file an attempt goes on from: its rows of earlier
// steps. The rest is void, or is not ours.
#ifndef TROUPE_WORKER_METRICS_KEPT_ROWS_H_
#define TROUPE_WORKER_METRICS_KEPT_ROWS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "worker/metrics/table_format.h"

namespace troupe {

struct KeptRows {
  // The header and the rows, from the file's beginning; 0: nothing is kept.
  uint64_t bytes = 0;
  int64_t last_step = 0;   // of those; 0: there are none
  int64_t void_rows = 0;   // behind them, of the first step or later
  int64_t void_first = 0;  // the step of the first of those
  // What stands in the way: a line that is no row, whole lines after it, or
  // another header. A line without an end is no such line: a crash leaves it.
  bool has_foreign = false;
};

// Of a file that may not be there. Reads it in pieces.
absl::StatusOr<KeptRows> FindKeptRows(const std::string& path,
                                      const TableFormat& format,
                                      int64_t first_step);

}  // namespace troupe

#endif  // TROUPE_WORKER_METRICS_KEPT_ROWS_H_
