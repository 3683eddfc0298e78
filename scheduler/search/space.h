// What a search may choose from: the fields that a job leaves open, and the
// values that the rows of the tables say to try (LayoutRow.tries,
// Pipeline.tried_stages, levels of ZeRO, TriedRecomputeModes). Nothing is
// listed here, so a new row is in the space. What the job says stays as it
// says.
#ifndef TROUPE_SCHEDULER_SEARCH_SPACE_H_
#define TROUPE_SCHEDULER_SEARCH_SPACE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/explanation.pb.h"
#include "proto/job.pb.h"
#include "scheduler/pipelines/pipelines.h"

namespace troupe {

// A choice for all that is open.
struct Candidate {
  ParallelismSpec parallelism;
  int micro_batch_size = 1;
  std::string recompute;  // empty: as the job says
};

// InvalidArgument, beginning with a field's path: wrong whatever is chosen.
// REQUIRES LeavesParallelismOpen (proto/plan/ranks_needed.h).
absl::Status CheckOpenJob(const JobSpec& job);

// Ranks that the job wants at least: the product of the sizes that it says.
int RanksAtLeast(const JobSpec& job);

// With the choice, and nothing open that was chosen.
JobSpec JobOf(const JobSpec& job, const Candidate& candidate);
// The same, and what resolving the job has made of it: of what users said, all
// but the choice stays as they said it.
JobSpec WithChoice(const JobSpec& job, const JobSpec& chosen);

// What is left out, by reason.
using Reasons = std::map<std::string, int64_t>;

class Space {
 public:
  // REQUIRES CheckOpenJob. Borrows both.
  explicit Space(const JobSpec& job,
                 const std::vector<Pipeline>& pipelines = Pipelines());

  // Of more than kFewRanks ranks, where the space would be too large: ranks
  // whose row wants them on one host (RowAxis.on_one_host) are no more than a
  // host has, others that share units are kSharedMax, rows that are tried last
  // are left out, and micro-batches are powers of two.
  void LimitTo(int workers_of_host) { workers_of_host_ = workers_of_host; }
  // Of replicas that differ in speed, an uneven split of the batch is tried,
  // too.
  void TryUnevenSplits() { uneven_ = true; }
  static constexpr int kFewRanks = 16;
  static constexpr int kSharedMax = 16;

  // Numbers of ranks to try of `workers` workers, most first.
  std::vector<int> RankCounts(int workers) const;

  // All ways to divide units, samples and stages over a number of ranks, with
  // each micro-batch: without a schedule or a level of ZeRO, and with as little
  // recomputation as may be. Most replicas first, and small micro-batches
  // before larger ones. Behind them those in which tables and blocks are shared
  // in ways of their own (parallelism.strategies), unless the job says how its
  // units are shared.
  std::vector<Candidate> DivisionsOf(int ranks, Reasons& left_out) const;

  // Of a division: with each schedule, level of ZeRO and split of the batch.
  std::vector<Candidate> CandidatesOf(const Candidate& division) const;
  // How much may be recomputed, least first; an empty text: as the job says.
  std::vector<std::string> RecomputeModesOf() const;

  int units() const { return units_; }
  const JobSpec& job() const { return job_; }

 private:
  std::vector<ParallelismSpec> FixedSharesOf(int ranks, int ranks_in_all,
                                             Reasons& left_out) const;
  std::vector<int> MicroBatchesOf(int replica_batch, int ranks) const;
  bool TriesUnevenSplits() const;
  void AddWithParts(const Candidate& division,
                    std::vector<Candidate>& all) const;
  bool IsWithinLimits(const ParallelismSpec& shares) const;
  void AddSchedules(const Candidate& division,
                    std::vector<Candidate>& all) const;
  void AddSplits(Candidate candidate, std::vector<Candidate>& all) const;

  const JobSpec& job_;
  const std::vector<Pipeline>& pipelines_;
  int units_ = 0;
  int workers_of_host_ = 0;  // 0: no limit
  bool uneven_ = false;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SEARCH_SPACE_H_
