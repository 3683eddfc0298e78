// Programs for people: each instruction is one token of letters and numbers,
// both ways. `F u3 m1` is FORWARD of unit 3 on micro-batch 1.
//
//   L LOAD_BATCH   F FORWARD   I BACKWARD_INPUT   W BACKWARD_WEIGHT
//   R REDUCE_GRADS N GRAD_NORM A REDUCE_SCALARS   O STEP   K SNAPSHOT
//   S SEND         V RECV      X EXCHANGE         C RECOMPUTE
//   T SCATTER_GRADS           G GATHER_PARAMETERS
//   P FETCH        E EVICT     U PUSH (up to the servers)   D PULL (down)
//   B CLAIM (begins)  Z DELIVER (ends)   a ADMIT
//   J OUTER_GRADIENT           Y OUTER_REDUCE     Q OUTER_STEP
//
// Fields follow the letter, each only where the instruction has it: u unit
// (u3-5 for units 3 to 5), s segment and q part where not the first (q0-1 for
// parts 0 and 1), m micro-batch, +1 steps ahead (-1: behind), v weight version,
// p peer, g group; =ALL_REDUCE:BF16:5 what an exchange does, of which type, and
// its op (-6: of op 5, backward; 5:AGAIN: of values that RECOMPUTE makes); grad
// where a gradient is sent or received; %100:25:last in steps 25 after a
// multiple of 100 only, and in the last one. The long form has a lane other
// than the kind's usual one, @GRADIENTS, then operands and order: a part with
// the buffer that it is, saved<4 read, output>5 written, totals*9 added to,
// weight_gradients!3 added to zeros, from<4:128:256 only 256 bytes of it from
// 128 on; ^0,2 after.
#ifndef TROUPE_PROTO_PLAN_PROGRAM_TEXT_H_
#define TROUPE_PROTO_PLAN_PROGRAM_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plan/lanes.h"
#include "proto/program.pb.h"

namespace troupe {

// "F u3 m1".
std::string InstructionText(const Instruction& instruction);

// "F u3 m1 input<0 saved>4 output>5 ^0,2".
std::string InstructionLongText(const Instruction& instruction,
                                const Lanes& lanes);

// Reads both forms. InvalidArgument names the word that is wrong.
absl::StatusOr<Instruction> ParseInstruction(absl::string_view text,
                                             const Lanes& lanes);

// One instruction a line, long form. Buffers are not written.
std::string ProgramText(const Program& program, const Lanes& lanes);
// Blank lines and lines that start with # are skipped; errors name the line.
absl::StatusOr<Program> ParseProgram(absl::string_view text,
                                     const Lanes& lanes);

// "FORWARD unit 3, micro-batch 1": for messages.
std::string InstructionWords(const Instruction& instruction);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_PROGRAM_TEXT_H_
