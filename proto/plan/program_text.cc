#include "proto/plan/program_text.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/operand.h"

namespace troupe {
namespace {

struct KindRow {
  Instruction::Kind kind;
  char letter;
};

constexpr KindRow kKinds[] = {
    {Instruction::LOAD_BATCH, 'L'},
    {Instruction::FORWARD, 'F'},
    {Instruction::BACKWARD_INPUT, 'I'},
    {Instruction::BACKWARD_WEIGHT, 'W'},
    {Instruction::REDUCE_GRADS, 'R'},
    {Instruction::GRAD_NORM, 'N'},
    {Instruction::REDUCE_SCALARS, 'A'},
    {Instruction::STEP, 'O'},
    {Instruction::SNAPSHOT, 'K'},
    {Instruction::SEND, 'S'},
    {Instruction::RECV, 'V'},
    {Instruction::EXCHANGE, 'X'},
    {Instruction::RECOMPUTE, 'C'},
    {Instruction::SCATTER_GRADS, 'T'},
    {Instruction::GATHER_PARAMETERS, 'G'},
    {Instruction::FETCH, 'P'},
    {Instruction::EVICT, 'E'},
    {Instruction::KEEP, 'H'},
    {Instruction::MIRROR, 'M'},
    {Instruction::PUSH, 'U'},
    {Instruction::PULL, 'D'},
    {Instruction::CLAIM, 'B'},
    {Instruction::DELIVER, 'Z'},
    {Instruction::ADMIT, 'a'},
    {Instruction::OUTER_GRADIENT, 'J'},
    {Instruction::OUTER_REDUCE, 'Y'},
    {Instruction::OUTER_STEP, 'Q'},
};

const KindRow& RowOf(Instruction::Kind kind) {
  for (const KindRow& row : kKinds) {
    if (row.kind == kind) return row;
  }
  CHECK(false) << "no text form for " << Instruction::Kind_Name(kind);
  return kKinds[0];
}

absl::Status WordError(absl::string_view word, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("instruction word \"", word, "\": ", what));
}

absl::StatusOr<int> Number(absl::string_view text, absl::string_view word) {
  int value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < 0) {
    return WordError(word, "a number is expected after the first letter");
  }
  return value;
}

struct Numbers {
  int first = 0;
  int count = 0;  // 0: only the first was given
};

// Behind the letter, "3" or "3-5".
absl::StatusOr<Numbers> ParseNumbers(absl::string_view word) {
  const std::vector<absl::string_view> ends =
      absl::StrSplit(word.substr(1), '-');
  if (ends.size() > 2) {
    return WordError(word, "want one number, or two as in 3-5");
  }
  Numbers span;
  ASSIGN_OR_RETURN(span.first, Number(ends[0], word));
  if (ends.size() == 1) return span;
  ASSIGN_OR_RETURN(const int last, Number(ends[1], word));
  if (last < span.first) return WordError(word, "the range goes backwards");
  span.count = last - span.first + 1;
  return span;
}

absl::Status ParseUnits(absl::string_view word, Instruction& instruction) {
  ASSIGN_OR_RETURN(const Numbers span, ParseNumbers(word));
  instruction.set_unit(span.first);
  instruction.set_unit_count(span.count);
  return absl::OkStatus();
}

absl::Status ParseParts(absl::string_view word, Instruction& instruction) {
  ASSIGN_OR_RETURN(const Numbers span, ParseNumbers(word));
  instruction.set_part(span.first);
  instruction.set_part_count(span.count);
  return absl::OkStatus();
}

absl::Status ParseList(absl::string_view word,
                       google::protobuf::RepeatedField<int>& list) {
  for (const absl::string_view part : absl::StrSplit(word.substr(1), ',')) {
    ASSIGN_OR_RETURN(const int index, Number(part, word));
    list.Add(index);
  }
  return absl::OkStatus();
}

absl::Status ParseLane(absl::string_view word, const Lanes& lanes,
                       Instruction& instruction) {
  const int lane = FindLane(lanes, word.substr(1));
  if (lane < 0) return WordError(word, "no such lane");
  instruction.set_lane(lane);
  return absl::OkStatus();
}

constexpr absl::string_view kLastWord = "last";

// "+1", "-1".
absl::Status ParseAhead(absl::string_view word, Instruction& instruction) {
  ASSIGN_OR_RETURN(const int steps, Number(word.substr(1), word));
  instruction.set_ahead(word[0] == '+' ? steps : -steps);
  return absl::OkStatus();
}

// "=ALL_REDUCE:BF16:5", "...:-6" of op 5, backward, or "...:5:AGAIN".
absl::Status ParseExchange(absl::string_view word, Instruction& instruction) {
  const std::vector<std::string> fields = absl::StrSplit(word.substr(1), ':');
  Collective collective = COLLECTIVE_UNSPECIFIED;
  ElementType dtype = ELEMENT_TYPE_UNSPECIFIED;
  int number = 0;
  const bool again = fields.size() == 4 && fields[3] == "AGAIN";
  if ((fields.size() != 3 && !again) ||
      !Collective_Parse(fields[0], &collective) ||
      !ElementType_Parse(fields[1], &dtype) ||
      !absl::SimpleAtoi(fields[2], &number)) {
    return WordError(word, "want =COLLECTIVE:TYPE:OP or ...:OP:AGAIN");
  }
  Instruction::Exchange& exchange = *instruction.mutable_exchange();
  exchange.set_collective(collective);
  exchange.set_dtype(dtype);
  SetExchangeNumber(number, exchange);
  exchange.set_again(again);
  return absl::OkStatus();
}

// "%100:25:last", "%100:0", "%0:0:last".
absl::Status ParseWhen(absl::string_view word, Instruction& instruction) {
  const std::vector<absl::string_view> fields =
      absl::StrSplit(word.substr(1), ':');
  int64_t every = 0;
  int64_t offset = 0;
  const bool last = fields.size() == 3 && fields[2] == kLastWord;
  if ((fields.size() != 2 && !last) || !absl::SimpleAtoi(fields[0], &every) ||
      !absl::SimpleAtoi(fields[1], &offset)) {
    return WordError(word, "want %EVERY:OFFSET or %EVERY:OFFSET:last");
  }
  Instruction::When& when = *instruction.mutable_when();
  when.set_every(every);
  when.set_offset(offset);
  when.set_last(last);
  return absl::OkStatus();
}

constexpr char kAccessMarks[] = "<>*!";  // by Access

// "saved<4", and of a part of the buffer, 256 bytes from 128 on,
// "to>4:128:256"; 0 of them: to its end. "input.1<4" is the unit's second
// input.
absl::Status ParseOperand(absl::string_view word, Instruction& instruction) {
  const size_t mark = word.find_first_of(kAccessMarks);
  const std::vector<absl::string_view> names =
      absl::StrSplit(word.substr(0, mark), absl::MaxSplits('.', 1));
  int port = 0;
  if (names.size() == 2) {
    ASSIGN_OR_RETURN(port, Number(names[1], word));
  }
  Instruction::Part part = Instruction::PART_UNSPECIFIED;
  if (!Instruction::Part_Parse(absl::AsciiStrToUpper(names[0]), &part) ||
      part == Instruction::PART_UNSPECIFIED) {
    return WordError(word, "no such part of an instruction");
  }
  const std::vector<absl::string_view> numbers =
      absl::StrSplit(word.substr(mark + 1), ':');
  ASSIGN_OR_RETURN(const int buffer, Number(numbers[0], word));
  Instruction::Operand& operand = *instruction.add_operands();
  int64_t offset = 0;
  int64_t bytes = 0;
  const bool whole = numbers.size() == 1;
  if (!whole &&
      (numbers.size() != 3 || !absl::SimpleAtoi(numbers[1], &offset) ||
       !absl::SimpleAtoi(numbers[2], &bytes))) {
    return WordError(word, "want the part's first byte and its bytes");
  }
  operand.set_offset(offset);
  operand.set_bytes(bytes);
  operand.set_part(part);
  operand.set_port(port);
  operand.set_buffer(buffer);
  operand.set_access(static_cast<Instruction::Access>(
      absl::string_view(kAccessMarks).find(word[mark])));
  return absl::OkStatus();
}

constexpr absl::string_view kGradientWord = "grad";

absl::Status ParseWord(absl::string_view word, const Lanes& lanes,
                       Instruction& instruction) {
  if (word[0] == '=') return ParseExchange(word, instruction);
  if (word == kGradientWord) {
    instruction.set_gradient(true);
    return absl::OkStatus();
  }
  if (word.find_first_of(kAccessMarks) != absl::string_view::npos) {
    return ParseOperand(word, instruction);
  }
  switch (word[0]) {
    case 'u':
      return ParseUnits(word, instruction);
    case 'q':
      return ParseParts(word, instruction);
    case '@':
      return ParseLane(word, lanes, instruction);
    case '%':
      return ParseWhen(word, instruction);
    case '^':
      return ParseList(word, *instruction.mutable_after());
    case '+':
    case '-':
      return ParseAhead(word, instruction);
    default:
      break;
  }
  ASSIGN_OR_RETURN(const int value, Number(word.substr(1), word));
  switch (word[0]) {
    case 'm':
      instruction.set_micro_batch(value);
      break;
    case 'o':
      instruction.set_output(value);
      break;
    case 's':
      instruction.set_segment(value);
      break;
    case 'v':
      instruction.set_weight_version(value);
      break;
    case 'p':
      instruction.set_peer(value);
      break;
    case 'g':
      instruction.set_group(value);
      break;
    default:
      return WordError(
          word,
          "no such field; use u o s q m + v p g grad % @ ^ =, or an operand");
  }
  return absl::OkStatus();
}

}  // namespace

std::string InstructionText(const Instruction& instruction) {
  std::string text(1, RowOf(instruction.kind()).letter);
  if (instruction.has_unit()) {
    absl::StrAppend(&text, " u", instruction.unit());
    if (instruction.unit_count() > 1) {
      absl::StrAppend(&text, "-",
                      instruction.unit() + instruction.unit_count() - 1);
    }
  }
  if (instruction.output() != 0) {
    absl::StrAppend(&text, " o", instruction.output());
  }
  if (instruction.segment() != 0) {
    absl::StrAppend(&text, " s", instruction.segment());
  }
  if (instruction.part() != 0 || instruction.part_count() > 1) {
    absl::StrAppend(&text, " q", instruction.part());
  }
  if (instruction.part_count() > 1) {
    absl::StrAppend(&text, "-",
                    instruction.part() + instruction.part_count() - 1);
  }
  if (instruction.has_micro_batch()) {
    absl::StrAppend(&text, " m", instruction.micro_batch());
  }
  if (instruction.has_exchange()) {
    const Instruction::Exchange& exchange = instruction.exchange();
    absl::StrAppend(&text, " =", Collective_Name(exchange.collective()), ":",
                    ElementType_Name(exchange.dtype()), ":",
                    ExchangeNumber(exchange), exchange.again() ? ":AGAIN" : "");
  }
  if (instruction.ahead() != 0) {
    absl::StrAppend(&text, instruction.ahead() > 0 ? " +" : " ",
                    instruction.ahead());
  }
  if (instruction.has_weight_version()) {
    absl::StrAppend(&text, " v", instruction.weight_version());
  }
  if (instruction.has_peer()) absl::StrAppend(&text, " p", instruction.peer());
  if (instruction.has_group()) {
    absl::StrAppend(&text, " g", instruction.group());
  }
  if (instruction.gradient()) absl::StrAppend(&text, " ", kGradientWord);
  if (instruction.has_when()) {
    const Instruction::When& when = instruction.when();
    absl::StrAppend(&text, " %", when.every(), ":", when.offset(),
                    when.last() ? absl::StrCat(":", kLastWord) : "");
  }
  return text;
}

std::string InstructionLongText(const Instruction& instruction,
                                const Lanes& lanes) {
  std::string text = InstructionText(instruction);
  if (instruction.lane() != UsualLane(lanes, instruction.kind())) {
    absl::StrAppend(&text, " @", NameOfLane(lanes, instruction.lane()));
  }
  for (const Instruction::Operand& operand : instruction.operands()) {
    absl::StrAppend(
        &text, " ",
        absl::AsciiStrToLower(Instruction::Part_Name(operand.part())),
        operand.port() > 0 ? absl::StrCat(".", operand.port()) : "",
        Instruction::Access_IsValid(operand.access())
            ? absl::string_view(&kAccessMarks[operand.access()], 1)
            : "?",
        operand.buffer());
    if (operand.offset() > 0 || operand.bytes() > 0) {
      absl::StrAppend(&text, ":", operand.offset(), ":", operand.bytes());
    }
  }
  if (!instruction.after().empty()) {
    absl::StrAppend(&text, " ^", absl::StrJoin(instruction.after(), ","));
  }
  return text;
}

absl::StatusOr<Instruction> ParseInstruction(absl::string_view text,
                                             const Lanes& lanes) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.empty()) return absl::InvalidArgumentError("empty instruction");
  Instruction instruction;
  for (const KindRow& row : kKinds) {
    if (words[0] == absl::string_view(&row.letter, 1)) {
      instruction.set_kind(row.kind);
      instruction.set_lane(UsualLane(lanes, row.kind));
    }
  }
  if (instruction.kind() == Instruction::KIND_UNSPECIFIED) {
    return WordError(words[0],
                     "no such kind; use L F I W R N A O K S V X C T G P or E");
  }
  for (size_t i = 1; i < words.size(); ++i) {
    RETURN_IF_ERROR(ParseWord(words[i], lanes, instruction));
  }
  return instruction;
}

std::string ProgramText(const Program& program, const Lanes& lanes) {
  std::string text;
  for (const Instruction& instruction : program.instructions()) {
    absl::StrAppend(&text, InstructionLongText(instruction, lanes), "\n");
  }
  return text;
}

absl::StatusOr<Program> ParseProgram(absl::string_view text,
                                     const Lanes& lanes) {
  Program program;
  int line_number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    absl::StatusOr<Instruction> instruction = ParseInstruction(line, lanes);
    if (!instruction.ok()) {
      return Annotate(instruction.status(), absl::StrCat("line ", line_number));
    }
    *program.add_instructions() = *std::move(instruction);
  }
  return program;
}

std::string InstructionWords(const Instruction& instruction) {
  std::string words = Instruction::Kind_Name(instruction.kind());
  if (instruction.has_unit()) {
    absl::StrAppend(&words, instruction.unit_count() > 1 ? " units " : " unit ",
                    instruction.unit());
    if (instruction.unit_count() > 1) {
      absl::StrAppend(&words, " to ",
                      instruction.unit() + instruction.unit_count() - 1);
    }
  }
  if (instruction.has_micro_batch()) {
    absl::StrAppend(&words, ", micro-batch ", instruction.micro_batch());
  }
  if (instruction.ahead() > 0) {
    absl::StrAppend(&words, " of ", instruction.ahead(), " steps ahead");
  }
  if (instruction.has_peer()) {
    absl::StrAppend(&words,
                    instruction.kind() == Instruction::SEND ? " to" : " from",
                    " place ", instruction.peer(), " of the pipeline");
  }
  return words;
}

}  // namespace troupe
