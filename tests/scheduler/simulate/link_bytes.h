// What each rank has to send and receive in a step, counted from the plan's
// instructions and the hosts of its ranks, without the simulator's code.
#ifndef TROUPE_TESTS_SCHEDULER_SIMULATE_LINK_BYTES_H_
#define TROUPE_TESTS_SCHEDULER_SIMULATE_LINK_BYTES_H_

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"
#include "proto/plan/find_program.h"
#include "proto/plan/groups.h"
#include "proto/plan/meeting.h"
#include "proto/plan/precision.h"
#include "proto/plan/roles.h"
#include "proto/plan/trained.h"
#include "proto/plan/ways.h"

namespace troupe {

// Of a rank's links.
struct LinkLoad {
  double far_out = 0;
  double far_in = 0;
  double near_out = 0;
  double near_in = 0;
};

class LinkBytes {
 public:
  LinkBytes(const Plan& plan, const std::vector<WorkerDescription>& workers)
      : plan_(plan) {
    for (const WorkerDescription& worker : workers) {
      hosts_.push_back(worker.host());
    }
  }

  LinkLoad OfStep(int rank) const {
    LinkLoad bytes;
    const Program* const train =
        FindProgram(RoleOf(plan_, rank), Program::TRAIN);
    if (train == nullptr) return bytes;
    for (const Instruction& instruction : train->instructions()) {
      if (IsTransfer(instruction.kind())) AddTransfer(rank, instruction, bytes);
      if (IsCollective(instruction.kind())) {
        AddCollective(rank, instruction, bytes);
      }
    }
    return bytes;
  }

 private:
  void AddTransfer(int rank, const Instruction& transfer,
                   LinkLoad& bytes) const {
    const int peer = PeerRank(plan_.mesh(), rank, transfer.peer());
    const bool far = hosts_[peer] != hosts_[rank];
    const auto moved =
        static_cast<double>(plan_.units(transfer.unit()).activation_bytes());
    const bool sends = transfer.kind() == Instruction::SEND;
    (sends ? (far ? bytes.far_out : bytes.near_out)
           : (far ? bytes.far_in : bytes.near_in)) += moved;
  }

  // Elements of the parts that are dealt over the same as the instruction's.
  double DealtWith(int rank, const Instruction& instruction,
                   bool frozen) const {
    const int u = instruction.unit();
    const Placement& placement = *FindPlacement(RoleOf(plan_, rank), u);
    double elements = 0;
    for (int p = 0; p < placement.parts_size(); ++p) {
      const Unit::Part& part = plan_.units(u).parts(p);
      if (!placement.parts(p).has_dealt() || (part.frozen() && !frozen) ||
          placement.parts(p).dealt() !=
              placement.parts(instruction.part()).dealt()) {
        continue;
      }
      elements += static_cast<double>(part.elements());
    }
    return elements;
  }

  // Of all that its group works on together.
  double WholeOf(int rank, const Instruction& instruction) const {
    const TrainingSpec& training = plan_.job().training();
    const int u = instruction.unit();
    double elements = 0;
    switch (instruction.kind()) {
      case Instruction::EXCHANGE: {
        int64_t most = 0;
        for (const auto& operand : instruction.operands()) {
          most = std::max(most, operand.bytes());
        }
        return static_cast<double>(most);
      }
      case Instruction::GATHER_PARAMETERS:
        return DealtWith(rank, instruction, /*frozen=*/true) *
               static_cast<double>(BytesOfElement(ComputeType(training)));
      case Instruction::SCATTER_GRADS:
        elements = DealtWith(rank, instruction, /*frozen=*/false);
        break;
      case Instruction::REDUCE_GRADS:
        for (int i = 0; i < std::max(1, instruction.unit_count()); ++i) {
          const Placement::Part& part =
              FindPlacement(RoleOf(plan_, rank), u + i)
                  ->parts(instruction.part());
          const int slices =
              part.has_dealt()
                  ? GroupSize(plan_.mesh(), plan_.groups(part.dealt()))
                  : 1;
          elements += std::floor(
              static_cast<double>(
                  plan_.units(u + i).parts(instruction.part()).elements()) /
              slices);
        }
        break;
      default:
        return 0;  // a few scalars
    }
    return elements *
           static_cast<double>(BytesOfElement(GradientType(training)));
  }

  // To each rank of a group straight, so many bytes.
  static void AddDirect(double each, double ranks, double here,
                        LinkLoad& bytes) {
    bytes.far_out += each * (ranks - here);
    bytes.far_in += each * (ranks - here);
    bytes.near_out += each * (here - 1);
    bytes.near_in += each * (here - 1);
  }

  // Within the host all of it, between hosts what is then each member's.
  static void AddLevels(Collective collective, double whole, double ranks,
                        double here, LinkLoad& bytes) {
    constexpr double kSmall = 64 << 10;
    const double hosts = ranks / here;
    const double piece = whole / here;
    const bool all = collective == ALL_REDUCE;
    const double passes = all ? 2 : 1;
    const double near = passes * whole * (here - 1) / here;
    const double far = all && piece * (hosts - 1) <= kSmall
                           ? piece * (hosts - 1)
                           : passes * piece * (hosts - 1) / hosts;
    bytes.far_out += std::floor(far);
    bytes.far_in += std::floor(far);
    bytes.near_out += std::floor(near);
    bytes.near_in += std::floor(near);
  }

  bool IsNarrow(const Instruction& instruction) const {
    const TrainingSpec& training = plan_.job().training();
    return BytesOfElement(instruction.kind() == Instruction::EXCHANGE
                              ? ComputeType(training)
                              : GradientType(training)) == 2;
  }

  void AddCollective(int rank, const Instruction& instruction,
                     LinkLoad& bytes) const {
    const Group& group = plan_.groups(instruction.group());
    const std::vector<int> members = MembersOf(plan_.mesh(), group, rank);
    const auto ranks = static_cast<double>(members.size());
    if (members.size() < 2) return;
    const auto at = static_cast<size_t>(
        std::find(members.begin(), members.end(), rank) - members.begin());
    size_t next = members[(at + 1) % members.size()];
    size_t previous = members[(at + members.size() - 1) % members.size()];
    const std::string& host = hosts_[rank];
    const auto here = static_cast<double>(
        std::count_if(members.begin(), members.end(),
                      [&](int other) { return hosts_[other] == host; }));
    const double whole = WholeOf(rank, instruction);
    Collective collective = ALL_REDUCE;
    if (instruction.kind() == Instruction::SCATTER_GRADS) {
      collective = REDUCE_SCATTER;
    } else if (instruction.kind() == Instruction::GATHER_PARAMETERS) {
      collective = ALL_GATHER;
    } else if (instruction.kind() == Instruction::EXCHANGE) {
      collective = instruction.exchange().collective();
    }
    const Group::Way* const way =
        WayOf(group, collective, static_cast<int64_t>(whole));
    if (way != nullptr) {
      EXPECT_NE(way->row(), kFlatRow);
      return AddLevels(way->collective(), whole, ranks, here, bytes);
    }
    const int number = GroupNumber(plan_.mesh(), group, rank);
    const std::string& backend = CarrierOf(group, number).backend();
    if (collective == ALL_TO_ALL) {
      return AddDirect(whole / ranks, ranks, here, bytes);
    }
    double passes = 1;
    if (collective == ALL_REDUCE) passes = 2;
    if (collective == REDUCE) passes = (ranks + 1) / ranks;
    if (backend == "gloo" && collective != SHIFT) {
      constexpr double kSmall = 64 << 10;
      const bool sums = collective != ALL_GATHER && collective != BROADCAST;
      const bool all = collective == ALL_REDUCE || collective == REDUCE;
      if (all && whole * (ranks - 1) <= kSmall) {
        // The root receives them; everybody is that as often.
        const double roots = collective == REDUCE ? ranks : 1;
        return AddDirect(whole / roots, ranks, here, bytes);
      }
      if (collective == BROADCAST && (ranks == 2 || whole <= kSmall)) {
        return AddDirect(whole / ranks, ranks, here, bytes);
      }
      if (!all && collective != BROADCAST &&
          std::floor(whole / ranks) * (ranks - 1) <= kSmall) {
        return AddDirect(whole / ranks, ranks, here, bytes);
      }
      if (collective == REDUCE) {
        AddDirect(whole / ranks / ranks, ranks, here, bytes);
        passes = 1;
      }
      if (sums && IsNarrow(instruction)) {
        AddDirect(whole / ranks, ranks, here, bytes);
        passes -= 1;
      }
    }
    const double whole_passes = std::floor(passes);
    double ring =
        whole_passes * std::floor(whole * (ranks - 1) / ranks) +
        std::floor((passes - whole_passes) * whole * (ranks - 1) / ranks);
    if (collective == SHIFT) {
      ring = whole;
      if (instruction.exchange().backward()) std::swap(next, previous);
    }
    if (backend == "nccl" && collective != SHIFT && here < ranks) {
      bytes.far_out += ring / here;
      bytes.far_in += ring / here;
      bytes.near_out += ring * (here - 1) / here;
      bytes.near_in += ring * (here - 1) / here;
      return;
    }
    (hosts_[next] == host ? bytes.near_out : bytes.far_out) += ring;
    (hosts_[previous] == host ? bytes.near_in : bytes.far_in) += ring;
  }

  const Plan& plan_;
  std::vector<std::string> hosts_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_SIMULATE_LINK_BYTES_H_
