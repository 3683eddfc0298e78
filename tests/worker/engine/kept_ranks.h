// Two ranks that have ended, with what each keeps in memory for a next attempt,
// and the requests that make a checkpoint of it.
#ifndef TROUPE_TESTS_WORKER_ENGINE_KEPT_RANKS_H_
#define TROUPE_TESTS_WORKER_ENGINE_KEPT_RANKS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "proto/worker.pb.h"
#include "storage/engine/engine.h"
#include "tests/worker/rank/small_rank.h"
#include "worker/engine/train_loop.h"
#include "worker/rank/disk_log.h"
#include "worker/rank/state_copies.h"

namespace troupe {

class KeptRanks {
 public:
  static constexpr int64_t kStep = 6;
  static constexpr int64_t kSamples = 48;

  // Of the small job with this ZeRO, whose checkpoints, one of them, are in the
  // directory.
  KeptRanks(const std::string& directory, int zero);
  // Of any job whose checkpoints are in the directory.
  KeptRanks(const std::string& directory, JobSpec job);

  RankResources Resources(int rank);
  KeptMemory& kept(int rank) { return kept_[rank]; }
  SmallRank& rank(int rank) { return *ranks_[rank]; }
  const Plan& plan(int rank) const { return *ranks_[rank]->state().plan; }
  IoEngine& io() { return *io_; }
  const Clock& clock() const { return clock_; }
  DiskLog& disk() { return disk_; }

  // Without copies; of kStep it has some.
  static SaveCopies Request(int64_t step = kStep);
  // The state of that rank, from its own memory or from its peer's.
  CopyToSave CopyOf(int rank, bool peer) const;

  // Of the rank that has the unit, as the copies have it: it tells its place in
  // the model.
  static float Moment(int unit, int moment, int64_t element);
  static constexpr int kMoments = 2;  // of the small job

 private:
  static void Train(SmallRank& rank);
  static KeptMemory Kept(SmallRank& rank);

  const RealClock clock_;
  DiskLog disk_{clock_};
  const std::unique_ptr<IoEngine> io_;
  std::vector<std::unique_ptr<SmallRank>> ranks_;
  std::vector<KeptMemory> kept_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_ENGINE_KEPT_RANKS_H_
