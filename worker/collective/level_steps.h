// The communicators of a group that has levels (levels.h), and what executes
// steps on those of the levels, finds out which member is to blame for a
// failure, and leaves no step waiting for ever.
//
// Failures. A rank waits for the members of one level, which may wait for
// others on another: none of them need know which is to blame. So the watch
// looks whether the flat communicator has seen a failure, and ends the wait;
// and a rank of which a step failed, for whatever reason, asks all members to
// meet on the flat one, from the lane that failed, while its other lanes wait
// as members of other levels do. A member that does not come is to blame, or
// one that died, as the flat one says. Where all come, the step's own error
// stays, unless it was out of time: then nobody is to blame, as the member that
// it misses may have waited for another. Then all lanes end. The steps end a
// little before the deadline to leave time for that.
#ifndef TROUPE_WORKER_COLLECTIVE_LEVEL_STEPS_H_
#define TROUPE_WORKER_COLLECTIVE_LEVEL_STEPS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proto/plan.pb.h"
#include "worker/collective/communicator.h"
#include "worker/collective/level_lanes.h"
#include "worker/collective/watch.h"

namespace troupe {

struct LevelParts {
  std::unique_ptr<Communicator> flat;
  // By Group.levels: that of this rank, whose members are in the order of their
  // places; null where no way uses the level.
  std::vector<std::unique_ptr<Communicator>> levels;
};

// Of a piece, on the communicator of the step's level.
struct PieceStep {
  int64_t piece = 0;
  const Group::Step& step;
  int index = 0;  // of the step
  Communicator& level;
  const CommOptions options;
};

// What is asked of the operation whose steps they are.
struct StepsCall {
  std::string name;
  absl::Time start;
  absl::Time deadline;
  bool meet = true;
};

class LevelSteps final : private Watched {
 public:
  using Execute = std::function<absl::Status(const PieceStep& step)>;

  // Threads for the levels beyond the first of ways that overlap, until it
  // goes.
  LevelSteps(const Group& group, LevelParts parts,
             std::shared_ptr<Watch> watch);
  ~LevelSteps();

  Communicator& flat() { return *flat_; }
  uint64_t sent_bytes() const;

  // Executes all steps of all pieces, those of one level after one another.
  absl::Status Run(const Group::Way& way, const LaneOrder& order,
                   const StepsCall& call, const Execute& execute)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Any thread.
  void Abort(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Time Look() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Begin(int level, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Blamed(const absl::Status& failure, const StepsCall& call)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AllCameLate(const StepsCall& call) const;
  // The communicators of the steps in progress.
  std::vector<Communicator*> Running() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::unique_ptr<Communicator> flat_;
  const std::vector<std::unique_ptr<Communicator>> levels_;
  const std::shared_ptr<Watch> watch_;
  absl::Mutex mutex_;
  // By level: the deadline of the step in progress.
  std::vector<absl::optional<absl::Time>> running_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // for good: some step failed
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  LevelLanes lanes_;  // the last member: what it runs uses the others
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_LEVEL_STEPS_H_
