#include "proto/plan/ready_queue.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "proto/base/philox.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

using Indices = std::vector<int>;

TEST(ReadyQueue, LanesRunInOrderAndWaitForEachOther) {
  // Two loads on the data lane, two forwards on the compute lane.
  const Program program =
      ParseProgram("L m0\nL m1\nF u0 m0 ^0\nF u0 m1 ^1\n").value();
  ReadyQueue queue(program, AllLanes());
  EXPECT_EQ(queue.Start(), (Indices{0}));
  EXPECT_EQ(queue.Finish(0), (Indices{1, 2}));
  EXPECT_EQ(queue.Finish(1), Indices{});
  EXPECT_FALSE(queue.done());
  EXPECT_EQ(queue.Finish(2), (Indices{3}));
  EXPECT_EQ(queue.Finish(3), Indices{});
  EXPECT_TRUE(queue.done());
  EXPECT_EQ(queue.Start(), (Indices{0}));  // and again
}

TEST(ReadyQueue, TellsWhoWaitsForWhat) {
  const Program program =
      ParseProgram("L m0\nF u0 m0 ^0\nR u0 g0 ^1\n").value();
  ReadyQueue queue(program, AllLanes());
  queue.Start();
  const std::vector<ReadyQueue::LaneHead> heads = queue.Heads();
  ASSERT_EQ(heads.size(), 3u);
  EXPECT_TRUE(heads[0].running);
  EXPECT_EQ(heads[1].waits_for, (Indices{0}));
  EXPECT_EQ(heads[2].waits_for, (Indices{1}));
}

// Compute is issued ahead of what it has finished; the collective lane follows
// it, a lane of the host waits.
TEST(ReadyQueue, LanesOfTheDeviceFollowWhatIsIssued) {
  const Program program =
      ParseProgram("K u0\nF u0 m0 ^0\nR u0 g0 ^1\nF u1 m0 ^1\nK u1 ^1\n")
          .value();
  ReadyQueue queue(program, AllLanes());
  EXPECT_EQ(queue.Start(), (Indices{0}));
  EXPECT_EQ(queue.Finish(0), (Indices{1}));
  EXPECT_EQ(queue.Issue(1), (Indices{2, 3}));
  const std::vector<ReadyQueue::LaneHead> heads = queue.Heads();
  ASSERT_EQ(heads.size(), 3u);
  EXPECT_EQ(heads[0].instruction, 2);
  EXPECT_EQ(heads[1].instruction, 3);
  EXPECT_EQ(heads[2].waits_for, (Indices{1}));
  EXPECT_EQ(queue.Issue(3), Indices{});
  EXPECT_EQ(queue.Finish(1), (Indices{4}));
  EXPECT_EQ(queue.Finish(2), Indices{});  // never issued: at once
  EXPECT_EQ(queue.Finish(4), Indices{});
  EXPECT_FALSE(queue.done());
  EXPECT_EQ(queue.Finish(3), Indices{});
  EXPECT_TRUE(queue.done());
}

TEST(ReadyQueueDeathTest, TheHostsLanesAreNotIssued) {
  const Program program = ParseProgram("K u0\n").value();
  ReadyQueue queue(program, AllLanes());
  queue.Start();
  EXPECT_DEATH(queue.Issue(0), "instruction 0");
}

TEST(ReadyQueueDeathTest, RefusesWhatWasNotHandedOut) {
  const Program program = ParseProgram("L m0\nF u0 m0 ^0\n").value();
  ReadyQueue queue(program, AllLanes());
  queue.Start();
  EXPECT_DEATH(queue.Finish(1), "instruction 1");
}

// Random programs: whatever order instructions finish in, each is handed out
// once, after all that it waits for, and never two of one lane at a time.
TEST(ReadyQueue, AnyFinishOrderIsSound) {
  const int lanes[] = {LaneNamed("COMPUTE"), LaneNamed("COLLECTIVE"),
                       LaneNamed("DATA")};
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const PhiloxStream random{.seed = seed};
    uint64_t drawn = 0;
    const auto draw = [&](uint32_t n) {
      return PhiloxUint32(random, drawn++) % n;
    };
    Program program;
    const int size = 1 + draw(30);
    for (int i = 0; i < size; ++i) {
      Instruction* instruction = program.add_instructions();
      instruction->set_lane(lanes[draw(3)]);
      for (int j = 0; j < i; ++j) {
        if (draw(6) == 0) instruction->add_after(j);
      }
    }
    ReadyQueue queue(program, AllLanes());
    std::vector<int> running = queue.Start();
    std::vector<bool> finished(size, false);
    int count = 0;
    while (!queue.done()) {
      ASSERT_FALSE(running.empty()) << "stuck, seed " << seed;
      std::vector<bool> busy(AllLanes().size(), false);
      for (const int i : running) {
        ASSERT_FALSE(busy[program.instructions(i).lane()]);
        busy[program.instructions(i).lane()] = true;
        for (const int earlier : program.instructions(i).after()) {
          ASSERT_TRUE(finished[earlier]);
        }
      }
      const int picked = draw(running.size());
      const int done = running[picked];
      running.erase(running.begin() + picked);
      finished[done] = true;
      ++count;
      for (const int next : queue.Finish(done)) running.push_back(next);
    }
    EXPECT_EQ(count, size);
    EXPECT_TRUE(std::all_of(finished.begin(), finished.end(),
                            [](bool f) { return f; }));
  }
}

}  // namespace
}  // namespace troupe
