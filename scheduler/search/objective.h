// What a search looks for (JobSpec.objective), as a number: least is best.
#ifndef TROUPE_SCHEDULER_SEARCH_OBJECTIVE_H_
#define TROUPE_SCHEDULER_SEARCH_OBJECTIVE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"

namespace troupe {

class Objective {
 public:
  // REQUIRES a name that there is.
  Objective(const JobSpec& job, const std::vector<WorkerDescription>& workers);

  // InvalidArgument "objective: ...": prices are wanted, and a worker has none.
  absl::Status Check() const;

  const std::string& name() const { return name_; }
  bool fewest() const { return name_ == "fewest_workers"; }
  bool has_prices() const { return prices_.back() > 0; }
  // Of a step on the first `ranks` workers.
  double ValueOf(double seconds, int ranks) const;
  // The same of a plan. One with strategies of its own for some units is harder
  // to understand: it counts as if it took this share longer.
  static constexpr double kStrategiesWorth = 0.005;
  double ValueOf(const ParallelismSpec& parallelism, double seconds,
                 int ranks) const;
  double DollarsPerSecond(int ranks) const;

 private:
  const std::string name_;
  std::vector<double> prices_;  // by number of workers, an hour
  std::string without_price_;   // the first worker without one
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SEARCH_OBJECTIVE_H_
