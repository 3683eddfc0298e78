#include "scheduler/search/objective.h"

#include "absl/strings/str_cat.h"
#include "proto/plan/fields.h"

namespace troupe {
namespace {

constexpr char kTime[] = "time";
constexpr char kTokensPerDollar[] = "tokens_per_dollar";
constexpr double kSecondsPerHour = 3600;

}  // namespace

Objective::Objective(const JobSpec& job,
                     const std::vector<WorkerDescription>& workers)
    : name_(job.has_objective() ? job.objective() : kTime), prices_{0} {
  for (const WorkerDescription& worker : workers) {
    prices_.push_back(prices_.back() + worker.dollars_per_hour());
    if (!(worker.dollars_per_hour() > 0) && without_price_.empty()) {
      without_price_ = worker.name();
    }
  }
}

absl::Status Objective::Check() const {
  if (name_ != kTokensPerDollar || without_price_.empty()) {
    return absl::OkStatus();
  }
  return FieldError(
      "objective",
      absl::StrCat(kTokensPerDollar,
                   " needs what workers cost, and nobody says that of ",
                   without_price_,
                   "; give dollars_per_hour of its device in a cluster file, "
                   "or use time"));
}

double Objective::ValueOf(double seconds, int ranks) const {
  if (fewest()) return ranks;
  return name_ == kTime ? seconds : seconds * prices_[ranks];
}

double Objective::DollarsPerSecond(int ranks) const {
  return prices_[ranks] / kSecondsPerHour;
}

double Objective::ValueOf(const ParallelismSpec& parallelism, double seconds,
                          int ranks) const {
  const bool plain = parallelism.strategies().empty();
  return ValueOf(plain ? seconds : seconds * (1 + kStrategiesWorth), ranks);
}

}  // namespace troupe
