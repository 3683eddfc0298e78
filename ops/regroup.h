// Rows that a rank has received for its experts, grouped by expert, and back.
//
// A rank receives rows in the order (source, expert, token) and multiplies them
// in the order (expert, source, token). Which rows these are in a round, and
// where each block of them lies in either order, follows from the offsets of
// all ranks (proto/base/expert_rounds.h):
//
//   Regroup       y[grouped] = x[received] of all rows of the round
//   Ungroup       y[received] = x[grouped]
//   OwnOffsets    the first grouped row of each of the rank's experts; the last
//                 is how many rows there are
//
// Regroup and Ungroup are each other's inverse and each other's backward. Rows
// of y that are not of the round are left alone, and cost nothing.
#ifndef TROUPE_OPS_REGROUP_H_
#define TROUPE_OPS_REGROUP_H_

#include <cstdint>

#include "ops/tensor.h"
#include "proto/base/expert_rounds.h"

namespace troupe {

class Device;

// Of which rows.
struct RoundOfRows {
  Tensor offsets;  // i32 [ranks, experts + 1], dense
  int rank = 0;    // that has received the rows
  int64_t number = 0;
  int64_t rows_max = 0;  // of a round
};

// REQUIRES offsets that this processor can read.
inline ExpertRounds RoundsOf(const RoundOfRows& round) {
  return ExpertRounds(
      round.offsets.data<int32_t>(), static_cast<int>(round.offsets.rows()),
      static_cast<int>(round.offsets.columns()) - 1, round.rows_max);
}

// x and y do not overlap. X is f32, bf16 or fp16, the same for both.
struct RegroupArgs {
  RoundOfRows round;
  Tensor x;  // X [rows_max, c] dense
  Tensor y;  // X [rows_max, c] dense, written where the round has rows
};

void Regroup(Device& device, const RegroupArgs& args);
void Ungroup(Device& device, const RegroupArgs& args);

struct OwnOffsetsArgs {
  RoundOfRows round;
  Tensor own_offsets;  // i32 [experts / ranks + 1] dense, written
};

void OwnOffsets(Device& device, const OwnOffsetsArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_REGROUP_H_
