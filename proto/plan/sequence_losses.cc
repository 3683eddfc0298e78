#include "proto/plan/sequence_losses.h"

#include "absl/strings/str_cat.h"
#include "proto/plan/replica_share.h"

namespace troupe {
namespace {

// Places that the micro-batches of all replicas have in a step.
int64_t PlacesOf(const Plan& plan) {
  const ReplicaShare last =
      ShareOf(plan.derived(), Program::VALIDATE, ReplicaCount(plan.mesh()) - 1);
  return (last.first + last.count) * MicroBatchSequences(plan);
}

}  // namespace

int64_t StepSequences(const JobSpec& job) {
  return job.sequence_losses() ? job.training().global_batch_size() : 0;
}

absl::Status CheckSequenceLosses(const Plan& plan) {
  const int64_t sequences = StepSequences(plan.job());
  for (int t = 0; t < plan.tables_size(); ++t) {
    for (int i = 0; i < plan.tables(t).ops_size(); ++i) {
      const Op& op = plan.tables(t).ops(i);
      const bool is_loss =
          op.kind() == Op::CROSS_ENTROPY && op.added_weight() == 0;
      const int64_t wanted = is_loss ? sequences : 0;
      if (op.step_sequences() == wanted) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("table ", t, ": op ", i, " ", Op::Kind_Name(op.kind()),
                       " has the losses of ", op.step_sequences(),
                       " sequences of a step by themselves, not of ", wanted));
    }
  }
  if (sequences == 0 || PlacesOf(plan) == sequences) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("micro-batches have places for ", PlacesOf(plan),
                   " sequences, and the losses of a step are of ", sequences));
}

}  // namespace troupe
