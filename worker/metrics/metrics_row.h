// A step as the metrics files have it (docs/metrics.md): what rank 0 reported
// of it, when, and which attempt of the job that was.
#ifndef TROUPE_WORKER_METRICS_METRICS_ROW_H_
#define TROUPE_WORKER_METRICS_METRICS_ROW_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "proto/status.pb.h"

namespace troupe {

struct MetricsRow {
  int64_t unix_ms = 0;  // when the step was reported
  int attempt = 0;      // 1 is the job's first
  StepRecord record;
};

// A column has the name of its field in StepRecord, so that the files, the
// Python client and Weights & Biases agree: "loss", "routers.entropy",
// "tiers.HOST.bytes_in". Two are not of the record: unix_ms and attempt.
struct MetricsColumn {
  absl::string_view name;
  // Nothing where the step has no such number: it was not validated, the job
  // does not scale its loss, ...
  absl::optional<double> (*value)(const MetricsRow& row);
  // Integers are printed as such; they are below 2^53.
  bool integer = false;
  // Whether it is drawn over steps (TensorBoard).
  bool is_curve = true;
};

// All of them, `step` first. The order is that of the CSV file; a new column
// goes to the end.
absl::Span<const MetricsColumn> MetricsColumns();

// As the files have it: the shortest text that reads back as the same double,
// or "inf", "-inf", "nan".
std::string MetricsNumber(const MetricsColumn& column, double value);

}  // namespace troupe

#endif  // TROUPE_WORKER_METRICS_METRICS_ROW_H_
