#include "scheduler/passes/place_gathers.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "proto/plan/buffer_kind.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

// Blocks of 3,280 parameters and a table of 1,024, tied to the head's.
Program GatheringStep() {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 2, .blocks = 4});
  job.mutable_parallelism()->set_zero(3);
  Draft draft = ExampleDraft(job, "declare buffers");
  return ProgramOf(draft.plan, 0, Program::TRAIN);
}

struct Gather {
  int buffer = 0;
  int index = 0;
  int last_use = 0;
  int64_t bytes = 0;
};

std::vector<Gather> GathersOf(const Program& program) {
  std::vector<Gather> gathers;
  for (int b = 0; b < program.buffers_size(); ++b) {
    if (program.buffers(b).kind() != Buffer::UNSHARDED_PARAMETERS) continue;
    Gather gather = {.buffer = b,
                     .index = -1,
                     .bytes = TierAligned(program.buffers(b).bytes(), DEVICE)};
    for (int i = 0; i < program.instructions_size(); ++i) {
      for (const Instruction::Operand& operand :
           program.instructions(i).operands()) {
        if (operand.buffer() != b) continue;
        if (gather.index < 0) gather.index = i;
        gather.last_use = i;
      }
    }
    gathers.push_back(gather);
  }
  return gathers;
}

// Beside nothing.
absl::optional<GatherPlaces> PlacesIn(const Program& program, int64_t bytes) {
  return PlaceGathers(program, {}, bytes);
}

TEST(PlaceGathers, ThereIsNoneWhereAUnitIsLargerThanTheRoom) {
  EXPECT_FALSE(PlacesIn(GatheringStep(), 0).has_value());
  EXPECT_FALSE(PlacesIn(GatheringStep(), 13000).has_value());
}

TEST(PlaceGathers, AllAreThereFromTheBeginningWithBytesForAll) {
  const Program program = GatheringStep();
  const std::vector<Gather> gathers = GathersOf(program);
  ASSERT_GE(gathers.size(), 10u);
  int64_t all = 0;
  for (const Gather& gather : gathers) all += gather.bytes;
  const absl::optional<GatherPlaces> places = PlacesIn(program, all);
  ASSERT_TRUE(places.has_value());
  EXPECT_EQ(places->bytes, all);
  for (const Gather& gather : gathers) {
    EXPECT_EQ(places->since[gather.index], 0);
  }
}

// However many bytes there are: in their order, never above them, and none in
// the place of another that is there, of a gradient either.
TEST(PlaceGathers, EachHasItsPlaceWithinTheBytes) {
  const Program program = GatheringStep();
  const std::vector<Gather> gathers = GathersOf(program);
  const int gradient = program.buffers_size();
  const Tenant beside = {.bytes = 6400, .life = {20, 30}};
  int64_t ahead_before = 0;
  bool placed = false;
  for (int64_t bytes = 10'000; bytes < 200'000; bytes += 1000) {
    const auto places = PlaceGathers(program, {{gradient, beside}}, bytes);
    EXPECT_TRUE(places.has_value() || !placed) << bytes;
    if (!places.has_value()) continue;
    placed = true;
    EXPECT_LE(places->bytes, bytes);
    int64_t ahead = 0;
    struct Block {
      int64_t offset, bytes;
      Life life;
    };
    std::vector<Block> blocks = {
        {places->offsets.at(gradient), beside.bytes, beside.life}};
    int since_before = 0;
    for (const Gather& gather : gathers) {
      const int since = places->since[gather.index];
      EXPECT_GE(since, since_before);
      EXPECT_LE(since, gather.index);
      since_before = since;
      ahead += gather.index - since;
      blocks.push_back({places->offsets.at(gather.buffer),
                        gather.bytes,
                        {since, gather.last_use}});
    }
    for (size_t a = 0; a < blocks.size(); ++a) {
      EXPECT_LE(blocks[a].offset + blocks[a].bytes, places->bytes);
      for (size_t b = 0; b < a; ++b) {
        const bool together = blocks[a].life.begin <= blocks[b].life.end &&
                              blocks[b].life.begin <= blocks[a].life.end;
        const bool apart =
            blocks[a].offset + blocks[a].bytes <= blocks[b].offset ||
            blocks[b].offset + blocks[b].bytes <= blocks[a].offset;
        EXPECT_TRUE(apart || !together) << bytes << ": " << a << " and " << b;
      }
    }
    ahead_before = std::max(ahead_before, ahead);
  }
  EXPECT_TRUE(placed);
  EXPECT_GT(ahead_before, 0);
}

}  // namespace
}  // namespace troupe
