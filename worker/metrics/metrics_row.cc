#include "worker/metrics/metrics_row.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace troupe {
namespace {

using Value = absl::optional<double>;

template <auto kField>
Value Of(const MetricsRow& row) {
  return static_cast<double>((row.record.*kField)());
}

// Of a count that is 0 where there is nothing to count.
template <auto kField>
Value Positive(const MetricsRow& row) {
  const auto value = (row.record.*kField)();
  return value > 0 ? Value(static_cast<double>(value)) : absl::nullopt;
}

// Only where the loss is scaled.
template <auto kField>
Value Scaled(const MetricsRow& row) {
  return row.record.loss_scale() > 0 ? Of<kField>(row) : absl::nullopt;
}

template <auto kField>
Value OfRouters(const MetricsRow& row) {
  if (!row.record.has_routers()) return absl::nullopt;
  return (row.record.routers().*kField)();
}

template <auto kField>
Value OfTurn(const MetricsRow& row) {
  if (!row.record.has_turn()) return absl::nullopt;
  return static_cast<double>((row.record.turn().*kField)());
}

template <Tier kTier, auto kField>
Value OfTier(const MetricsRow& row) {
  for (const TierTraffic& traffic : row.record.tiers()) {
    if (traffic.tier() == kTier) {
      return static_cast<double>((traffic.*kField)());
    }
  }
  return absl::nullopt;
}

Value UnixMs(const MetricsRow& row) { return static_cast<double>(row.unix_ms); }
Value Attempt(const MetricsRow& row) { return row.attempt; }
Value ValidationLoss(const MetricsRow& row) {
  if (!row.record.has_validation_loss()) return absl::nullopt;
  return row.record.validation_loss();
}

using Record = StepRecord;
using Routers = RouterRecord;
using Traffic = TierTraffic;

constexpr MetricsColumn kColumns[] = {
    {"step", &Of<&Record::step>, /*integer=*/true, /*is_curve=*/false},
    {"unix_ms", &UnixMs, true, false},
    {"attempt", &Attempt, true, false},
    {"loss", &Of<&Record::loss>},
    {"validation_loss", &ValidationLoss},
    {"grad_norm", &Of<&Record::grad_norm>},
    {"learning_rate", &Of<&Record::learning_rate>},
    {"tokens_per_second", &Of<&Record::tokens_per_second>},
    {"mfu", &Positive<&Record::mfu>},
    {"step_seconds", &Of<&Record::step_seconds>},
    {"memory_bytes", &Of<&Record::memory_bytes>, true},
    {"samples_consumed", &Of<&Record::samples_consumed>, true},
    {"counted_tokens", &Positive<&Record::counted_tokens>, true},
    {"checkpoint_stall_seconds", &Of<&Record::checkpoint_stall_seconds>},
    {"loss_scale", &Scaled<&Record::loss_scale>},
    {"skipped", &Scaled<&Record::skipped>, true},
    {"skipped_steps", &Scaled<&Record::skipped_steps>, true},
    {"routers.busiest_over_mean", &OfRouters<&Routers::busiest_over_mean>},
    {"routers.dropped_share", &OfRouters<&Routers::dropped_share>},
    {"routers.balance_loss", &OfRouters<&Routers::balance_loss>},
    {"routers.z_loss", &OfRouters<&Routers::z_loss>},
    {"routers.entropy", &OfRouters<&Routers::entropy>},
    {"tiers.HOST.bytes_in", &OfTier<HOST, &Traffic::bytes_in>, true},
    {"tiers.HOST.bytes_out", &OfTier<HOST, &Traffic::bytes_out>, true},
    {"tiers.HOST.seconds", &OfTier<HOST, &Traffic::seconds>},
    {"tiers.HOST.waited_seconds", &OfTier<HOST, &Traffic::waited_seconds>},
    {"tiers.NVME.bytes_in", &OfTier<NVME, &Traffic::bytes_in>, true},
    {"tiers.NVME.bytes_out", &OfTier<NVME, &Traffic::bytes_out>, true},
    {"tiers.NVME.seconds", &OfTier<NVME, &Traffic::seconds>},
    {"tiers.NVME.waited_seconds", &OfTier<NVME, &Traffic::waited_seconds>},
    {"mtp_loss", &Positive<&Record::mtp_loss>},
    {"turn.replica", &OfTurn<&Turn::replica>, true, false},
    {"turn.batch", &OfTurn<&Turn::batch>, true, false},
    {"turn.weights_step", &OfTurn<&Turn::weights_step>, true, false},
};

}  // namespace

absl::Span<const MetricsColumn> MetricsColumns() { return kColumns; }

std::string MetricsNumber(const MetricsColumn& column, double value) {
  if (column.integer) return absl::StrCat(static_cast<int64_t>(value));
  if (std::isnan(value)) return "nan";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return std::string(text, end);
}

}  // namespace troupe
