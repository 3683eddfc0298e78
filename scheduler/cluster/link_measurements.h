// Which links between hosts are measured, and when. Two hosts at a time: as
// many workers of each, eight at most, say how fast they talk (MeasureLinks),
// first one pair, then all together. Each host is measured with two others at
// most, so that the time for it grows with the hosts, not with their square,
// and of what it reached with them the best counts: the slower of two adapters
// says nothing of the faster one.
//
// Only where nobody on either host has anything to do, for as short a time as
// limits say, and no job waits for it: a worker that is given work stops
// measuring, and so do the others. Where it fails, or somebody does not answer,
// the link is taken for what is assumed (scheduler/simulate/links.h), says why,
// and is measured again after a while.
//
// What was measured is kept by host, in the store too, and said of each of its
// workers (WorkerDescription.network and nics), whenever it registers. What
// each pair of hosts reached is kept besides, for people.
#ifndef TROUPE_SCHEDULER_CLUSTER_LINK_MEASUREMENTS_H_
#define TROUPE_SCHEDULER_CLUSTER_LINK_MEASUREMENTS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/cluster.pb.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/rendezvous.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

class LinkMeasurements {
 public:
  // Borrows the table.
  LinkMeasurements(const Limits& limits, WorkerTable& workers)
      : limits_(limits), workers_(workers) {}

  // What was measured before.
  void Restore(std::vector<HostTopology> hosts, absl::Time now);

  // Of each host with which others it was measured, the newest ones, and what
  // these pairs reached.
  Topology Pairs() const;

  // Says of it what is known of its host's links. Nothing else has said that.
  void Registered(Worker& worker);

  // LinksMeasured, or StoreSet and StoreGet of a measurement.
  void HandleMessage(WorkerId from, const WorkerMessage& message,
                     absl::Time now, Actions& actions);

  // Stops those beside which work has begun, and ends those of which a worker
  // is gone.
  void Review(absl::Time now, Actions& actions);

  // Ends those that are late; begins others, where that is wanted now.
  void Tick(bool may_begin, absl::Time now, Actions& actions);

  // Time in which nobody could be heard.
  void Forgive(absl::Duration time, absl::Time now);

  int under_way() const { return static_cast<int>(measurements_.size()); }

 private:
  struct Member {
    WorkerId worker;
    std::string name;
    bool answered = false;
    double together = 0;  // bytes a second
  };
  struct Measurement {
    explicit Measurement(const Limits& limits) : rendezvous(limits) {}

    std::string hosts[2];
    std::vector<Member> members;  // by rank: half of them on each host
    absl::Time began;
    LinkRate alone;
    std::string error;  // the first
    Rendezvous rendezvous;
  };
  // What is known of a host.
  struct Host {
    HostTopology links;              // empty: nothing was measured
    std::set<std::string> partners;  // with which it was
    int workers = 0;                 // that it had then
    absl::Time tried = absl::InfinitePast();
    absl::Time measured = absl::InfinitePast();
    int failed = 0;   // in a row
    std::string why;  // nothing was measured
  };
  struct Crew {
    std::vector<const Worker*> workers;  // that are there
    bool idle = true;                    // all of them, and can measure
  };
  using Measurements = std::map<int64_t, Measurement>;

  std::map<std::string, Crew> Crews() const;
  bool IsMeasured(const std::string& host) const;
  bool NeedsOne(const std::string& host, const Crew& crew, size_t hosts,
                absl::Time now) const;
  void Begin(const std::string& one, const std::string& other,
             const std::map<std::string, Crew>& crews, absl::Time now,
             Actions& actions);
  Measurements::iterator Find(int64_t measurement, WorkerId from, int& rank);
  void Set(WorkerId from, const StoreSet& set, Actions& actions);
  void Get(WorkerId from, const StoreGet& get, Actions& actions);
  // All have answered, or nobody waits for those that have not. The others,
  // where there are any, are told to stop.
  void End(Measurements::iterator it, absl::Time now, Actions& actions);
  void StopMembers(const Measurements::value_type& of, Actions& actions) const;
  void Note(const Measurement& measurement, int side, absl::Time now,
            Actions& actions);
  // In the descriptions of its workers.
  void Show(const std::string& host);

  const Limits limits_;
  WorkerTable& workers_;
  int64_t next_ = 1;
  Measurements measurements_;
  std::map<std::string, Host> hosts_;
  int64_t reviewed_at_ = -1;  // WorkerTable::changes() then
  // When hosts were looked at for what to measure, and of which changes.
  int64_t looked_at_ = -1;
  absl::Time looked_ = absl::InfinitePast();
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_LINK_MEASUREMENTS_H_
