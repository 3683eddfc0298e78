// Rows for tests.
#ifndef TROUPE_TESTS_WORKER_METRICS_SAMPLE_ROW_H_
#define TROUPE_TESTS_WORKER_METRICS_SAMPLE_ROW_H_

#include <cstdint>

#include "worker/metrics/metrics_row.h"

namespace troupe {

// With a loss that says which attempt and step it is of.
inline MetricsRow SampleRow(int64_t step, int attempt = 1) {
  MetricsRow row = {.unix_ms = 1'767'225'600'000 + step, .attempt = attempt};
  row.record.set_step(step);
  row.record.set_loss(attempt + static_cast<double>(step) / 1024);
  row.record.set_grad_norm(0.5);
  row.record.set_learning_rate(1e-5);
  row.record.set_samples_consumed(8 * step);
  return row;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_METRICS_SAMPLE_ROW_H_
