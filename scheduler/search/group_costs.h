// What collectives cost that are no unit's own: of gradients and parameters
// over the ranks that hold a unit alike, and what goes from stage to stage.
// They are priced by the simulator's cost model, on a mesh of the ranks of one
// group.
#ifndef TROUPE_SCHEDULER_SEARCH_GROUP_COSTS_H_
#define TROUPE_SCHEDULER_SEARCH_GROUP_COSTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"
#include "scheduler/simulate/cost_model.h"

namespace troupe {

class GroupCosts {
 public:
  // Borrows the workers, those of all ranks.
  explicit GroupCosts(const std::vector<WorkerDescription>& workers)
      : workers_(workers) {}

  // Ranks 0, stride, 2 stride, ..., as many as `count`, while those between do
  // the same in groups of their own.
  struct Group {
    int count = 1;
    int stride = 1;
    auto operator<=>(const Group&) const = default;
  };
  struct Move {
    Collective collective = ALL_REDUCE;
    int64_t bytes = 0;
    bool narrow = false;  // numbers of two bytes
    auto operator<=>(const Move&) const = default;
  };
  // Seconds. REQUIRES workers for all of the group's ranks.
  double SecondsOf(const Group& group, const Move& move);

 private:
  struct Priced {
    Plan plan;
    std::unique_ptr<CostModel> costs;
    // Of each row of scheduler/collectives that such a group may take: its
    // plan, where all exchanges go over the row's levels. It has the group once
    // for each number of pieces that the row leaves to choose.
    struct OverLevels {
      Plan plan;
      std::unique_ptr<CostModel> costs;
    };
    std::vector<std::unique_ptr<OverLevels>> rows;
    // Ranks of the first host that send to others at the same time, over what
    // its adapters carry: so much slower than alone a byte may be.
    double seconds_per_byte = 0;
    std::map<Move, double> known;  // seconds
  };
  Priced& PricedOf(const Group& group);
  static void AddRows(const std::vector<WorkerDescription>& members,
                      Priced& priced);
  static double LeastSeconds(const Priced& priced, int ranks, const Move& move);

  const std::vector<WorkerDescription>& workers_;
  std::map<Group, Priced> priced_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SEARCH_GROUP_COSTS_H_
