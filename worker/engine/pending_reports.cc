#include "worker/engine/pending_reports.h"

#include <utility>

#include "proto/base/check.h"

namespace troupe {
namespace {

int64_t StepOf(const PendingReport& report) {
  return report.finished.context.step;
}

}  // namespace

void PendingReport::FillIn(StepRecord& record) const {
  record.set_memory_bytes(memory_bytes);
  record.set_checkpoint_stall_seconds(checkpoint_stall_seconds);
  for (const TierTraffic& tier : tiers) *record.add_tiers() = tier;
  if (validation_loss.has_value()) {
    record.set_validation_loss(*validation_loss);
  }
  if (sample.has_value()) *record.mutable_sample() = *sample;
}

void PendingReports::Add(PendingReport report) {
  CHECK(reports_.empty() || StepOf(reports_.back()) < StepOf(report));
  reports_.push_back(std::move(report));
}

absl::optional<PendingReport> PendingReports::Take(int64_t step) {
  // Steps become known in their order.
  if (reports_.empty() || StepOf(reports_.front()) != step) {
    return absl::nullopt;
  }
  PendingReport report = std::move(reports_.front());
  reports_.pop_front();
  return report;
}

}  // namespace troupe
