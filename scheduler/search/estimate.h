// What a candidate's step takes and how much memory it needs at least, in
// closed form: no plan is built. The terms are what one unit of each kind costs
// (unit_costs.h), computed once for each way to share units and micro-batch;
// what is summed over replicas (group_costs.h); and the order of the pipeline's
// schedule (order_times.h). Stages are cut as the planner cuts them.
//
//   step = the order's time, with each stage as long as its units, or as the
//          gathers and scatters of ZeRO that go on beside it where these take
//          longer
//        + what of the gradients' sums the last backward passes do not hide
//        + the sum of the scalars + the optimizer's update
//
// Left out: validation, checkpoints, copies for recovery, transfers that share
// links with exchanges. So an estimate may be too short: then its candidate is
// simulated in vain. It is too long by kEstimateError at most, or the best
// could be missed; `tests/scheduler/search` holds it to that. Bytes are a
// bound: no plan of the candidate needs less.
#ifndef TROUPE_SCHEDULER_SEARCH_ESTIMATE_H_
#define TROUPE_SCHEDULER_SEARCH_ESTIMATE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "scheduler/pipelines/compute_order.h"
#include "scheduler/planner/partition.h"
#include "scheduler/planner/short_steps.h"
#include "scheduler/planner/split_by_speed.h"
#include "scheduler/search/group_costs.h"
#include "scheduler/search/order_times.h"
#include "scheduler/search/space.h"
#include "scheduler/search/unit_costs.h"

namespace troupe {

// No step is shorter than estimate / (1 + e).
inline constexpr double kEstimateError = 0.6;

struct Estimate {
  double seconds = 0;
  int64_t bytes = 0;  // of the device, on the rank that is fullest
  int64_t room = 0;   // that this rank has
  int64_t lacks = 0;  // of these, beyond that; 0: it fits
  // It lacks room even for what rests and is kept: less is kept with more
  // recomputation only, which may need more while passes run.
  bool lacks_for_kept = false;
  StepLength length;  // of its plan; of a bound: the shortest
  bool fits() const { return lacks == 0; }
};

// What units cost, as it becomes known. It depends on the model, the rates and
// the links, but neither on the batch nor on how much memory there is: searches
// that differ in these only may share it.
struct KnownCosts {
  std::map<int64_t, ModelKinds> kinds;  // by sequences of a micro-batch
  std::map<std::string, absl::StatusOr<UnitCosts>> units;
};

class Estimator {
 public:
  // Borrows all. workers[r] fills rank r; there may be more than a candidate
  // has ranks.
  Estimator(const JobSpec& job, const std::vector<WorkerDescription>& workers,
            KnownCosts& known);

  // Of all candidates of a division (space.h): no step is shorter, and no
  // rank's memory smaller, with any schedule, level of ZeRO or recomputation.
  // InvalidArgument: it cannot be planned.
  absl::StatusOr<Estimate> BoundOf(const Candidate& division);

  // No step of the candidate is shorter: its units alone, and what its
  // schedule's rank that begins last waits for the first micro-batch, and
  // behind the last one. InvalidArgument: its schedule is not for its numbers.
  absl::StatusOr<double> LeastSecondsOf(const Candidate& candidate);

  // Of what does not fit, the seconds are a bound, too. InvalidArgument: it
  // cannot be planned.
  absl::StatusOr<Estimate> Of(const Candidate& candidate);

  // Whether some workers are so much faster that replicas may differ.
  bool AreUnlike() const { return unlike_; }

 private:
  // Of a number of ranks in a number of stages: at each place those of each
  // speed, and how many they are, and the bytes of its smallest device.
  struct Places {
    std::vector<std::map<RankSpeed, int>> speeds;
    std::vector<int64_t> room;
    bool alike = true;  // all have one speed
    void Add(absl::Span<const RankSpeed> of_ranks, int64_t least_room);
  };
  // Of workers that compute alike: which of them is priced, and how much faster
  // than that one this one is.
  struct Machine {
    int number = 0;
    double faster = 1;
  };
  // Replicas on places that are as fast, with as many micro-batches.
  struct Replicas {
    const Places* places = nullptr;
    int micro_batches = 1;
  };
  // A candidate's numbers.
  struct Shape {
    int ranks = 1;
    int pipeline = 1;
    int micro_batches = 1;  // of a replica, in a step
    int replicas = 1;
    // Ranks that hold a unit alike, and from one of them to the next.
    int DealtOf(const UnitCost& unit) const { return replicas * unit.alike; }
    int StrideOf(const UnitCost& unit) const {
      return ranks / pipeline / DealtOf(unit);
    }
    // Of these, those over which ZeRO deals it: this number, or all.
    int slices = 1;
    static constexpr int kAll = 0;
    int SlicesOf(const UnitCost& unit) const {
      return slices == kAll ? DealtOf(unit) : slices;
    }
  };
  struct Stages {
    std::vector<std::vector<int>> units;
    std::vector<std::vector<int>> holders;
  };
  // What stages take on the places that hold them.
  struct Timed {
    std::vector<StageSeconds> stages;
    double handover = 0;
    // Of the stage that gathers longest, behind what its first forward hides.
    double first_gather = 0;
  };
  struct StageBytes;

  absl::StatusOr<const ModelKinds*> KindsOfMicroBatch(const JobSpec& way);
  absl::StatusOr<const UnitCosts*> CostsOf(const Candidate& candidate);
  // Of strategies, without the exchanges between units that are shared
  // otherwise: only these take a model of their own.
  absl::StatusOr<const UnitCosts*> LeastCostsOf(const Candidate& candidate);
  // Of strategies. `is_whole`: with these exchanges.
  absl::StatusOr<UnitCosts> MixedCosts(const Candidate& candidate,
                                       bool is_whole);
  absl::StatusOr<UnitCosts> CostsOfUnits(const Candidate& candidate);
  absl::StatusOr<const UnitCosts*> KnownOr(
      const std::string& key,
      const std::function<absl::StatusOr<UnitCosts>()>& costs);
  // The kinds of machines that there are, the first worker's first; where there
  // are many, alike is what is about as fast.
  void FindMachines();
  const std::vector<RankSpeed>& SpeedsOf(int ranks);
  const Places& PlacesOf(const Shape& shape);
  int64_t RoomOf(int first_rank, int count) const;
  // Of each replica by itself.
  const std::vector<Places>& PlacesOfReplicas(const Shape& shape, int replicas);
  absl::StatusOr<std::vector<Replicas>> ReplicasOf(const JobSpec& way,
                                                   const Shape& shape,
                                                   const UnitCosts& costs,
                                                   const Stages& stages);
  absl::StatusOr<ReplicaBatch> BatchOf(const ParallelismSpec& way);
  // Of the order by which the planner cuts stages: before it splits a batch by
  // speed.
  absl::StatusOr<int> MicroBatchesToCut(const JobSpec& way, const Shape& shape);
  // What the slowest rank computes for a micro-batch.
  static double SecondsOfSlowest(const Places& places, const UnitCosts& costs,
                                 const Stages& stages);
  // Levels of ZeRO and amounts of recomputation come one after the other, and
  // most change little: the last answers are kept.
  struct KnownOrder {
    ComputeOrder order;
    std::vector<std::vector<int>> holders;  // of stages
    // Stages before the first one of the rank that begins last; 0 where steps
    // overlap, so that no rank waits for the first.
    int stages_before = 0;
    bool ranks_hold_several = false;  // stages
    std::vector<StageSeconds> stages;
    double handover = 0;
    OrderTimes times;
    std::vector<KeptBytes> kept;
    std::vector<MostBytes> most_kept;
  };
  absl::StatusOr<KnownOrder*> OrderOf(const ParallelismSpec& way,
                                      int micro_batches);
  static const OrderTimes& TimesOf(const Timed& timed, KnownOrder& order);
  static absl::StatusOr<Stages> CutStages(const UnitCosts& costs,
                                          const StageLayout& layout,
                                          const ParallelismSpec& way);
  // By what the planner cuts them, but memory.
  static StageLayout LayoutOf(const ParallelismSpec& way,
                              const UnitCosts& costs, const KnownOrder& order,
                              const Places& places, int micro_batches);
  absl::StatusOr<const Stages*> StagesOf(const ParallelismSpec& way,
                                         const UnitCosts& costs,
                                         const Places& places,
                                         const StageLayout& layout);
  // Where places have unlike memory, the planner moves units to those that have
  // more (scheduler/planner/fit_stages.h).
  static bool MayMoveUnits(const ParallelismSpec& way, const Places& places);
  // As it does. Sets the memory of `estimate`, which `needs` does not fit.
  absl::StatusOr<Stages> FitStages(const ParallelismSpec& way,
                                   const Shape& shape, const UnitCosts& costs,
                                   const Places& places, KnownOrder& order,
                                   StageLayout layout, Stages stages,
                                   std::vector<int64_t> needs,
                                   Estimate& estimate) const;
  Shape ShapeOf(const ParallelismSpec& way, int micro_batch_size) const;
  // By what rests on an average place, and what one micro-batch keeps there.
  Estimate LeastOf(const Candidate& candidate, const UnitCosts& costs);
  static StepLength LengthOf(const Shape& shape, const UnitCosts& costs);
  double LeastSeconds(const Shape& shape, const UnitCosts& costs);
  absl::StatusOr<OrderTimes> RunOrder(const ParallelismSpec& way,
                                      const Shape& shape, const Timed& timed);
  Timed TimeStages(const JobSpec& way, const Shape& shape,
                   const UnitCosts& costs, const Stages& stages,
                   const Places& places);
  double SecondsBehind(const JobSpec& way, const Shape& shape,
                       const UnitCosts& costs, const Stages& stages,
                       const Timed& timed, const OrderTimes& times);
  static StageBytes BytesOf(const ParallelismSpec& way, const Shape& shape,
                            const UnitCosts& costs, const Stages& stages,
                            size_t stage);
  // What each place needs.
  std::vector<int64_t> SetMemory(const ParallelismSpec& way, const Shape& shape,
                                 const UnitCosts& costs, const Stages& stages,
                                 const Places& places, KnownOrder& order,
                                 Estimate& estimate) const;

  // Micro-batches of the longer one of the orders of which a still longer one
  // is told, in pipelines.
  static constexpr int kMore = 4;

  const JobSpec& job_;
  const std::vector<WorkerDescription>& workers_;
  KnownCosts& known_;
  GroupCosts groups_;
  bool unlike_ = false;
  bool narrow_gradients_ = false;
  bool narrow_parameters_ = false;
  std::vector<const WorkerDescription*> machines_;  // behind the first
  std::vector<Machine> machine_of_;                 // by worker
  std::map<int, std::vector<RankSpeed>> speeds_;    // by ranks, of each
  std::map<std::pair<int, int>, Places> places_;
  std::map<std::tuple<int, int, int>, std::vector<Places>> by_replica_;
  std::map<std::string, absl::StatusOr<ReplicaBatch>> batches_;
  std::map<std::string, absl::StatusOr<KnownOrder>> orders_;
  std::map<std::string, absl::StatusOr<Stages>> stages_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SEARCH_ESTIMATE_H_
