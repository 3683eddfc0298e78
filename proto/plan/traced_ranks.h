// Of which ranks there are timelines. They are large, so of a large job only a
// few ranks have one, evenly spread: the same ones when a step is predicted and
// when it is measured, so that one can be held against the other.
#ifndef TROUPE_PROTO_PLAN_TRACED_RANKS_H_
#define TROUPE_PROTO_PLAN_TRACED_RANKS_H_

#include <cstdint>

namespace troupe {

inline constexpr int kTracedRanksMax = 64;

// Whether this one of `ranks` ranks is among them; rank 0 always is.
inline bool IsTraced(int rank, int ranks) {
  if (ranks <= kTracedRanksMax || rank == 0) return true;
  const auto share = [ranks](int64_t r) { return r * kTracedRanksMax / ranks; };
  return share(rank) != share(rank - 1);
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_TRACED_RANKS_H_
