// How long does an instruction take on a worker? Answered from what the worker
// measured of itself (Calibration), never from the name of its device.
//
//   matrix products   flops over the rate of products of that size (rates.h)
//                     and form: forward, the gradient of the input and that of
//                     the weight read their operands in different orders
//   attention         flops, the masked half included as the calibration counts
//                     it, over the rate at that length and width of heads
//   elementwise       bytes over the rate of passes over memory + elements over
//                     their rate, each in the job's precision
//   optimizer         bytes of parameters, gradients and moments over its rate
//   collective        what its algorithm puts on the links of the group, the
//                     slowest of which decides (traffic.h)
//   PUSH, PULL        what is sent straight between replicas and servers, the
//                     busiest link of which decides; what servers add
//   CLAIM, DELIVER,   bytes between one replica and its servers, over the link
//   ADMIT             of those farthest apart
//   OUTER_GRADIENT, OUTER_STEP   bytes over the rate of the optimizer
//   KEEP              bytes over the rate of copies, or of the disk's reads
//   SEND, RECV        latency + bytes / bandwidth of the link between the two
//   FETCH, EVICT      bytes over the rate of copies between device and host; or
//                     the latency of the disk's reads or writes + bytes over
//                     their rate, which the ranks of a host share
//   synthetic units   the time that the job gives them
//   every other       the overhead of a lane
//
// Rates are in flops, bytes or elements a second, of operands that come from
// memory as they do in a step, where everything else has been touched since.
//
// Costs are those of a rank that has its processor and its links to itself:
// ranks share a processor while they compute (seats.h), what a rank
// communicates at one time shares its links (run_programs.h), and what ranks of
// a host send to others shares its adapters (adapters.h).
#ifndef TROUPE_SCHEDULER_SIMULATE_COST_MODEL_H_
#define TROUPE_SCHEDULER_SIMULATE_COST_MODEL_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"
#include "proto/plan/rank_classes.h"
#include "proto/plan/unit_passes.h"
#include "scheduler/simulate/adapters.h"
#include "scheduler/simulate/links.h"
#include "scheduler/simulate/product_rates.h"
#include "scheduler/simulate/rates.h"
#include "scheduler/simulate/seats.h"
#include "scheduler/simulate/tier_rates.h"
#include "scheduler/simulate/traffic.h"

namespace troupe {

// Seconds of one instruction, by what spends them.
struct Cost {
  double matmul = 0;
  double attention = 0;
  double elementwise = 0;  // norms, activations, loss, copies: memory-bound
  double optimizer = 0;
  double communication = 0;
  double moving = 0;   // between tiers of memory
  double waiting = 0;  // takes no processor
  double overhead = 0;
  // Of communication: while bytes move, the rest being latency; and for how
  // much of that each link of the rank is full.
  double on_wire = 0;
  OnLinks on_links = {};
  OnLinks bytes = {};  // that they carry
  double total() const {
    return matmul + attention + elementwise + optimizer + communication +
           moving + waiting + overhead;
  }
};

// What the members of a collective reduce, or gather, together with the rank; 0
// for other kinds. Of slices the mean, which tells nobody apart that has the
// same program; of rows of experts those of an even load, in one round. And how
// they do.
int64_t CollectiveBytes(const Plan& plan, int rank,
                        const Instruction& instruction);
Collective CollectiveOf(const Instruction& instruction);
// The same, but of rows of experts those that the busiest rank is expected to
// get in their round (TensorSpec.expected_rows).
int64_t BusiestBytes(const Plan& plan, int rank,
                     const Instruction& instruction);

// Whether only the two ends of a block know how long it is: rows that go to
// experts, and back.
bool HasUnevenBlocks(const Plan& plan, const Instruction& instruction);

// The collective of an instruction of the rank, as the model prices it.
Operation OperationOf(const Plan& plan, int rank,
                      const Instruction& instruction);

// What the rank sends in a DELIVER or ADMIT, of a step that is one replica's; 0
// for other kinds.
int64_t TurnBytesSent(const Plan& plan, int rank,
                      const Instruction& instruction);
// What the rank sends in a PUSH or PULL; 0 for other kinds.
int64_t ServedBytesSent(const Plan& plan, int rank,
                        const Instruction& instruction);

// What a SEND or RECV moves; 0 for other kinds.
int64_t TransferBytes(const Plan& plan, const Instruction& instruction);

class CostModel {
 public:
  // Borrows `plan`. REQUIRES a worker for each rank.
  CostModel(const Plan& plan, const std::vector<WorkerDescription>& workers,
            const LinkGain& gain = {});

  // For a collective or a transfer: from when every member has reached it.
  Cost CostOf(int rank, const Instruction& instruction) const;

  // How much of an instruction that runs in some steps only (Instruction.when)
  // counts: what falls on a step in the mean, which is the default, nothing, or
  // all of those that run `offset` steps after a multiple of their `every`.
  enum class Rare { kMean, kNone, kOne };
  void Count(Rare rare, int64_t offset = 0) {
    rare_ = rare;
    offset_ = offset;
  }

  // Of a collective of a rank in a group of the plan, whatever instruction it
  // is of.
  Cost GroupCost(int rank, int group, const Operation& operation) const;

  // Of an exchange of the slowest of the groups of that index, by itself on its
  // links and on the adapters that its members share, in these steps over the
  // group's levels; none: flat. REQUIRES CheckWays of the group with the way.
  double WaySeconds(int group, const Group::Way& way,
                    const Operation& operation) const;
  // By step, of that group, with all pieces: where levels work at once,
  // WaySeconds is less than their sum.
  std::vector<double> StepSeconds(int group, const Group::Way& way,
                                  const Operation& operation) const;
  // Whether any of the groups of that index does.
  bool SpansHosts(int group) const;
  // Of each of its members, the number of its host.
  std::vector<int> HostsOf(int group, int number) const;

  // Of all passes of a unit over a micro-batch, while all ranks compute: with
  // the rank's share of a processor that is crowded.
  double UnitSeconds(int rank, int unit) const;
  // Equal for ranks whose UnitSeconds are.
  using Speed = std::pair<int, double>;
  Speed SpeedOf(int rank) const {
    return {machine_of_.at(rank), seats_.FairShare(rank)};
  }

  // What tells ranks apart in their costs.
  RankTraits Traits() const;
  const Seats& seats() const { return seats_; }
  const Adapters& adapters() const { return adapters_; }

  // Where one rank stands for all of its role, whatever their links: by role
  // and group of the plan, ranks of which any other puts the same on its links
  // as one of these.
  using UnlikeRanks = std::map<std::pair<int, int>, std::vector<int>>;
  UnlikeRanks Unlike() const;
  // With the most that a rank of its role puts on each link.
  Cost BusiestCostOf(int rank, const Instruction& instruction,
                     const UnlikeRanks& unlike) const;

  // Best measured product rate, in the job's precision, of all ranks together:
  // what utilisation is measured against.
  double PeakFlopsPerSecond() const { return peak_; }

  // Whether some worker sent no calibration.
  bool uses_default() const;

 private:
  // What ranks of equal machines have in common.
  struct Machine {
    Calibration calibration;
    bool measured = false;  // it sent a calibration
    double scale = 1;       // by threads, from what was measured to what it has
    double communication_share = 1;
    TierRates tiers;
    LinkRate network;                    // to other hosts
    LinkRate nccl;                       // to GPUs of this host
    std::vector<ProductRates> products;  // by unit
    AttentionFlopsPerSecond attention;
  };

  // Ranks on the same host.
  struct Company {
    int ranks = 1;
    double share = 1;  // of the cores that copy between ranks
  };
  Machine MachineOf(const WorkerDescription& worker,
                    const Calibration& measured, const Company& company) const;
  double PeakOf(int rank, const WorkerDescription& worker) const;
  const Machine& At(int rank) const { return machines_[machine_of_.at(rank)]; }
  Cost PassCost(const Machine& machine, const Instruction& instruction) const;
  Cost StateCost(int rank, const Instruction& instruction) const;
  Cost SnapshotCost(int rank, const Instruction& snapshot) const;
  Cost ServedCost(int rank, const Instruction& instruction) const;
  Cost TurnCost(int rank, const Instruction& instruction) const;
  Cost OuterCost(int rank, const Instruction& instruction) const;
  Cost Counted(const Cost& cost, const Instruction& instruction) const;
  Cost CollectiveCost(int rank, const Instruction& instruction) const;
  Cost MoveCost(const Machine& machine, const Instruction& move) const;
  Cost TransferCost(int rank, const Instruction& instruction) const;
  int64_t GradientBytes(int rank, const Instruction& instruction) const;
  const LinkRate& LocalLink(int rank, const Group::Carrier& carrier) const;
  GroupLinks LinksAmong(const std::vector<int>& ranks,
                        const Group::Carrier& carrier) const;
  std::vector<GroupLinks> LevelLinksOf(const Group& group, int number) const;
  GroupPlace PlaceOnLevel(const std::vector<int>& ranks, int member,
                          const Group::Level& level,
                          const GroupLinks& links) const;
  // One step of the way, of a rank.
  struct StepAt {
    int group = 0;
    int rank = 0;
    int step = 0;
  };
  Cost StepCost(const StepAt& at, const Group::Way& way,
                const Operation& operation) const;
  Cost WayCost(int rank, int group, const Group::Way& way,
               const Operation& operation) const;
  Cost StepsCost(int rank, int group, const Group::Way& way,
                 const Operation& operation) const;
  Cost BesideSteps(int rank, int group, const Group::Way& way,
                   const Operation& operation) const;
  Cost FlatCost(int rank, int group, const Operation& operation) const;
  std::vector<int> OnFirstHost(int group, int number) const;
  std::vector<int> UnlikeGroups(int group) const;
  // Of the group of that number.
  struct GroupAt {
    int group = 0;
    int number = 0;
  };
  std::vector<double> StepSecondsAt(const GroupAt& at, const Group::Way& way,
                                    const Operation& operation) const;
  double WaySecondsAt(const GroupAt& at, const Group::Way& way,
                      const Operation& operation) const;
  double AloneSeconds(const std::vector<int>& ranks,
                      const std::vector<Cost>& costs) const;
  std::vector<GroupPlace> PlacesIn(
      const std::vector<std::vector<int>>& groups) const;
  GroupPlace PlaceOf(int rank, int group) const;
  std::vector<bool> HasRings() const;
  std::array<int, 2> ConnectionOf(int rank, int group, bool has_rings) const;
  Cost TrafficCost(const Traffic& traffic, const LinkRate& network,
                   const LinkRate& local) const;

  const Plan& plan_;
  const UnitPasses passes_;
  const LinkGain gain_;
  Rare rare_ = Rare::kMean;
  int64_t offset_ = 0;  // of kOne
  Seats seats_;
  Adapters adapters_;
  double peak_ = 0;
  std::vector<Machine> machines_;
  std::vector<int> machine_of_;                         // by rank
  std::vector<int> host_of_;                            // by rank
  std::vector<std::vector<int>> numbers_;               // by group and rank
  std::vector<std::vector<std::vector<int>>> members_;  // by group and number
  std::vector<std::vector<GroupLinks>> links_;          // the same
  // The same, and level: of each the slowest of its communicators.
  std::vector<std::vector<std::vector<GroupLinks>>> level_links_;
  // By group: numbers of groups that differ in what an exchange takes.
  std::vector<std::vector<int>> unlike_;
  // By group and rank; empty: no host of the group has another beside it.
  std::vector<std::vector<GroupPlace>> places_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_COST_MODEL_H_
