#include "worker/service/step_report.h"

#include <cstdint>

#include "absl/strings/string_view.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"

namespace troupe {
namespace {

absl::string_view BytesOf(absl::Span<const double> values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(double)};
}

}  // namespace

StepReport MakeStepReport(const RankRef& ref, const Sums& sums,
                          const ReportedStep& step) {
  CHECK_EQ(static_cast<int64_t>(step.values.size()), SumElements(sums));
  StepReport report;
  *report.mutable_ref() = ref;
  *report.mutable_record() = step.record;
  report.set_of_others(step.of_others);
  if (ref.rank() != 0) report.mutable_record()->clear_sequence_losses();
  absl::Span<const double> left = step.values;
  for (const Sum& sum : sums) {
    const absl::Span<const double> values = left.first(sum.elements());
    left.remove_prefix(values.size());
    if (IsOfSequences(sum)) {
      report.set_sequences_crc32c(
          ExtendCrc32c(report.sequences_crc32c(), BytesOf(values)));
    } else {
      report.mutable_sums()->Add(values.begin(), values.end());
    }
  }
  return report;
}

}  // namespace troupe
