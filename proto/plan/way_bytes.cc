#include "proto/plan/way_bytes.h"

#include <algorithm>
#include <limits>

#include "absl/numeric/int128.h"

namespace troupe {
namespace {

int64_t AtMost(absl::uint128 number) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return number > absl::uint128(kMost) ? kMost : static_cast<int64_t>(number);
}

// What a piece of an all-to-all needs, in and out.
int BuffersFor(Collective collective) {
  return collective == ALL_TO_ALL ? 2 : 1;
}

// Of the longest piece, of what goes in steps.
int64_t PieceElements(const Group::Way& way, int members,
                      const WayBuffer& buffer) {
  const int64_t pieces = PiecesOf(way, members, buffer);
  const auto longest = [&](int64_t elements) {
    return elements == 0 ? 0 : (elements - 1) / pieces + 1;
  };
  if (!PacksBlocks(way.collective())) return longest(buffer.elements);
  return members *
         longest(ExtentOf({.elements = buffer.elements}, members).even);
}

}  // namespace

bool PacksBlocks(Collective collective) {
  return collective == REDUCE_SCATTER || collective == ALL_GATHER ||
         collective == ALL_TO_ALL;
}

BlockExtent ExtentOf(const BlockRows& rows, int members) {
  const int64_t count = rows.elements / rows.row_elements;
  return {.even = count / members * rows.row_elements,
          .longer = static_cast<int>(count % members)};
}

bool Overlaps(const Group::Way& way) { return way.pieces() > 1; }

int PiecesAtOnce(const Group::Way& way) {
  return Overlaps(way) ? way.steps_size() : 1;
}

int64_t PiecesOf(const Group::Way& way, int members, const WayBuffer& buffer) {
  const int64_t pieces = std::max(1, way.pieces());
  if (!PacksBlocks(way.collective())) {
    return std::clamp<int64_t>(buffer.elements, 1, pieces);
  }
  // Of each block; those of one piece are packed side by side.
  const int64_t block = std::max<int64_t>(
      1, ExtentOf({.elements = buffer.elements}, members).even);
  const int64_t fit =
      kLevelScratchBytes / PiecesAtOnce(way) /
      (int64_t{BuffersFor(way.collective())} * members * buffer.element_bytes);
  const int64_t longest = std::clamp<int64_t>((block - 1) / pieces + 1, 1,
                                              std::max<int64_t>(1, fit));
  return (block - 1) / longest + 1;
}

std::vector<StepBytes> BytesOfSteps(const Group& group, const Group::Way& way,
                                    int members, const WayBuffer& buffer) {
  const bool packs = PacksBlocks(way.collective());
  const int64_t elements =
      packs ? members * ExtentOf({.elements = buffer.elements}, members).even
            : buffer.elements;
  const absl::uint128 bytes = absl::uint128(elements) * buffer.element_bytes;
  const int64_t of_piece = PieceElements(way, members, buffer);
  std::vector<StepBytes> of_steps;
  // `shares`: those of a piece that a step begins with or, of an all-gather,
  // ends with. `known`: the members that know what is broadcast. `waiting`:
  // those that wait for the sum, for each that takes part.
  int64_t shares = way.collective() == ALL_GATHER ? members : 1;
  int64_t known = 1;
  int64_t waiting = 1;
  for (const Group::Step& step : way.steps()) {
    const int64_t size = group.levels(step.level()).size();
    const bool comes_down =
        step.collective() == BROADCAST && way.collective() != BROADCAST;
    if (step.collective() == ALL_GATHER) shares /= size;
    if (comes_down) waiting /= size;
    StepBytes& of_step = of_steps.emplace_back();
    // Blocks are cut once, an all-reduce's shares again and again; either way
    // the longest is rounded up.
    of_step.whole = AtMost(absl::uint128((of_piece + shares - 1) / shares) *
                           buffer.element_bytes);
    // Shares differ in length; those of all communicators of the level are the
    // buffer, as often as members have the same.
    const int64_t times = way.collective() == BROADCAST
                              ? known
                              : members / size / shares / waiting;
    const int64_t passes = step.collective() == ALL_REDUCE ? 2 : 1;
    of_step.sent = AtMost(bytes * (passes * (size - 1) * times));
    if (step.collective() == REDUCE_SCATTER) shares *= size;
    if (step.collective() == REDUCE) waiting *= size;
    known *= size;
  }
  return of_steps;
}

}  // namespace troupe
