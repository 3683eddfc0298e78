#include "scheduler/layouts/replicas.h"

#include "scheduler/layouts/axes.h"
#include "scheduler/layouts/layouts.h"

namespace troupe {

int RanksOfReplica(const ParallelismSpec& parallelism) {
  int ranks = 1;
  for (const RankField& field : RankFields()) {
    if (!field.of_data || RanksOf(parallelism, field.name) < 2) continue;
    const LayoutRow& row = RowOf(parallelism, field.name);
    for (const SharedAxis& axis : AxesOfRow(row, parallelism)) {
      ranks *= axis.size;
    }
  }
  return ranks;
}

const RankField* FieldOfReplica(const ParallelismSpec& parallelism) {
  if (RanksOfReplica(parallelism) == 1) return nullptr;
  for (const RankField& field : RankFields()) {
    if (field.of_data && RanksOf(parallelism, field.name) > 1) return &field;
  }
  return nullptr;
}

int ReplicasOf(const ParallelismSpec& parallelism) {
  const int data = parallelism.has_data() ? parallelism.data() : 1;
  return data / RanksOfReplica(parallelism);
}

bool TakesTurns(const JobSpec& job) {
  return job.parallelism().servers() > 0 &&
         (job.servers().mode() == kServersAsync ||
          job.servers().mode() == kServersBounded);
}

int ReplicasOfStep(const JobSpec& job) {
  return TakesTurns(job) ? 1 : ReplicasOf(job.parallelism());
}

int DataOfStep(const JobSpec& job) {
  return TakesTurns(job) ? 1 : job.parallelism().data();
}

int64_t MicroBatchSequences(const JobSpec& job) {
  return int64_t{job.training().micro_batch_size()} *
         RanksOfReplica(job.parallelism());
}

}  // namespace troupe
