#include "proto/plan/check_copies.h"

#include <iterator>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/copies.h"
#include "proto/plan/fault.h"
#include "proto/plan/find_program.h"
#include "proto/plan/mesh.h"
#include "proto/plan/operand.h"
#include "proto/plan/roles.h"

namespace troupe {
namespace {

// The KEEP program of one role.
class Copies {
 public:
  Copies(const Plan& plan, const Role& role, const Program& program)
      : plan_(plan),
        role_(role),
        place_{.rank = FirstRankOf(plan.mesh(), role), .kind = Program::KEEP},
        program_(program) {}

  absl::Status Check(bool mirrors) {
    for (const Instruction& instruction : program_.instructions()) {
      RETURN_IF_ERROR(CheckOne(instruction));
    }
    for (const Placement& placement : role_.placements()) {
      if (kept_.count(placement.unit()) > 0) continue;
      return ProgramFault(
          place_, absl::StrCat("unit ", placement.unit(), " is not copied"));
    }
    if (mirrored_ == (mirrors ? 1 : 0)) return absl::OkStatus();
    return ProgramFault(
        place_, absl::StrCat("hands its copy on ", mirrored_, " times, and ",
                             mirrors ? "some rank's state is held by no other, "
                                       "or other ranks hand theirs on"
                                     : "no other rank hands its copy on"));
  }

 private:
  absl::Status CheckOne(const Instruction& instruction) {
    switch (instruction.kind()) {
      case Instruction::KEEP:
        return CheckKeep(instruction);
      case Instruction::MIRROR:
        ++mirrored_;
        return CheckMirror(instruction);
      default:
        return ProgramFault(place_, instruction, "keeps no copy");
    }
  }

  absl::Status CheckKeep(const Instruction& keep) {
    const int unit = keep.unit();
    if (!kept_.insert(unit).second) {
      return ProgramFault(place_, keep, "copies the unit once more");
    }
    if (mirrored_ > 0) {
      return ProgramFault(place_, keep, "comes after the copy is handed on");
    }
    for (const Instruction::Operand& operand : keep.operands()) {
      const Buffer& buffer = program_.buffers(operand.buffer());
      if (operand.part() != Instruction::COPY) {
        if (buffer.unit() == unit) continue;
        return ProgramFault(place_, keep, "copies the state of another unit");
      }
      const BytesUsed used = BytesOf(operand, buffer);
      const int64_t wanted = CopyBytesOfUnit(plan_, role_, unit);
      if (used.end - used.begin < wanted) {
        return ProgramFault(
            place_, keep,
            absl::StrCat("has ", used.end - used.begin, " bytes for ", wanted));
      }
      const auto next = places_.lower_bound(used.begin);
      const bool overlaps =
          (next != places_.end() && next->first < used.end) ||
          (next != places_.begin() && std::prev(next)->second > used.begin);
      if (overlaps) {
        return ProgramFault(place_, keep,
                            "writes over the copy of another unit");
      }
      places_[used.begin] = used.end;
      return absl::OkStatus();
    }
    return ProgramFault(place_, keep, "copies to nowhere");
  }

  // What the rank gets is all that the other one has.
  absl::Status CheckMirror(const Instruction& mirror) const {
    const int other = MirroredBy(plan_, place_.rank);
    const int64_t wanted = StateCopyBytes(plan_, RoleOf(plan_, other));
    for (const Instruction::Operand& operand : mirror.operands()) {
      if (operand.part() != Instruction::TO) continue;
      const int64_t bytes = program_.buffers(operand.buffer()).bytes();
      if (bytes == wanted) return absl::OkStatus();
      return ProgramFault(place_, mirror,
                          absl::StrCat("has ", bytes, " bytes for the ", wanted,
                                       " of rank ", other));
    }
    return ProgramFault(place_, mirror, "gets no copy");
  }

  const Plan& plan_;
  const Role& role_;
  const ProgramPlace place_;
  const Program& program_;
  std::set<int> kept_;                 // units
  std::map<int64_t, int64_t> places_;  // of copies: begin and end
  int mirrored_ = 0;
};

}  // namespace

absl::Status CheckCopies(const Plan& plan) {
  const bool wanted = KeepsCopies(plan.job(), plan.mesh());
  // Where it is not needed, it may be wanted for the loss of a host.
  const bool mirrors = wanted && (NeedsMirrors(plan) || KeepsMirrors(plan));
  for (const Role& role : plan.roles()) {
    const Program* const program = FindProgram(role, Program::KEEP);
    if (wanted != (program != nullptr)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "role ", RoleText(role),
          wanted ? " keeps no copy of its state, and the job asks for one"
                 : " keeps copies of its state, and nobody asks for them"));
    }
    if (!wanted) continue;
    if (CopiesGroup(plan) < 0) {
      return absl::FailedPreconditionError(
          "copies have no group in which they move");
    }
    if (mirrors && MirrorOf(plan, MeshSize(plan.mesh()) / 2) ==
                       MeshSize(plan.mesh()) / 2) {
      return absl::FailedPreconditionError(
          "copies go to opposite ranks, and the rank in the middle has none");
    }
    RETURN_IF_ERROR(Copies(plan, role, *program).Check(mirrors));
  }
  return absl::OkStatus();
}

}  // namespace troupe
