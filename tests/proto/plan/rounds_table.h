// A unit's table of rows that go to the ranks of their experts in several
// rounds and come back: gates and rows are the unit's inputs, the rows that
// come back its output. Experts are a GROUPED_LINEAR, of parameter 0, and
// SWIGLU.
#ifndef TROUPE_TESTS_PROTO_PLAN_ROUNDS_TABLE_H_
#define TROUPE_TESTS_PROTO_PLAN_ROUNDS_TABLE_H_

#include <cstdint>

#include "proto/unit.pb.h"

namespace troupe {

struct RoundsTableSpec {
  int rounds = 2;
  bool again = false;  // of the rounds but the first nothing is kept
};

inline constexpr int kRoundsRanks = 2;  // along "expert"
inline constexpr int64_t kRoundsExperts = 4;
inline constexpr int kOpsOfRound = 7;  // behind op 0, the all-gather

// 2 sequences of 3, 2 choices; a round has as many rows as a rank dispatches.
UnitTable RoundsTable(const RoundsTableSpec& spec);

}  // namespace troupe

#endif  // TROUPE_TESTS_PROTO_PLAN_ROUNDS_TABLE_H_
