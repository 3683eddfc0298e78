// What each rank has to send and receive in a step, counted from the plan's
// instructions and the hosts of its ranks, without the simulator's code.
#ifndef TROUPE_TESTS_SCHEDULER_SIMULATE_LINK_BYTES_H_
#define TROUPE_TESTS_SCHEDULER_SIMULATE_LINK_BYTES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
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
      if (IsTransfer(instruction.kind())) {
        AddTransfer(rank, *train, instruction, bytes);
      }
      if (IsCollective(instruction.kind())) {
        AddCollective(rank, instruction, bytes);
      }
    }
    return bytes;
  }

 private:
  // All of the buffer that it names.
  void AddTransfer(int rank, const Program& train, const Instruction& transfer,
                   LinkLoad& bytes) const {
    const int peer = PeerRank(plan_.mesh(), rank, transfer.peer());
    const bool far = hosts_[peer] != hosts_[rank];
    double moved = 0;
    for (const Instruction::Operand& operand : transfer.operands()) {
      moved += static_cast<double>(train.buffers(operand.buffer()).bytes());
    }
    const bool sends = transfer.kind() == Instruction::SEND;
    (sends ? (far ? bytes.far_out : bytes.near_out)
           : (far ? bytes.far_in : bytes.near_in)) += moved;
  }

  // Of rows of experts those of an even load, all in the first round: what each
  // rank has for others, of which some stay with it. Their room may be larger.
  double ExchangedBytes(const Instruction& exchange) const {
    const Op& op = plan_.tables(plan_.units(exchange.unit()).table())
                       .ops(exchange.exchange().op());
    int64_t most = 0;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const Instruction::Operand& operand : exchange.operands()) {
      if (operand.part() == Instruction::SIZES) continue;
      most = std::max(most, operand.bytes());
      least = std::min(least, operand.bytes());
    }
    if (!op.has_round()) return static_cast<double>(most);
    return op.round().number() > 0 ? 0 : static_cast<double>(least);
  }

  // Elements of a unit whose gradients it sums.
  int64_t ReducedOf(const Instruction& reduce, int u) const {
    const Unit& unit = plan_.units(u);
    const bool all = reduce.unit_count() > 1;
    const int begin = all ? 0 : reduce.part();
    const int end =
        all ? unit.parts_size() : begin + std::max(1, reduce.part_count());
    int64_t elements = 0;
    for (int p = begin; p < end; ++p) {
      if (!unit.parts(p).frozen()) elements += unit.parts(p).elements();
    }
    return elements;
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
      case Instruction::EXCHANGE:
        return ExchangedBytes(instruction);
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
              static_cast<double>(ReducedOf(instruction, u + i)) / slices);
        }
        break;
      default:
        return 0;  // a few scalars
    }
    return elements *
           static_cast<double>(BytesOfElement(GradientType(training)));
  }

  // To each rank of a group straight, `each` bytes.
  static void AddDirect(double each, double ranks, double here,
                        LinkLoad& bytes) {
    bytes.far_out += each * (ranks - here);
    bytes.far_in += each * (ranks - here);
    bytes.near_out += each * (here - 1);
    bytes.near_in += each * (here - 1);
  }

  // What each member sends in a step over a communicator of `size` members, of
  // a buffer of which `whole` bytes are this step's; where one is the root, in
  // the mean of all members.
  static double SentInStep(Collective step, double whole, double size,
                           bool over_sockets) {
    constexpr double kSmall = 64 << 10;
    const double once = std::floor(whole * (size - 1) / size);
    const bool small = over_sockets && whole * (size - 1) <= kSmall;
    switch (step) {
      case ALL_REDUCE:
        return small ? whole * (size - 1) : 2 * once;
      case REDUCE:
        return small ? once : std::floor(once * (size + 1) / size);
      default:
        return once;
    }
  }

  // Step after step, each with what the steps before have left this rank.
  void AddSteps(const Group& group, const Group::Way& way,
                const std::vector<int>& members, size_t at, double whole,
                LinkLoad& bytes) const {
    double share = whole;
    if (way.collective() == ALL_GATHER) {
      share /= static_cast<double>(members.size());
    }
    std::vector<bool> waits(group.levels_size());
    for (const Group::Step& step : way.steps()) {
      const Group::Level& level = group.levels(step.level());
      const size_t place = at / level.stride() % level.size();
      const auto size = static_cast<double>(level.size());
      if (step.collective() == ALL_GATHER) share *= size;
      if (step.collective() == BROADCAST) waits[step.level()] = false;
      if (std::count(waits.begin(), waits.end(), true) == 0) {
        // To the next place, which of two is the one other.
        const auto is_near = [&](size_t other) {
          const size_t member = at + (other - place) * level.stride();
          return hosts_[members[member]] == hosts_[members[at]];
        };
        bool all_near = true;
        for (int i = 0; i < level.size(); ++i) all_near &= is_near(i);
        const double sent =
            SentInStep(step.collective(), share, size, !all_near);
        const bool next_near = is_near((place + 1) % level.size());
        const bool previous_near =
            is_near((place + level.size() - 1) % level.size());
        (next_near ? bytes.near_out : bytes.far_out) += sent;
        (previous_near ? bytes.near_in : bytes.far_in) += sent;
      }
      if (step.collective() == REDUCE_SCATTER) share /= size;
      if (step.collective() == REDUCE) waits[step.level()] = place != 0;
    }
  }

  // Lines of 64 bytes of f32, dealt over the servers, to or from each replica.
  void AddServed(int rank, const Instruction& instruction,
                 const std::vector<int>& members, LinkLoad& bytes) const {
    const TrainingSpec& training = plan_.job().training();
    const bool pushes = instruction.kind() == Instruction::PUSH;
    const int servers = plan_.job().parallelism().servers();
    const size_t replicas = members.size() - servers;
    const int64_t lines = TrainedElements(plan_.units(instruction.unit())) / 16;
    const auto width = static_cast<double>(BytesOfElement(
        pushes ? GradientType(training) : ComputeType(training)));
    for (int s = 0; s < servers; ++s) {
      const double slice =
          16 * width *
          static_cast<double>(lines / servers + (s < lines % servers ? 1 : 0));
      for (size_t r = 0; r < replicas; ++r) {
        const int server = members[replicas + s];
        if (rank != server && rank != members[r]) continue;
        const bool far = hosts_[server] != hosts_[members[r]];
        const bool out = pushes == (rank != server);
        (out ? (far ? bytes.far_out : bytes.near_out)
             : (far ? bytes.far_in : bytes.near_in)) += slice;
      }
    }
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
    if (instruction.kind() == Instruction::PUSH ||
        instruction.kind() == Instruction::PULL) {
      return AddServed(rank, instruction, members, bytes);
    }
    const double whole = WholeOf(rank, instruction);
    Collective collective = ALL_REDUCE;
    if (instruction.kind() == Instruction::SCATTER_GRADS) {
      collective = REDUCE_SCATTER;
    } else if (instruction.kind() == Instruction::GATHER_PARAMETERS) {
      collective = ALL_GATHER;
    } else if (instruction.kind() == Instruction::EXCHANGE) {
      collective = instruction.exchange().collective();
    }
    if (collective == SLICE) return;  // each takes some of what it has
    const Group::Way* const way =
        WayOf(group, collective, static_cast<int64_t>(whole));
    if (way != nullptr) {
      EXPECT_NE(way->row(), kFlatRow);
      return AddSteps(group, *way, members, at, whole, bytes);
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
