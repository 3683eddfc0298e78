// A part of CheckShape: which buffers may be an instruction's operands.
#ifndef TROUPE_PROTO_PLAN_PART_FITS_H_
#define TROUPE_PROTO_PLAN_PART_FITS_H_

#include "proto/program.pb.h"

namespace troupe {

// Whether a buffer of this kind may be what the operand says it is, with that
// number; and whether what is moved is what the instruction names.
bool Fits(const Instruction& instruction, const Instruction::Operand& operand,
          const Buffer& buffer);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_PART_FITS_H_
