// In which order does each rank of a pipeline compute? A pipeline schedule
// answers that and nothing else: a pure function from the pipeline's shape to
// one list of compute steps for each rank. Authors think in stages;
// scheduler/passes expands a stage into its units and adds transfers,
// collectives, memory and waits.
//
// The order also says which rank holds what: the ranks in whose lists a stage's
// forward stands hold the stage. Forward, backward-input and backward-weight of
// a stage and micro-batch stand on one rank, each once.
#ifndef TROUPE_SCHEDULER_PIPELINES_COMPUTE_ORDER_H_
#define TROUPE_SCHEDULER_PIPELINES_COMPUTE_ORDER_H_

#include <string>
#include <vector>

namespace troupe {

struct PipelineShape {
  int ranks = 1;           // of one pipeline
  int micro_batches = 1;   // that travel through it in one step
  int virtual_stages = 1;  // stages of each rank
  // Of the schedule's own fields (Pipeline.fields), those that the job sets.
  std::vector<std::string> options = {};
  int stages() const { return ranks * virtual_stages; }
  bool Has(const std::string& option) const;
};

// One piece of computation: a stage on a micro-batch.
struct ComputeStep {
  enum Kind { kForward, kBackwardInput, kBackwardWeight };
  Kind kind = kForward;
  int stage = 0;
  int micro_batch = 0;
  // Of schedules that never drain: how many optimizer steps later than the one
  // that the program is for the micro-batch belongs to. Only forwards have one.
  int ahead = 0;
  // How many optimizer steps older than the newest weights that the rank has
  // when the program begins the weights are that the step uses.
  int weight_version = 0;
  // Of a backward-input: not one pass with the backward-weight behind it. Ranks
  // that wait for the gradient get it before the weight's turn.
  bool split = false;
  bool operator==(const ComputeStep&) const = default;
};

// What each rank computes in one optimizer step, in order.
using ComputeOrder = std::vector<std::vector<ComputeStep>>;

// Whether these two neighbours of a list are one backward pass: input and
// weight of the same stage and micro-batch, not split.
bool OneBackward(const ComputeStep& first, const ComputeStep& second);

// The ranks that hold each stage, ascending: those with a forward of it.
std::vector<std::vector<int>> StageHolders(const ComputeOrder& order,
                                           int stages);

// The largest `ahead` of a rank's steps: programs by which it runs ahead.
int MaxAhead(const std::vector<ComputeStep>& steps);

// How many versions of its weights a rank keeps: 1 + the largest
// weight_version.
int WeightVersions(const std::vector<ComputeStep>& steps);

// Whether a gradient is of older weights than the newest, so that another model
// is trained than by a single rank.
bool DelaysGradients(const ComputeOrder& order);

// "F0m0 I0m0 W0m0": forward, backward-input and backward-weight, each with its
// stage and micro-batch; one line a rank. "B0m0" is one backward pass; "F1m2+1"
// of the next optimizer step; "B1m2@1" with weights one step old.
std::string ComputeOrderText(const ComputeOrder& order);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PIPELINES_COMPUTE_ORDER_H_
