#include "proto/plan/check_buffers.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/byte_map.h"
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
  if (buffer.output() > 0) absl::StrAppend(&text, " o", buffer.output());
  if (buffer.has_micro_batch()) {
    absl::StrAppend(&text, " m", buffer.micro_batch());
  }
  if (IsFetched(buffer)) absl::StrAppend(&text, " (copy ", buffer.copy(), ")");
  return text;
}

std::string PlaceText(const Buffer& buffer) {
  const BytesUsed place = PlaceOf(buffer);
  return absl::StrCat("bytes ", place.begin, " to ", place.end, " of slot ",
                      buffer.slot());
}

// Values that are there from program to program share no byte with each other,
// and resident ones with nobody: whichever programs use them.
class LastingCheck {
 public:
  LastingCheck(const Role& role, int rank) : role_(role), rank_(rank) {}

  absl::Status Run() {
    for (const bool lasting : {true, false}) {
      for (const Program& program : role_.programs()) {
        for (const Buffer& buffer : program.buffers()) {
          if (OutlivesProgram(buffer) != lasting) continue;
          RETURN_IF_ERROR(Check(buffer, program.kind()));
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Check(const Buffer& buffer, Program::Kind kind) {
    const bool lasting = OutlivesProgram(buffer);
    if (!lasting && slots_.count(buffer.slot()) == 0) return absl::OkStatus();
    for (auto& [begin, piece] : slots_[buffer.slot()].At(PlaceOf(buffer))) {
      const Buffer* const other = piece.value;
      if (lasting) piece.value = &buffer;
      if (other == nullptr || SameValue(*other, buffer)) continue;
      if (!lasting && !IsResident(other->kind())) continue;
      return ProgramFault(
          {.rank = rank_, .kind = kind},
          absl::StrCat("bytes ", begin, " to ", piece.end, " of slot ",
                       buffer.slot(), " are shared by ", BufferText(*other),
                       " and ", BufferText(buffer),
                       "; what outlives a program has its own"));
    }
    return absl::OkStatus();
  }

  const Role& role_;
  const int rank_;
  std::map<int, ByteMap<const Buffer*>> slots_;
};

// Walks one program and follows what each byte holds.
class BufferCheck {
 public:
  // `rank`: the role's first, for messages.
  BufferCheck(const Plan& plan, const Role& role, const Program& program)
      : role_(role),
        place_{.rank = FirstRankOf(plan.mesh(), role), .kind = program.kind()},
        program_(program),
        order_(program, plan.lanes_size()) {}

  absl::Status Run() {
    for (int i = 0; i < program_.instructions_size(); ++i) {
      const auto& operands = program_.instructions(i).operands();
      RETURN_IF_ERROR(CheckApart(i));
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
    return CheckCarried();
  }

 private:
  // What is known of a byte.
  struct Contents {
    int holds = -1;   // a buffer; -1: what it held when the program began
    int writer = -1;  // the last to write to it
    std::vector<int> readers;  // since then; of each lane the last
  };
  using Copy = std::pair<int, int>;  // a slot and which of its copies

  Copy CopyOf(const Buffer& buffer) const {
    const Slot& slot = role_.slots(buffer.slot());
    return {buffer.slot(), CopyAt(buffer, slot, /*step=*/0)};
  }
  ByteMap<Contents>& MemoryOf(const Buffer& buffer) {
    return memory_[CopyOf(buffer)];
  }

  // What it writes is not what it uses as another buffer.
  absl::Status CheckApart(int index) const {
    const auto& operands = program_.instructions(index).operands();
    for (const Instruction::Operand& operand : operands) {
      if (!Writes(operand)) continue;
      const Buffer& mine = program_.buffers(operand.buffer());
      const BytesUsed written = PlaceOf(operand, mine);
      for (const Instruction::Operand& other : operands) {
        const Buffer& theirs = program_.buffers(other.buffer());
        const BytesUsed used = PlaceOf(other, theirs);
        if (other.buffer() == operand.buffer() ||
            CopyOf(theirs) != CopyOf(mine) || written.end <= used.begin ||
            used.end <= written.begin) {
          continue;
        }
        return ProgramFault(
            place_,
            absl::StrCat(Text(index), " writes ", BufferText(mine), " over ",
                         BufferText(theirs), ", which it uses too"));
      }
    }
    return absl::OkStatus();
  }

  // What others left in place of a carried value is lost to the programs that
  // come, so at the end it is there, or was never touched.
  absl::Status CheckCarried() {
    for (const Program& program : role_.programs()) {
      for (const Buffer& buffer : program.buffers()) {
        if (!buffer.carried()) continue;
        for (int copy = 0; copy < CopiesOf(role_.slots(buffer.slot()));
             ++copy) {
          RETURN_IF_ERROR(CheckCarried(buffer, {buffer.slot(), copy}));
        }
      }
    }
    return absl::OkStatus();
  }
  absl::Status CheckCarried(const Buffer& buffer, const Copy& copy) {
    for (const auto& [begin, piece] : memory_[copy].At(PlaceOf(buffer))) {
      const Contents& contents = piece.value;
      if (contents.holds < 0) continue;
      const Buffer& held = program_.buffers(contents.holds);
      if (SameValue(held, buffer)) continue;
      return ProgramFault(
          place_,
          absl::StrCat("slot ", buffer.slot(), " holds ", BufferText(held),
                       " since ", Text(contents.writer), ", from byte ", begin,
                       " on, where later programs look for ",
                       BufferText(buffer)));
    }
    return absl::OkStatus();
  }

  absl::Status Read(int index, const Instruction::Operand& operand) {
    const int b = operand.buffer();
    const Buffer& buffer = program_.buffers(b);
    for (auto& [begin, piece] : MemoryOf(buffer).At(PlaceOf(operand, buffer))) {
      Contents& contents = piece.value;
      const bool from_before = contents.holds < 0 && buffer.carried();
      if (contents.holds != b && !from_before && !IsResident(buffer)) {
        if (contents.holds < 0) {
          return WrongRead(
              index, b,
              absl::StrCat("of which nothing has written bytes ", begin, " to ",
                           piece.end, " of slot ", buffer.slot()));
        }
        return WrongRead(
            index, b,
            absl::StrCat("but slot ", buffer.slot(), " holds ",
                         BufferText(program_.buffers(contents.holds)),
                         " since ", Text(contents.writer), ", from byte ",
                         begin, " to ", piece.end));
      }
      if (contents.writer >= 0 && !order_.Before(contents.writer, index)) {
        return WrongRead(index, b,
                         absl::StrCat("without waiting for its writer ",
                                      Text(contents.writer)));
      }
      AddLaterOfLane(program_, index, contents.readers);
    }
    return absl::OkStatus();
  }

  absl::Status Write(int index, const Instruction::Operand& operand) {
    const int b = operand.buffer();
    const Buffer& buffer = program_.buffers(b);
    const BytesUsed bytes = PlaceOf(operand, buffer);
    ByteMap<Contents>& memory = MemoryOf(buffer);
    for (const auto& [begin, piece] : memory.At(bytes)) {
      RETURN_IF_ERROR(Follow(index, b, piece.value.writer));
      for (const int reader : piece.value.readers) {
        RETURN_IF_ERROR(Follow(index, b, reader));
      }
    }
    Contents& contents = memory.Join(bytes);
    contents.holds = b;
    contents.writer = index;
    contents.readers.clear();
    return absl::OkStatus();
  }

  // The instruction writes bytes that an earlier one, if any, has used.
  absl::Status Follow(int index, int b, int user) const {
    if (user < 0 || user == index || order_.Before(user, index)) {
      return absl::OkStatus();
    }
    const Buffer& buffer = program_.buffers(b);
    return ProgramFault(
        place_, absl::StrCat(Text(index), " writes ", BufferText(buffer),
                             " to ", PlaceText(buffer), " without waiting for ",
                             Text(user), ", which uses it"));
  }

  // What takes the place of zeros loses what was added to them before.
  absl::Status Add(int index, const Instruction::Operand& operand) {
    const int b = operand.buffer();
    if (operand.access() == Instruction::ADD_TO_ZEROS) {
      const auto found = added_.find(b);
      if (found != added_.end()) {
        return ProgramFault(
            place_, absl::StrCat(Text(index), " takes ",
                                 BufferText(program_.buffers(b)),
                                 " for zeros, to which ", Text(found->second),
                                 " has added"));
      }
    }
    if (Reads(operand) && Writes(operand)) added_.emplace(b, index);
    return absl::OkStatus();
  }

  std::string Text(int index) const {
    return InstructionText(program_.instructions(index));
  }
  absl::Status WrongRead(int index, int b, absl::string_view what) const {
    return ProgramFault(
        place_, absl::StrCat(Text(index), " reads ",
                             BufferText(program_.buffers(b)), ", ", what));
  }

  const Role& role_;
  const ProgramPlace place_;
  const Program& program_;
  const ProgramOrder order_;
  std::map<Copy, ByteMap<Contents>> memory_;
  std::map<int, int>
      added_;  // by buffer: the first instruction that adds to it
};

}  // namespace

absl::Status CheckBuffers(const Plan& plan) {
  for (const Role& role : plan.roles()) {
    RETURN_IF_ERROR(LastingCheck(role, FirstRankOf(plan.mesh(), role)).Run());
    for (const Program& program : role.programs()) {
      RETURN_IF_ERROR(BufferCheck(plan, role, program).Run());
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
