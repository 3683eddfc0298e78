// What one unit of each kind costs where a stage's ranks share it in a given
// way: the terms of which an estimate is made (estimate.h). They come from the
// planner's own passes and the simulator's cost model, on a model that has one
// unit of each kind, one stage, one replica and one micro-batch: so a new op or
// layout is priced without a line here, and by no second formula.
#ifndef TROUPE_SCHEDULER_SEARCH_UNIT_COSTS_H_
#define TROUPE_SCHEDULER_SEARCH_UNIT_COSTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "scheduler/planner/start_draft.h"
#include "scheduler/search/space.h"

namespace troupe {

// How fast a rank computes: on which of the machines that are priced, the first
// worker's before others, and with what share of its processor.
struct RankSpeed {
  int machine = 0;
  double share = 1;
  auto operator<=>(const RankSpeed&) const = default;
};

// Of one micro-batch, on one rank that computes with a processor of its own.
struct PassSeconds {
  double all = 0;      // exchanges that nothing hides among them
  double compute = 0;  // of these, on the processor
  // The same of machines behind the first one.
  std::vector<double> compute_of_others;

  double ComputeOn(int machine) const {
    return machine == 0 ? compute : compute_of_others[machine - 1];
  }
  double With(const RankSpeed& speed) const {
    if (speed.machine == 0) return all + compute * (1 / speed.share - 1);
    return all - compute + ComputeOn(speed.machine) / speed.share;
  }
  // Adds `times` times what `other` takes.
  void Add(const PassSeconds& other, double times = 1);
};

struct UnitCost {
  PassSeconds forward;
  PassSeconds backward;  // recomputation, input and weight as one pass
  PassSeconds input;     // recomputation and input alone
  PassSeconds weight;
  PassSeconds step;  // the optimizer's, of all that is trained
  PassSeconds norm;  // of all gradients
  // At rest on the device, where nothing is dealt over replicas.
  int64_t parameter_bytes = 0;
  int64_t gradient_bytes = 0;
  int64_t state_bytes = 0;      // moments and master weights
  // By number of pieces that ranks over which ZeRO deals have of a part, as of
  // experts, the share of the unit in such parts.
  std::map<int, double> shares_in_pieces;
  int64_t kept_bytes = 0;       // of each micro-batch in flight
  int64_t kept_for_weight = 0;  // of these, until its weights' gradient
  int64_t deferred_bytes = 0;   // besides, from its input's gradient to that
  int64_t output_bytes = 0;     // what goes to the next stage
  bool output_is_for_weight = false;
  int64_t pass_bytes = 0;       // besides, while its backward passes run
  int64_t workspace_bytes = 0;  // of all units of a rank the most
  int64_t instructions = 0;     // of its passes on a micro-batch
  int alike = 1;                // ranks of a replica's stage that hold it alike
  Unit nominal;  // its kind, and its work for the balance of stages

  // Where ZeRO deals over `neighbours`: what rests of it over what a replica
  // has, and the share of it that is dealt at all.
  double ShareAtRest(int neighbours) const;
  double ShareDealt(int neighbours) const;
};

// Of a strategy, a micro-batch and what is recomputed.
struct UnitCosts {
  std::vector<UnitCost> kinds;
  std::vector<int> kind_of_unit;  // of the job's model
  int64_t scratch_bytes = 0;      // that kernels of a GPU take beside slots
  int tied_to = -1;               // the kind whose table another one uses
  int number = 0;                 // of the search: tells costs apart
};

// Of a model whose units are shared in ways of their own
// (parallelism.strategies): `by_strategy` has the costs of each way by itself,
// the job's own first, and of each unit that of its strategy counts. `mixed`,
// if it is there, is that of a model with one unit of each kind, as the
// strategies say: so the first unit of each kind also has the exchanges between
// units that are shared otherwise. `on_one_rank`: stages are cut by that.
// REQUIRES that all are of one micro-batch.
UnitCosts MixCosts(const ParallelismSpec& parallelism,
                   const std::vector<const UnitCosts*>& by_strategy,
                   const UnitCosts& on_one_rank, const UnitCosts* mixed);

// KindsOfModel of a job, which a search keeps for all that have its
// micro-batch.
using FindKinds =
    std::function<absl::StatusOr<const ModelKinds*>(const JobSpec& resolved)>;

// Of the candidate's way to share units, its micro-batch and what it
// recomputes. REQUIRES workers for all of its ranks. `machines`: workers of
// which what they compute is priced, too, in place of the first ones.
// InvalidArgument, as ResolveJob and StartDraft: sizes do not divide.
absl::StatusOr<UnitCosts> CostUnits(
    const JobSpec& job, const Candidate& candidate,
    const std::vector<WorkerDescription>& workers,
    const std::vector<const WorkerDescription*>& machines,
    const FindKinds& kinds_of);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SEARCH_UNIT_COSTS_H_
