// Collectives over TCP of which each rank sends its bytes straight to each
// other: below these sizes one step with more bytes beats a ring's many. The
// worker chooses by them (worker/collective/gloo), the simulator counts.
//
// Sums of bf16 and fp16 go straight, however large they are: a rank adds up its
// block in f32 and rounds once, where a ring would round at each step.
#ifndef TROUPE_PROTO_PLAN_DIRECT_COLLECTIVES_H_
#define TROUPE_PROTO_PLAN_DIRECT_COLLECTIVES_H_

#include <cstdint>

namespace troupe {

// That a rank sends, all told.
inline constexpr int64_t kDirectBytes = 64 << 10;
// Of the buffer that a root has.
inline constexpr int64_t kDirectBroadcastBytes = 64 << 10;

// `bytes` are those of the whole buffer.

// All-reduces and reduces, of which each rank sends all.
inline bool SendsWholeDirectly(int64_t bytes, int ranks) {
  return bytes * (ranks - 1) <= kDirectBytes;
}
// All-gathers and reduce-scatters, of which it sends blocks.
inline bool SendsBlocksDirectly(int64_t bytes, int ranks) {
  return bytes / ranks * (ranks - 1) <= kDirectBytes;
}
inline bool BroadcastsDirectly(int64_t bytes, int ranks) {
  return ranks == 2 || bytes <= kDirectBroadcastBytes;
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_DIRECT_COLLECTIVES_H_
