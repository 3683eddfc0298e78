#include "clients/cli/view/step_line.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "clients/cli/view/format.h"
#include "proto/plan/machine_pace.h"

namespace troupe {
namespace {

// "nvme 2.4 GiB 2.31 GB/s, waited 120 ms".
std::string TrafficText(const TierTraffic& traffic) {
  const double bytes =
      static_cast<double>(traffic.bytes_in() + traffic.bytes_out());
  std::string text =
      absl::StrCat(absl::AsciiStrToLower(Tier_Name(traffic.tier())), " ",
                   BytesText(static_cast<int64_t>(bytes)));
  if (traffic.seconds() > 0) {
    absl::StrAppendFormat(&text, " %.2f GB/s",
                          bytes / traffic.seconds() * 1e-9);
  }
  return absl::StrCat(text, ", waited ", SecondsText(traffic.waited_seconds()));
}

// "experts 1.52x, 2.1 % dropped, balance 0.0103, z 0.0021, entropy 1.98".
std::string RoutersText(const RouterRecord& routers) {
  std::string text =
      absl::StrFormat("experts %.2fx", routers.busiest_over_mean());
  if (routers.dropped_share() > 0) {
    absl::StrAppend(&text, ", ", PercentText(routers.dropped_share()),
                    " dropped");
  }
  if (routers.balance_loss() > 0) {
    absl::StrAppend(&text, ", balance ", NumberText(routers.balance_loss(), 4));
  }
  if (routers.z_loss() > 0) {
    absl::StrAppend(&text, ", z ", NumberText(routers.z_loss(), 4));
  }
  return absl::StrCat(text, ", entropy ", NumberText(routers.entropy(), 2));
}

struct Field {
  std::string text;
  int rank;  // 0 is the last to be dropped
};

// In the order in which they are shown.
std::vector<Field> Fields(const StepRecord& record,
                          const StepProgress& progress) {
  std::vector<Field> fields;
  fields.push_back(
      {absl::StrCat("step ", record.step(), "/", progress.steps_total), 0});
  fields.push_back({"loss " + NumberText(record.loss(), 4), 1});
  if (record.mtp_loss() > 0) {
    fields.push_back({"mtp " + NumberText(record.mtp_loss(), 4), 11});
  }
  if (record.has_validation_loss()) {
    fields.push_back({"val " + NumberText(record.validation_loss(), 4), 3});
  }
  if (record.grad_norm() != 0 || record.learning_rate() != 0) {
    fields.push_back({"grad_norm " + NumberText(record.grad_norm(), 2), 8});
    fields.push_back({absl::StrFormat("lr %.1e", record.learning_rate()), 7});
  }
  if (record.loss_scale() > 0) {
    const std::string skipped =
        record.skipped() ? ", skipped"
        : record.skipped_steps() > 0
            ? absl::StrCat(", ", record.skipped_steps(), " skipped")
            : "";
    fields.push_back(
        {absl::StrFormat("scale %g%s", record.loss_scale(), skipped), 11});
  }
  if (record.has_routers()) {
    fields.push_back({RoutersText(record.routers()), 11});
  }
  fields.push_back({CountText(record.tokens_per_second()) + " tok/s", 4});
  fields.push_back({"MFU " + PercentText(record.mfu()), 6});
  fields.push_back({"mem " + BytesText(record.memory_bytes()), 9});
  if (record.checkpoint_stall_seconds() > 0) {
    fields.push_back({absl::StrFormat("checkpoint %.2f s",
                                      record.checkpoint_stall_seconds()),
                      10});
  }
  for (const TierTraffic& tier : record.tiers()) {
    fields.push_back({TrafficText(tier), 11});
  }
  if (record.has_machine() && IsWorthSaying(record.machine())) {
    fields.push_back({"machine " + ShortPaceText(record.machine()), 5});
  }
  if (progress.eta_seconds >= 0) {
    fields.push_back({"ETA " + ClockText(progress.eta_seconds), 2});
  }
  return fields;
}

std::string Joined(const std::vector<Field>& fields) {
  return absl::StrJoin(fields, "  ", [](std::string* out, const Field& field) {
    out->append(field.text);
  });
}

std::string ShareBar(double share, int width) {
  const int full = std::clamp<int>(share * width, 0, width);
  return absl::StrCat("[", std::string(full, '#'),
                      std::string(width - full, '-'), "] ");
}

}  // namespace

std::string StepLine(const StepRecord& record, const StepProgress& progress) {
  return Joined(Fields(record, progress));
}

std::string ProgressLine(const StepRecord& record, const StepProgress& progress,
                         int width) {
  constexpr int kBarMin = 10;
  constexpr int kBarMax = 30;
  constexpr int kBarFrame = 3;  // brackets and a blank
  std::vector<Field> fields = Fields(record, progress);
  const auto fits = [&](int bar) {
    return TextWidth(Joined(fields)) + bar <= width;
  };
  const bool has_bar = width >= 40;
  while (fields.size() > 1 && !fits(has_bar ? kBarMin + kBarFrame : 0)) {
    fields.erase(std::max_element(
        fields.begin(), fields.end(),
        [](const Field& a, const Field& b) { return a.rank < b.rank; }));
  }
  const std::string text = Joined(fields);
  if (!has_bar) return text.substr(0, std::max(0, width));
  // In fives, so that it does not jump with every digit.
  const int room = (width - TextWidth(text) - kBarFrame) / 5 * 5;
  const double share = progress.steps_total == 0
                           ? 0
                           : double(record.step()) / progress.steps_total;
  return absl::StrCat(ShareBar(share, std::clamp(room, 0, kBarMax)), text)
      .substr(0, width);
}

void StepClock::Add(const StepRecord& record) {
  constexpr double kNewMin = 0.1;  // weight of the newest step
  step_ = record.step();
  ++steps_seen_;
  // The first step warms everything up, so the second one replaces it.
  const double weight =
      std::max(kNewMin, 1.0 / std::max<int64_t>(1, steps_seen_ - 1));
  step_seconds_ = (1 - weight) * step_seconds_ + weight * record.step_seconds();
}

double StepClock::EtaSeconds(int64_t steps_total) const {
  if (steps_seen_ == 0) return -1;
  return step_seconds_ * std::max<int64_t>(0, steps_total - step_);
}

}  // namespace troupe
