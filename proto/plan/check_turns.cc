#include "proto/plan/check_turns.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/fault.h"
#include "proto/plan/find_program.h"
#include "proto/plan/meeting.h"
#include "proto/plan/mesh.h"
#include "proto/plan/operand.h"
#include "proto/plan/roles.h"
#include "proto/plan/served.h"
#include "proto/plan/trained.h"

namespace troupe {
namespace {

bool IsPassOfUnit(Instruction::Kind kind) {
  return kind == Instruction::FORWARD || kind == Instruction::RECOMPUTE ||
         kind == Instruction::BACKWARD_INPUT ||
         kind == Instruction::BACKWARD_WEIGHT;
}

// What such an instruction has of each unit.
struct TurnOperand {
  Instruction::Part part;
  Instruction::Access access;
  Buffer::Kind kind;
};

// TRAIN of a role.
class TurnProgram {
 public:
  TurnProgram(const Plan& plan, const Role& role)
      : plan_(plan),
        role_(role),
        place_{.rank = FirstRankOf(plan.mesh(), role), .kind = Program::TRAIN},
        program_(*FindProgram(role, Program::TRAIN)),
        serves_(IsServer(plan, place_.rank)) {}

  absl::Status Run() {
    for (const Instruction& instruction : program_.instructions()) {
      RETURN_IF_ERROR(Check(instruction));
    }
    const std::vector<Instruction::Kind> wanted =
        serves_ ? std::vector{Instruction::ADMIT}
                : std::vector{Instruction::CLAIM, Instruction::DELIVER};
    for (const Instruction::Kind kind : wanted) {
      if (seen_.count(kind) > 0) continue;
      return ProgramFault(
          place_, absl::StrCat(Instruction::Kind_Name(kind), " is missing"));
    }
    return serves_ ? absl::OkStatus() : CheckClaimedFirst();
  }

 private:
  absl::Status Check(const Instruction& instruction) {
    const Instruction::Kind kind = instruction.kind();
    if (IsTurn(kind)) return CheckTurn(instruction);
    if (Meets(kind)) {
      return ProgramFault(place_, instruction,
                          "waits for all replicas, in a step of one of them");
    }
    if (IsPassOfUnit(kind)) {
      if (serves_) {
        return ProgramFault(place_, instruction,
                            "is of a server, which computes none");
      }
      if (seen_.count(Instruction::CLAIM) == 0) {
        return ProgramFault(place_, instruction,
                            "the step is not claimed yet, nor are its "
                            "parameters pulled");
      }
      if (seen_.count(Instruction::DELIVER) == 0) return absl::OkStatus();
      return ProgramFault(place_, instruction,
                          "the gradients of the step are delivered");
    }
    if (kind != Instruction::STEP) return absl::OkStatus();
    if (!serves_) {
      return ProgramFault(place_, instruction, "a replica keeps no state");
    }
    if (seen_.count(Instruction::ADMIT) > 0) return absl::OkStatus();
    return ProgramFault(place_, instruction,
                        "the gradients of the step are not there yet");
  }

  absl::Status CheckTurn(const Instruction& turn) {
    const bool of_server = turn.kind() == Instruction::ADMIT;
    if (of_server != serves_) {
      return ProgramFault(place_, turn,
                          serves_ ? "is a replica's" : "is a server's");
    }
    if (!seen_.insert(turn.kind()).second) {
      return ProgramFault(place_, turn, "is there twice");
    }
    const Group& with = plan_.groups(turn.group());
    for (const Placement& placement : role_.placements()) {
      const Group& all = plan_.groups(placement.served().group());
      if (BoxOf(plan_.mesh(), with, place_.rank) !=
          BoxOf(plan_.mesh(), all, place_.rank)) {
        return ProgramFault(
            place_, turn,
            absl::StrCat("group ", with.name(), " has other ranks than ",
                         all.name(), ", the replicas and servers of unit ",
                         placement.unit()));
      }
      if (TrainedElements(plan_.units(placement.unit())) == 0) continue;
      RETURN_IF_ERROR(CheckOperands(turn, placement.unit()));
    }
    return absl::OkStatus();
  }

  absl::Status CheckOperands(const Instruction& turn, int unit) const {
    std::vector<TurnOperand> wanted;
    if (turn.kind() == Instruction::CLAIM) {
      wanted = {{Instruction::WEIGHTS, Instruction::WRITE, Buffer::PARAMETERS}};
    } else if (turn.kind() == Instruction::DELIVER) {
      wanted = {{Instruction::WEIGHT_GRADIENTS, Instruction::READ,
                 Buffer::PARAMETER_GRADIENTS}};
    } else {
      wanted = {{Instruction::SLICE, Instruction::READ, Buffer::PARAMETERS},
                {Instruction::WEIGHT_GRADIENTS, Instruction::WRITE,
                 Buffer::PARAMETER_GRADIENTS}};
    }
    for (const TurnOperand& operand : wanted) {
      if (Count(turn, unit, operand) == 1) continue;
      return ProgramFault(
          place_, turn,
          absl::StrCat(
              "does not ", operand.access == Instruction::READ ? "give" : "get",
              operand.kind == Buffer::PARAMETERS ? " the parameters of unit "
                                                 : " the gradients of unit ",
              unit));
    }
    return absl::OkStatus();
  }

  // Of the whole of the unit's buffer of the kind, which is a slice on a
  // server.
  int Count(const Instruction& turn, int unit,
            const TurnOperand& wanted) const {
    int count = 0;
    for (const Instruction::Operand& operand : turn.operands()) {
      const Buffer& buffer = program_.buffers(operand.buffer());
      if (operand.part() != wanted.part || buffer.unit() != unit) continue;
      const BytesUsed used = BytesOf(operand, buffer);
      const bool right = operand.access() == wanted.access &&
                         buffer.kind() == wanted.kind &&
                         buffer.slice() == serves_ && used.begin == 0 &&
                         used.end == buffer.bytes();
      count += right ? 1 : 2;
    }
    return count;
  }

  // Whatever else may start only when the step is claimed: where another has
  // it, nothing of the step is done.
  absl::Status CheckClaimedFirst() const {
    std::vector<bool> behind(program_.instructions_size(), false);
    std::map<int, int> last;  // by lane
    for (int i = 0; i < program_.instructions_size(); ++i) {
      const Instruction& instruction = program_.instructions(i);
      const auto before = last.find(instruction.lane());
      if (before != last.end()) behind[i] = behind[before->second];
      for (const int earlier : instruction.after()) {
        behind[i] = behind[i] || behind[earlier];
      }
      last[instruction.lane()] = i;
      if (instruction.kind() == Instruction::CLAIM) behind[i] = true;
      if (behind[i]) continue;
      return ProgramFault(place_, instruction,
                          "does not wait until the step is claimed");
    }
    return absl::OkStatus();
  }

  const Plan& plan_;
  const Role& role_;
  const ProgramPlace place_;  // of the role's first rank
  const Program& program_;
  const bool serves_;
  std::set<Instruction::Kind> seen_;
};

absl::Status CheckNoTurns(const Plan& plan, bool in_step) {
  for (const Role& role : plan.roles()) {
    for (const Program& program : role.programs()) {
      if (in_step && program.kind() == Program::TRAIN) continue;
      for (const Instruction& instruction : program.instructions()) {
        if (!IsTurn(instruction.kind())) continue;
        return ProgramFault(
            {.rank = FirstRankOf(plan.mesh(), role), .kind = program.kind()},
            instruction, "this is no step of one replica");
      }
    }
  }
  return absl::OkStatus();
}

// What follows from it for the plan.
absl::Status CheckDerived(const Plan& plan) {
  const Derived& derived = plan.derived();
  const int replicas = plan.job().parallelism().data();
  if (!HasServers(plan)) {
    return absl::FailedPreconditionError(
        "each step is one replica's, and there are no servers");
  }
  if (derived.report_lag() != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("steps are one replica's, and are summed ",
                     derived.report_lag(), " programs late"));
  }
  if (derived.delays_gradients() != (replicas > 1)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "of ", replicas, " replicas that take turns, gradients are ",
        derived.delays_gradients() ? "" : "not ", "said to be delayed"));
  }
  for (int r = 0; r < replicas; ++r) {
    const int count = derived.replica_micro_batches_size() > r
                          ? derived.replica_micro_batches(r)
                          : derived.micro_batches();
    if (count == derived.micro_batches()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "each step is one replica's, and replica ", r, " computes ", count,
        " of its ", derived.micro_batches(), " micro-batches"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTurns(const Plan& plan) {
  const bool turns = plan.derived().takes_turns();
  RETURN_IF_ERROR(CheckNoTurns(plan, /*in_step=*/turns));
  if (!turns) return absl::OkStatus();
  RETURN_IF_ERROR(CheckDerived(plan));
  for (const Role& role : plan.roles()) {
    RETURN_IF_ERROR(TurnProgram(plan, role).Run());
  }
  return absl::OkStatus();
}

}  // namespace troupe
