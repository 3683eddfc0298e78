// All candidates of a search by their estimates: the best first, and what was
// ruled out, for which reasons.
#ifndef TROUPE_SCHEDULER_SEARCH_CANDIDATES_H_
#define TROUPE_SCHEDULER_SEARCH_CANDIDATES_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/base/may_go_on.h"
#include "proto/cluster.pb.h"
#include "proto/explanation.pb.h"
#include "proto/job.pb.h"
#include "scheduler/search/estimate.h"
#include "scheduler/search/estimate_errors.h"
#include "scheduler/search/objective.h"
#include "scheduler/search/space.h"

namespace troupe {

// A candidate and its estimate; the best by the objective comes first, then the
// shorter step, then the earlier text.
struct Estimated {
  Candidate candidate;
  Estimate estimate;
  int ranks = 1;
  double value = 0;  // Objective::ValueOf
  std::string key;   // its text
  Family family;     // whose estimates err alike
  bool operator<(const Estimated& other) const;
};

class Candidates {
 public:
  // Borrows all. `error`: that of estimates.
  Candidates(const JobSpec& job, const std::vector<WorkerDescription>& workers,
             double error, const MayGoOn& may_go_on, KnownCosts& known);

  // Estimates those of all numbers of ranks that may win, or of one. `hears`:
  // of each number, before it is estimated, and while it is, also in
  // Reconsider.
  absl::Status EstimateAll(std::function<void(int ranks)> hears);
  absl::Status EstimateRanks(int ranks);
  // Estimates numbers of ranks and divisions that were left out, as slower than
  // estimates that were there, of which some plan may be worth `value` or less:
  // that of the best plan that was simulated, or infinity, if none fits.
  // Whether there were any.
  absl::StatusOr<bool> Reconsider(double value);
  // Of a candidate whose plan does not fit though its bound does: the same with
  // more that is recomputed.
  void EstimateNext(const Estimated& lacking);

  // Takes the best of those that are left, by what `look` makes of each; of
  // equal ones the first. nullopt: it takes none of them.
  bool empty() const { return left_.empty(); }
  // What is likely to lack memory comes last; then by the objective; seconds.
  using Value = std::tuple<bool, double, double>;
  using Look = std::function<absl::optional<Value>(const Estimated& one)>;
  absl::optional<Estimated> Take(const Look& look);
  // Those that are left.
  const std::set<Estimated>& left() const { return left_; }

  // One more that cannot be planned.
  void Refuse(const absl::Status& refused);

  const Objective& objective() const { return objective_; }
  int64_t divisions() const { return divisions_; }
  int64_t estimated() const { return estimated_; }
  int64_t too_large() const { return too_large_; }
  // All that was estimated or bounded, in that order: what does not fit with
  // each amount of recomputation that was tried.
  const std::vector<EstimatedWay>& all() const { return all_; }
  // Of those, the few that lack least memory, least first.
  const std::vector<Estimated>& nearest() const { return nearest_; }
  const Reasons& reasons() const { return reasons_; }
  const absl::Status& first_refusal() const { return refusal_; }

 private:
  using Mode = std::vector<std::string>::const_iterator;
  // All candidates of a division, or one.
  struct Division {
    Candidate candidate;
    int ranks = 1;
    // Of any of its plans, at least.
    double value = 0;
    double seconds = 0;
    bool is_one = false;
  };

  // No plan of `ranks` ranks is worth less.
  double LeastOf(int ranks) const;
  absl::Status EstimateNextNumber();
  absl::Status GoOn(int ranks);
  void EstimatePlansOf(const Division& division);
  // Whether the best estimate is so much better that it is left out for now.
  bool LeaveOut(Division division);
  // Of those, what may be worth so much.
  std::vector<Division> TakeSlower(double value);
  // With the first of the modes from here on that fits.
  void EstimateFrom(Mode mode, Candidate candidate, int ranks,
                    bool may_leave_out);
  void AddTooLarge(const Candidate& candidate, const Estimate& estimate,
                   int ranks);
  void Note(const Estimate& estimate, int ranks);

  const std::vector<WorkerDescription>& workers_;
  const double error_;
  const MayGoOn& may_go_on_;
  Space space_;
  Estimator estimator_;
  const Objective objective_;
  const std::vector<std::string> modes_;  // of recomputation
  std::set<Estimated> left_;
  std::function<void(int ranks)> hears_;
  std::vector<int> numbers_;      // of ranks, not estimated yet: the next last
  std::vector<Division> slower_;  // than estimates: left out
  std::vector<Estimated> nearest_;
  std::vector<EstimatedWay> all_;
  Reasons reasons_;
  absl::Status refusal_;
  int64_t asked_ = 0;
  int64_t divisions_ = 0;
  int64_t estimated_ = 0;
  int64_t too_large_ = 0;
  double best_ = std::numeric_limits<double>::infinity();
  // The least that all ranks take together, of one number of ranks.
  double rank_seconds_ = std::numeric_limits<double>::infinity();
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SEARCH_CANDIDATES_H_
