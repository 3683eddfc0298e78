// What stays in a tier between its uses, where it rests further down and there
// is not room for all (memory.chunk_megabytes; PatrickStar, arXiv 2108.05818).
// A plan knows the future: what is used again last leaves first (Belady, 1966),
// so that among values of one size none could move less. What would move twice
// counts as half as far away.
//
// A chunk is what stays or leaves as one: a value, or those of several units.
#ifndef TROUPE_SCHEDULER_TIERS_CHUNKS_H_
#define TROUPE_SCHEDULER_TIERS_CHUNKS_H_

#include <cstdint>
#include <vector>

namespace troupe {

// Moments [begin, end] in which a chunk has to be there, with those in which it
// comes and goes.
struct ChunkUse {
  int chunk = 0;
  int64_t bytes = 0;  // of all of the chunk
  int begin = 0;
  int end = 0;
  // That it takes if the chunk does not stay until its next use: it comes
  // again, and has to leave before, where it has changed.
  int moves = 1;
};

// By use: whether the chunk stays until the next use of it. Never after its
// last one: what the next run of the program uses first, it finds where it
// rests. At each moment what is in use and what stays take no more than
// `capacity`, but where what is in use alone does. REQUIRES uses in the order
// in which they begin.
std::vector<bool> StayUntilNextUse(const std::vector<ChunkUse>& uses,
                                   int64_t capacity);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_TIERS_CHUNKS_H_
