// Which job gives its workers to others, where jobs wait for each other's.
//
// A job that lost a worker keeps the others while it waits for one in the lost
// one's place. Two such jobs may each hold what the other needs, and a job that
// needs more workers than are left may hold those with which a queued one could
// run. Then a job gives way: what it keeps in memory becomes a checkpoint, its
// workers are free, and it is queued. The rules:
//
// - The oldest job that others can help goes on, and the youngest of the others
//   gives way first. A job gives way to a queued one only if no waiting job can
//   be helped, and only if it would not stand before that one in the queue and
//   hold it back.
//   It would not where the living workers that it can use are too few for it.
// - Only a job gives way that has waited for long enough (a worker that is
//   started again is soon back), and that loses nothing by it.
// - Nobody gives way for nothing: all that may, together with the idle workers,
//   must be enough, of one kind for a queued job. Where the idle ones and those
//   that are soon idle suffice, nobody gives way.
//
// One job at a time: the next is asked for when this one's workers are free.
#ifndef TROUPE_SCHEDULER_CLUSTER_POLICY_WHO_GIVES_WAY_H_
#define TROUPE_SCHEDULER_CLUSTER_POLICY_WHO_GIVES_WAY_H_

#include <set>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "proto/base/ids.h"
#include "proto/plan.pb.h"
#include "scheduler/cluster/choose_recovery.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

// A job that waits for workers in its vacant places.
struct WaitingJob {
  JobId job;                        // a lower number is older
  std::vector<VacantPlace> places;  // all: `lost` is the machine in it so far
  std::vector<VacantPlace> vacant;  // of those
  const Prediction* prediction = nullptr;  // of its plan
  std::vector<const Worker*> holds;        // in its other places
  std::set<std::string> avoids;            // workers that it does not take
  bool has_waited = false;                 // for long enough
  bool loses_nothing = false;              // by giving way
};

// The queued job that is next, and with how many workers it begins.
struct NextInQueue {
  JobId job;
  int ranks = 0;
  std::set<std::string> avoids;  // workers that it does not take
  bool idle_too_small = false;   // it found no plan for the idle workers
};

struct Contest {
  std::vector<WaitingJob> waiting;  // by age, the oldest first
  absl::optional<NextInQueue> next;
  std::vector<const Worker*> idle;   // or soon: their job is being saved
  std::vector<const Worker*> alive;  // idle or not
};

struct GivesWay {
  JobId job;
  JobId to;
};

// Nothing: it would help nobody, or nobody may.
absl::optional<GivesWay> WhoGivesWay(const Contest& contest);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_POLICY_WHO_GIVES_WAY_H_
