#include "proto/plan/check_buffers.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/fault.h"
#include "proto/plan/operand.h"
#include "proto/plan/program_order.h"
#include "proto/plan/program_text.h"
#include "proto/plan/roles.h"

namespace troupe {
namespace {

std::string BufferText(const Buffer& buffer) {
  std::string text = Buffer::Kind_Name(buffer.kind());
  if (buffer.has_unit()) absl::StrAppend(&text, " u", buffer.unit());
  if (buffer.has_micro_batch()) {
    absl::StrAppend(&text, " m", buffer.micro_batch());
  }
  return text;
}

// Walks one program and follows what each slot holds.
class BufferCheck {
 public:
  // `rank`: the role's first, for messages.
  BufferCheck(const Plan& plan, const Role& role, const Program& program)
      : role_(role),
        rank_(FirstRankOf(plan.mesh(), role)),
        program_(program),
        order_(program, plan.lanes_size()) {}

  absl::Status Run() {
    RETURN_IF_ERROR(CheckOwnSlots());
    for (int i = 0; i < program_.instructions_size(); ++i) {
      const auto& operands = program_.instructions(i).operands();
      for (const Instruction::Operand& operand : operands) {
        if (Reads(operand)) RETURN_IF_ERROR(Read(i, operand));
      }
      for (const Instruction::Operand& operand : operands) {
        if (Writes(operand)) RETURN_IF_ERROR(Write(i, operand));
      }
      for (const Instruction::Operand& operand : operands) {
        RETURN_IF_ERROR(Add(i, operand));
      }
    }
    return CheckCarriedSlots();
  }

 private:
  struct Use {
    BytesUsed bytes;
    int instruction = -1;
  };
  struct SlotState {
    int holds = -1;   // a buffer; -1: nothing yet
    int writer = -1;  // the last instruction to write to it
    // Of bytes that nobody has written over since.
    std::vector<Use> writes;
    std::vector<Use> reads;
  };

  // What a copy of a buffer's slot holds.
  SlotState& StateOf(const Buffer& buffer) {
    const int copy = CopyAt(buffer, role_.slots(buffer.slot()), /*step=*/0);
    return slots_[{buffer.slot(), copy}];
  }

  // The slot of a resident buffer is shared with versions of it only.
  absl::Status CheckOwnSlots() const {
    std::vector<int> tenant(role_.slots_size(), -1);
    for (int b = 0; b < program_.buffers_size(); ++b) {
      const Buffer& buffer = program_.buffers(b);
      const int other = tenant[buffer.slot()];
      if (other >= 0 && !SameValue(buffer, program_.buffers(other)) &&
          (IsResident(buffer.kind()) ||
           IsResident(program_.buffers(other).kind()))) {
        return Fault(absl::StrCat("slot ", buffer.slot(), " is shared by ",
                                  BufferText(program_.buffers(other)), " and ",
                                  BufferText(buffer),
                                  "; resident buffers have their own"));
      }
      tenant[buffer.slot()] = b;
    }
    return absl::OkStatus();
  }

  // What others left in the slot of a carried value is lost to the programs
  // that come, so at the end it holds the value, or was never touched.
  absl::Status CheckCarriedSlots() const {
    std::map<int, const Buffer*> carried;
    for (const Program& program : role_.programs()) {
      for (const Buffer& buffer : program.buffers()) {
        if (buffer.carried()) carried[buffer.slot()] = &buffer;
      }
    }
    for (const auto& [place, slot] : slots_) {
      const auto found = carried.find(place.first);
      if (found == carried.end() || slot.holds < 0) continue;
      const Buffer& held = program_.buffers(slot.holds);
      if (SameValue(held, *found->second)) continue;
      return Fault(absl::StrCat("slot ", place.first, " holds ",
                                BufferText(held), " since ", Text(slot.writer),
                                ", where later programs look for ",
                                BufferText(*found->second)));
    }
    return absl::OkStatus();
  }

  absl::Status Read(int index, const Instruction::Operand& operand) {
    const int b = operand.buffer();
    const Buffer& buffer = program_.buffers(b);
    const BytesUsed bytes = BytesOf(operand, buffer);
    SlotState& slot = StateOf(buffer);
    const bool from_before = slot.holds < 0 && buffer.carried();
    if (slot.holds != b && !from_before && !IsResident(buffer.kind())) {
      if (slot.holds < 0) return Fault(index, b, "which nothing has written");
      return Fault(index, b,
                   absl::StrCat("but slot ", buffer.slot(), " holds ",
                                BufferText(program_.buffers(slot.holds)),
                                " since ", Text(slot.writer)));
    }
    for (const Use& write : slot.writes) {
      if (!Overlap(write.bytes, bytes)) continue;
      if (order_.Before(write.instruction, index)) continue;
      return Fault(index, b,
                   absl::StrCat("without waiting for its writer ",
                                Text(write.instruction)));
    }
    slot.reads.push_back({bytes, index});
    return absl::OkStatus();
  }

  absl::Status Write(int index, const Instruction::Operand& operand) {
    const int b = operand.buffer();
    const BytesUsed bytes = BytesOf(operand, program_.buffers(b));
    SlotState& slot = StateOf(program_.buffers(b));
    for (std::vector<Use>* const uses : {&slot.reads, &slot.writes}) {
      for (const Use& use : *uses) {
        const int user = use.instruction;
        if (!Overlap(use.bytes, bytes)) continue;
        if (user == index || order_.Before(user, index)) continue;
        return Fault(absl::StrCat(
            Text(index), " writes ", BufferText(program_.buffers(b)),
            " to slot ", program_.buffers(b).slot(), " without waiting for ",
            Text(user), ", which uses it"));
      }
      uses->erase(std::remove_if(
                      uses->begin(), uses->end(),
                      [&](const Use& use) { return Covers(bytes, use.bytes); }),
                  uses->end());
    }
    slot.writes.push_back({bytes, index});
    slot.holds = b;
    slot.writer = index;
    return absl::OkStatus();
  }

  // What takes the place of zeros loses what was added to them before.
  absl::Status Add(int index, const Instruction::Operand& operand) {
    const int b = operand.buffer();
    if (operand.access() == Instruction::ADD_TO_ZEROS) {
      const auto found = added_.find(b);
      if (found != added_.end()) {
        return Fault(absl::StrCat(
            Text(index), " takes ", BufferText(program_.buffers(b)),
            " for zeros, to which ", Text(found->second), " has added"));
      }
    }
    if (Reads(operand) && Writes(operand)) added_.emplace(b, index);
    return absl::OkStatus();
  }

  std::string Text(int index) const {
    return InstructionText(program_.instructions(index));
  }
  absl::Status Fault(absl::string_view what) const {
    return ProgramFault({.rank = rank_, .kind = program_.kind()}, what);
  }
  absl::Status Fault(int index, int b, absl::string_view what) const {
    return Fault(absl::StrCat(Text(index), " reads ",
                              BufferText(program_.buffers(b)), ", ", what));
  }

  const Role& role_;
  const int rank_;
  const Program& program_;
  const ProgramOrder order_;
  std::map<std::pair<int, int>, SlotState> slots_;  // by slot and copy
  std::map<int, int>
      added_;  // by buffer: the first instruction that adds to it
};

}  // namespace

absl::Status CheckBuffers(const Plan& plan) {
  for (const Role& role : plan.roles()) {
    for (const Program& program : role.programs()) {
      RETURN_IF_ERROR(BufferCheck(plan, role, program).Run());
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
