// A whole cluster under a seed: workers join, work, hang, die, leave and say
// goodbye, clients submit, cancel and save jobs and ask for texts, messages and
// plans come late or never, what a worker said is heard again from others,
// connections break with all that was on its way, machines are bad for a while
// and fail every start, bits flip under ranks, the disk of the store is full,
// the scheduler stands still, drains, is killed, and starts again from what its
// store has, while its workers go on and come back; now and then a connection
// breaks though both ends live. Many jobs recover from what they lose, and many
// of these go on with fewer ranks, and with more again. After every event the
// invariants hold (cluster_invariants.h, recovery_invariants.h,
// elastic_invariants.h, progress_invariants.h, integrity_invariants.h).
//
//   ClusterSimulation simulation(seed);
//   simulation.Run(1500);
#ifndef TROUPE_TESTS_FAULTS_CLUSTER_SIMULATION_H_
#define TROUPE_TESTS_FAULTS_CLUSTER_SIMULATION_H_

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "scheduler/cluster/cluster.h"
#include "tests/faults/cluster_invariants.h"
#include "tests/faults/elastic_invariants.h"
#include "tests/faults/integrity_invariants.h"
#include "tests/faults/progress_invariants.h"
#include "tests/faults/recovery_invariants.h"
#include "tests/faults/simulated_attempt.h"
#include "tests/faults/simulated_disk.h"
#include "tests/faults/simulated_planner.h"
#include "tests/faults/simulated_store.h"
#include "tests/faults/simulated_worker.h"
#include "tests/faults/under_lock.h"
#include "tests/scheduler/cluster/fake_compiler.h"

namespace troupe {

class ClusterSimulation {
 public:
  explicit ClusterSimulation(uint32_t seed);

  // This number of events, and then as many as it takes to come to rest. Ends
  // early where an invariant does not hold.
  void Run(int events);

  // What came of it, for a test to see that the dice let enough happen.
  struct Tally {
    int succeeded = 0, failed = 0, cancelled = 0;
    int commits = 0, restarts = 0, drains = 0, leavings = 0, texts = 0;
    int adopted = 0;  // jobs that ran on after a restart
    int from_copies = 0, from_elsewhere = 0;  // attempts that recover
    int narrowed = 0, widened = 0;            // attempts on fewer, and on more
    int gave_way = 0;            // jobs that gave their workers to others
    int disks_full = 0;          // events
    int broken = 0;              // machines on which no rank starts for a while
    int given_up = 0;            // times that a rank heard that of a checkpoint
    int written_later = 0;       // checkpoints
    int differed = 0;            // attempts whose ranks did
    int known_wrong = 0;         // workers that were
    std::vector<int64_t> edges;  // of the table of phases, how often each
  };
  Tally tally() const;
  // Of all that the cluster did, in its order: the same for the same seed.
  uint64_t trace() const { return trace_; }

 private:
  int Draw(int below) { return static_cast<int>(random_() % below); }
  bool OneIn(int many) { return Draw(many) == 0; }

  // A worker's connection that broke, until the scheduler hears of it.
  struct BrokenStream {
    std::string name;
    absl::Time heard_at;
    bool comes_back = false;
  };

  void Check();
  void Event();
  void EventOfWorkers();
  void EventOfClients();
  void EventOfScheduler();
  // Time passes, and all do what they would do in it.
  void Pass(absl::Duration time);

  void Harm(WorkerId id);
  void Join();
  void Kill();
  void FillDisks();
  void CutOff();
  void ComeBack();
  void Cut();
  void HearOfCuts();
  void FlipABit();
  bool IsNameTaken(const std::string& name) const;
  void ChangeRoom();
  bool IsFull() const;
  // False: none waits, or there is no room.
  bool HelpOneThatWaits();
  void PutBackThoseSetAside();
  void AskForRecovery(JobSpec& spec);
  void BeQuiet();
  void Submit();
  void Cancel(JobId id);
  void CancelOneThatSavesCopies();
  void Generate();
  void StopText();
  void Repeat();
  void AnswerLate();
  void Drain();
  void StandStill();
  void Restart();
  void Begin();
  void CountEdges();

  // A worker's messages arrive.
  void Receive(WorkerId id);
  // Carries out what the cluster asks for.
  void Deliver();
  void Carry(const Action& action);
  void Note(const Action& action);
  void WriteStore(bool fails);
  bool IsDiskFull();
  void Settle();
  bool AtRest() const;

  SimulatedWorkers::iterator Any();
  JobId AnyJob();

  // Every other scheduler leaves some of its scheduling to later events, as one
  // does that has thousands of workers.
  void LeaveScheduling() {
    cluster_->set_schedules_later(leaves_scheduling_ && leaves_() % 3 == 0);
  }

  std::mt19937 random_;
  std::mt19937 leaves_;  // draws apart, so that the others stay as they are
  std::mt19937 flips_;   // does, too
  const bool leaves_scheduling_;
  const Limits limits_;
  const FakeCompiler compiler_;
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  absl::Time ticked_ = now_;
  UnderLock cluster_;
  Actions actions_;
  absl::Time full_until_ = absl::InfinitePast();  // the store's disk
  bool draining_ = false;
  // For workers: as many as there are machines.
  int room_ = limits_.workers_max;
  SimulatedPlanner planner_;
  SimulatedStore store_;
  SimulatedAttempts attempts_;
  SimulatedDisk disk_;
  SimulatedWorkers workers_;
  std::map<WorkerId, BrokenStream> cuts_;
  std::map<WorkerId, absl::Time> heard_;
  // Workers without a scheduler, and names of those that died with it.
  std::vector<SimulatedWorkers::node_type> cut_off_;
  std::vector<std::string> to_rejoin_;
  std::vector<JobId> submitted_;
  std::vector<int64_t> texts_;
  std::vector<WorkerMessage> past_;
  std::vector<WorkerMessage> answers_;  // about copies; the newest
  ClusterInvariants invariants_;
  RecoveryInvariants recoveries_;
  ElasticInvariants elastics_;
  ProgressInvariants progress_;
  IntegrityInvariants integrity_;
  Tally tally_;
  uint64_t trace_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_CLUSTER_SIMULATION_H_
