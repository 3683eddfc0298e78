#include "proto/plan/check_tiers.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "proto/base/status.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/fault.h"
#include "proto/plan/lanes.h"
#include "proto/plan/memory.h"
#include "proto/plan/operand.h"
#include "proto/plan/program_text.h"
#include "proto/plan/resting_buffers.h"
#include "proto/plan/roles.h"

namespace troupe {
namespace {

constexpr int kNone = -1;

// "PARAMETERS u3 in host, a copy".
std::string TierBufferText(const Buffer& buffer) {
  std::string text = Buffer::Kind_Name(buffer.kind());
  if (buffer.has_unit()) absl::StrAppend(&text, " u", buffer.unit());
  if (buffer.has_micro_batch()) {
    absl::StrAppend(&text, " m", buffer.micro_batch());
  }
  absl::StrAppend(&text, " in ", TierText(TierOf(buffer)));
  if (IsFetched(buffer)) absl::StrAppend(&text, " (a copy)");
  return text;
}

// Follows the versions of each value through one program: each write makes a
// new one in the buffer that it uses, a move brings one to another.
class TierCheck {
 public:
  TierCheck(const Plan& plan, const Role& role, const Program& program)
      : plan_(plan),
        role_(role),
        rank_(FirstRankOf(plan.mesh(), role)),
        program_(program) {}

  absl::Status Run() {
    RETURN_IF_ERROR(CheckSlots());
    RETURN_IF_ERROR(FindValues());
    for (const Instruction& instruction : program_.instructions()) {
      RETURN_IF_ERROR(IsMove(instruction.kind()) ? CheckMove(instruction)
                                                 : CheckPlaces(instruction));
      RETURN_IF_ERROR(Follow(instruction));
    }
    return CheckKept();
  }

 private:
  // A value by the buffer in which it rests.
  struct Value {
    int newest = 0;
    int writer = kNone;  // the buffer that got the newest version
    const Instruction* by = nullptr;
    bool anew =
        false;  // of gradients: the first to write them took their place
  };

  absl::Status CheckSlots() const {
    for (const Buffer& buffer : program_.buffers()) {
      const Tier slot = role_.slots(buffer.slot()).tier();
      if (TierOf(buffer) == slot) continue;
      return Fault(absl::StrCat(TierBufferText(buffer), " has a slot in ",
                                TierText(slot)));
    }
    return absl::OkStatus();
  }

  absl::Status FindValues() {
    const int buffers = program_.buffers_size();
    value_of_ = RestingBuffers(program_);
    values_.resize(buffers);
    version_.assign(buffers, kNone);
    for (int b = 0; b < buffers; ++b) {
      if (value_of_[b] < 0) {
        return Fault(absl::StrCat(TierBufferText(program_.buffers(b)),
                                  ": no FETCH or EVICT says of what"));
      }
      if (value_of_[b] == b) version_[b] = 0;
    }
    return absl::OkStatus();
  }

  absl::Status CheckPlaces(const Instruction& instruction) const {
    const absl::optional<Tier> tier =
        TierOfOperands(KindOfLane(plan_.lanes(), instruction.lane()));
    if (!tier.has_value()) return absl::OkStatus();
    for (const Instruction::Operand& operand : instruction.operands()) {
      const Buffer& buffer = program_.buffers(operand.buffer());
      if (TierOf(buffer) == *tier) continue;
      return Fault(instruction,
                   absl::StrCat("uses ", TierBufferText(buffer), ", and lane ",
                                NameOfLane(plan_.lanes(), instruction.lane()),
                                " works in ", TierText(*tier)));
    }
    return absl::OkStatus();
  }

  absl::Status CheckMove(const Instruction& move) const {
    const auto operand = [&](int i, Instruction::Part part,
                             Instruction::Access access) {
      return i < move.operands_size() && move.operands(i).part() == part &&
             move.operands(i).access() == access;
    };
    if (move.operands_size() != 2 ||
        !operand(0, Instruction::FROM, Instruction::READ) ||
        !operand(1, Instruction::TO, Instruction::WRITE)) {
      return Fault(move, "does not read what it moves FROM, and write TO");
    }
    const Buffer& from = program_.buffers(move.operands(0).buffer());
    const Buffer& to = program_.buffers(move.operands(1).buffer());
    const auto all = [&](int i, const Buffer& buffer) {
      const BytesUsed bytes = BytesOf(move.operands(i), buffer);
      return bytes.begin == 0 && bytes.end == buffer.bytes();
    };
    const bool one_value = SameValue(from, to) && from.bytes() == to.bytes() &&
                           from.slice() == to.slice() && all(0, from) &&
                           all(1, to);
    const bool fetches = move.kind() == Instruction::FETCH;
    if (!one_value || !IsFetched(fetches ? to : from) ||
        move.has_unit() != from.has_unit() || move.unit() != from.unit() ||
        move.has_micro_batch() != from.has_micro_batch() ||
        move.micro_batch() != from.micro_batch() ||
        ValueAt(move, 0) != ValueAt(move, 1)) {
      return Fault(move, absl::StrCat("moves ", TierBufferText(from), " to ",
                                      TierBufferText(to),
                                      ": these are not all of one value and a "
                                      "copy of it"));
    }
    if (std::abs(TierOf(from) - TierOf(to)) != 1) {
      return Fault(
          move, absl::StrCat("moves ", TierBufferText(from), " to ",
                             TierText(TierOf(to)), ", which is no neighbour"));
    }
    const bool disk = TierOf(from) == NVME || TierOf(to) == NVME;
    const Lane::Kind lane = KindOfLane(plan_.lanes(), move.lane());
    if (lane == (disk ? Lane::IO : Lane::TRANSFER)) return absl::OkStatus();
    return Fault(
        move,
        absl::StrCat("is on lane ", NameOfLane(plan_.lanes(), move.lane()),
                     ", where nothing moves between ", TierText(TierOf(from)),
                     " and ", TierText(TierOf(to))));
  }

  int ValueAt(const Instruction& instruction, int operand) const {
    return value_of_[instruction.operands(operand).buffer()];
  }

  absl::Status Follow(const Instruction& instruction) {
    for (const Instruction::Operand& operand : instruction.operands()) {
      if (Reads(operand)) {
        RETURN_IF_ERROR(CheckNewest(instruction, operand.buffer()));
      }
    }
    if (IsMove(instruction.kind())) {
      version_[instruction.operands(1).buffer()] =
          version_[instruction.operands(0).buffer()];
      return absl::OkStatus();
    }
    for (const Instruction::Operand& operand : instruction.operands()) {
      if (program_.buffers(operand.buffer()).kind() ==
          Buffer::PARAMETER_GRADIENTS) {
        RETURN_IF_ERROR(CheckSum(instruction, operand));
      }
      if (!Writes(operand)) continue;
      const int b = operand.buffer();
      Value& value = values_[value_of_[b]];
      version_[b] = ++value.newest;
      value.writer = b;
      value.by = &instruction;
    }
    return absl::OkStatus();
  }

  // Of a step's gradients: what is added first finds the zeros that the last
  // STEP has left, or takes the place of what it has left as it was.
  absl::Status CheckSum(const Instruction& instruction,
                        const Instruction::Operand& operand) {
    Value& value = values_[value_of_[operand.buffer()]];
    const std::string text = TierBufferText(program_.buffers(operand.buffer()));
    const bool anew = operand.access() == Instruction::WRITE;
    if (anew && value.by != nullptr) {
      return Fault(instruction,
                   absl::StrCat("writes ", text, " anew, to which ",
                                InstructionText(*value.by), " has added"));
    }
    if (value.by == nullptr && Writes(operand)) value.anew = anew;
    if (instruction.kind() == Instruction::STEP && !Writes(operand) &&
        !value.anew) {
      return Fault(instruction,
                   absl::StrCat("leaves ", text,
                                " as it is, and the next step adds to that"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckNewest(const Instruction& instruction, int b) const {
    const Value& value = values_[value_of_[b]];
    if (version_[b] == value.newest) return absl::OkStatus();
    const std::string text = TierBufferText(program_.buffers(b));
    if (value.by == nullptr) {
      return Fault(instruction,
                   absl::StrCat("uses ", text, " before its FETCH"));
    }
    return Fault(instruction,
                 absl::StrCat("uses ", text, ", which lacks what ",
                              InstructionText(*value.by), " left in ",
                              TierBufferText(program_.buffers(value.writer))));
  }

  // What outlives the program is where later ones look for it.
  absl::Status CheckKept() const {
    for (int b = 0; b < program_.buffers_size(); ++b) {
      const Buffer& buffer = program_.buffers(b);
      if (!OutlivesProgram(buffer)) continue;
      const Value& value = values_[b];
      if (version_[b] == value.newest) continue;
      return Fault(*value.by,
                   absl::StrCat("changes ",
                                TierBufferText(program_.buffers(value.writer)),
                                ", and no EVICT takes that to ",
                                TierBufferText(buffer)));
    }
    return absl::OkStatus();
  }

  absl::Status Fault(absl::string_view what) const {
    return ProgramFault({.rank = rank_, .kind = program_.kind()}, what);
  }
  absl::Status Fault(const Instruction& instruction,
                     absl::string_view what) const {
    return Fault(absl::StrCat(InstructionText(instruction), ": ", what));
  }

  const Plan& plan_;
  const Role& role_;
  const int rank_;  // the role's first, for messages
  const Program& program_;
  std::vector<Value> values_;  // by buffer; of copies unused
  std::vector<int> value_of_;  // by buffer: RestingBuffers
  std::vector<int> version_;   // by buffer; kNone: it holds nothing yet
};

}  // namespace

absl::Status CheckTiers(const Plan& plan) {
  for (const Role& role : plan.roles()) {
    for (const Program& program : role.programs()) {
      RETURN_IF_ERROR(TierCheck(plan, role, program).Run());
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
