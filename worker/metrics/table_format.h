// How a row looks as a line of metrics.jsonl or metrics.csv.
//
//   {"step":12,"unix_ms":1767225600000,"attempt":1,"loss":3.25}
//   12,1767225600000,1,3.25,,0.5
//
// Each line begins with its step, so that lines are told apart without reading
// the rest. A JSON object has only the columns that the step has, and null for
// a number that JSON has not (an infinity). Behind them it has the text of
// data.sample, "sample", or why there is none, "sample_error". A CSV row has
// all columns, some empty.
#ifndef TROUPE_WORKER_METRICS_TABLE_FORMAT_H_
#define TROUPE_WORKER_METRICS_TABLE_FORMAT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "worker/metrics/metrics_row.h"

namespace troupe {

struct TableFormat {
  absl::string_view file_name;
  // The line that a file begins with, its end included; empty: none.
  std::string (*header)();
  // A line and its end.
  std::string (*line)(const MetricsRow& row);
  // Which step a line, without its end, is of; nothing where it is no row.
  absl::optional<int64_t> (*step)(absl::string_view line);
};

const TableFormat& JsonLinesFormat();
const TableFormat& CsvFormat();

}  // namespace troupe

#endif  // TROUPE_WORKER_METRICS_TABLE_FORMAT_H_
