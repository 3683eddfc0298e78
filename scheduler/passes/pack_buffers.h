// Puts values that come and go into slots: those that live at one time side by
// side, the others wherever there is room, in as few bytes as it takes. Greedy
// by size (Pisarchyk and Lee, 2020, arXiv 2001.03288): largest first, each
// where it leaves least, in the lowest place that is high enough and free for
// as long as it lives, or in a new slot. What it leaves of that place above it
// stays free as long as the place was, so that values of many lives and sizes
// find room there; what it leaves before and after it is as high as itself.
//
// As the largest come first, nothing would ever lie across the end of a slot.
// Near linear: a value takes one place and leaves three, each found by its
// height and then by its time.
#ifndef TROUPE_SCHEDULER_PASSES_PACK_BUFFERS_H_
#define TROUPE_SCHEDULER_PASSES_PACK_BUFFERS_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace troupe {

// When a value is in use: times [begin, end] of a rank's programs, one after
// the other. One that ends before it begins is in use but for the time between:
// it goes on from the last moment to the first one.
struct Life {
  int begin = 0;
  int end = 0;

  bool GoesRound() const { return end < begin; }
};

// Index of a slot, and offset there: a sum of sizes, so that it is a multiple
// of whatever these all are.
using Place = std::pair<int, int64_t>;

struct Tenant {
  int64_t bytes = 0;
  Life life;
  Place place;  // what is looked for
};

// Gives every tenant its place. Returns the slots' bytes.
std::vector<int64_t> PackBuffers(std::vector<Tenant>& tenants);

// The most bytes that live at one time: no packing takes less.
int64_t MostAtOnce(const std::vector<Tenant>& tenants);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_PACK_BUFFERS_H_
