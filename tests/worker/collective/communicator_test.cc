// What the base class does for all backends, with one that only counts.
#include "worker/collective/communicator.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

class CountingCommunicator final : public Communicator {
 public:
  explicit CountingCommunicator(int ranks, absl::Status result = {})
      : Communicator(GroupOf(ranks), 0), result_(std::move(result)) {}

  uint64_t sent_bytes() const override { return 0; }

  int calls = 0;
  int aborts = 0;
  absl::Status result_;
  bool blame = false;  // the last rank

 private:
  static CommGroup GroupOf(int ranks) {
    CommGroup group{.name = "data-0"};
    for (int i = 0; i < ranks; ++i) group.ranks.push_back(40 + i);
    return group;
  }
  absl::Status Answer(const Call& call) {
    ++calls;
    if (!blame) return result_;
    return PeerError({absl::StatusCode::kUnavailable, size() - 1, "died"},
                     {call.operation, SteadyNow(), call.deadline});
  }
  absl::Status DoAllReduce(const CommBlocks&, ReduceOp,
                           const Call& c) override {
    return Answer(c);
  }
  absl::Status DoReduceScatter(const CommBlocks&, const CommBuffer&, ReduceOp,
                               const Call& c) override {
    return Answer(c);
  }
  absl::Status DoAllGather(const CommBuffer&, const CommBlocks&,
                           const Call& c) override {
    return Answer(c);
  }
  absl::Status DoBroadcast(CommBuffer, int, const Call& c) override {
    return Answer(c);
  }
  absl::Status DoAllToAll(const CommBlocks&, const CommBlocks&,
                          const Call& c) override {
    return Answer(c);
  }
  absl::Status DoSend(CommBuffer, int, const Call& c) override {
    return Answer(c);
  }
  absl::Status DoRecv(CommBuffer, int, const Call& c) override {
    return Answer(c);
  }
  absl::Status DoReduce(const CommBlocks&, int, ReduceOp,
                        const Call& c) override {
    return Answer(c);
  }
  absl::Status DoShift(const ShiftBuffers&, const Call& c) override {
    return Answer(c);
  }
  absl::Status DoBarrier(const Call& c) override { return Answer(c); }
  void DoAbort(const absl::Status&) override { ++aborts; }
};

// Calls everything once.
void CallAll(Communicator& communicator, CommBuffer data) {
  std::vector<float> other(data.elements);
  const CommBuffer receive = CommBuffer::Of(absl::MakeSpan(other));
  EXPECT_TRUE(communicator.AllReduce(data, ReduceOp::kSum, {}).ok());
  const CommBuffer own = communicator.Block(data, communicator.rank());
  EXPECT_TRUE(
      communicator
          .ReduceScatter({.send = data, .receive = own}, ReduceOp::kSum, {})
          .ok());
  EXPECT_TRUE(communicator.AllGather({.send = own, .receive = data}, {}).ok());
  EXPECT_TRUE(communicator.Broadcast(data, 0, {}).ok());
  EXPECT_TRUE(communicator.Reduce(data, 0, ReduceOp::kSum, {}).ok());
  EXPECT_TRUE(
      communicator.AllToAll({.send = data, .receive = receive}, {}).ok());
  if (communicator.size() > 1) {
    EXPECT_TRUE(communicator.Send(data, 1, {}).ok());
    EXPECT_TRUE(communicator.Recv(data, 1, {}).ok());
    EXPECT_TRUE(
        communicator
            .Shift({.send = data, .to = 1, .receive = receive, .from = 2}, {})
            .ok());
  }
}

TEST(CommunicatorTest, NothingToMoveIsNoCall) {
  CountingCommunicator communicator(4);
  std::vector<float> none;
  CallAll(communicator, CommBuffer::Of(absl::MakeSpan(none)));
  EXPECT_EQ(communicator.calls, 0);
  std::vector<float> some(4);
  CallAll(communicator, CommBuffer::Of(absl::MakeSpan(some)));
  EXPECT_EQ(communicator.calls, 9);
}

TEST(CommunicatorTest, AGroupOfOneNeedsNoBackend) {
  CountingCommunicator communicator(1);
  std::vector<float> some = {1, 2}, copy(2);
  CallAll(communicator, CommBuffer::Of(absl::MakeSpan(some)));
  EXPECT_TRUE(communicator.Barrier({}).ok());
  EXPECT_EQ(communicator.calls, 0);
  ASSERT_TRUE(communicator
                  .AllToAll({.send = CommBuffer::Of(absl::MakeSpan(some)),
                             .receive = CommBuffer::Of(absl::MakeSpan(copy))},
                            {})
                  .ok());
  EXPECT_EQ(copy, some);
  std::vector<float> scattered(2), gathered(2);
  ASSERT_TRUE(
      communicator
          .ReduceScatter({.send = CommBuffer::Of(absl::MakeSpan(some)),
                          .receive = CommBuffer::Of(absl::MakeSpan(scattered))},
                         ReduceOp::kSum, {})
          .ok());
  EXPECT_EQ(scattered, some);
  ASSERT_TRUE(
      communicator
          .AllGather({.send = CommBuffer::Of(absl::MakeSpan(some)),
                      .receive = CommBuffer::Of(absl::MakeSpan(gathered))},
                     {})
          .ok());
  EXPECT_EQ(gathered, some);
  std::vector<float> shifted(2);
  ASSERT_TRUE(communicator
                  .Shift({.send = CommBuffer::Of(absl::MakeSpan(some)),
                          .to = 0,
                          .receive = CommBuffer::Of(absl::MakeSpan(shifted)),
                          .from = 0},
                         {})
                  .ok());
  EXPECT_EQ(shifted, some);
}

TEST(CommunicatorTest, AnEndOfAShiftThatIsNotThereIsNotMoved) {
  CountingCommunicator communicator(3);
  std::vector<float> some(4);
  const CommBuffer data = CommBuffer::Of(absl::MakeSpan(some));
  EXPECT_TRUE(communicator.Shift({.send = data, .receive = {}}, {}).ok());
  EXPECT_TRUE(communicator.Shift({.to = 1, .from = 2}, {}).ok());  // nothing
  EXPECT_EQ(communicator.calls, 0);
  EXPECT_TRUE(communicator.Shift({.send = data, .to = 1}, {}).ok());
  EXPECT_EQ(communicator.calls, 1);
}

TEST(CommunicatorTest, WhoHasNothingToExchangeIsPartOfItAllTheSame) {
  CountingCommunicator communicator(3);
  const std::vector<ElementRange> none(3);
  EXPECT_TRUE(
      communicator.AllToAll({.send_ranges = none, .receive_ranges = none}, {})
          .ok());
  EXPECT_EQ(communicator.calls, 1);
}

TEST(CommunicatorTest, BlocksAreWholeRows) {
  CountingCommunicator communicator(3);
  std::vector<float> some(35);
  const CommBuffer data = CommBuffer::Of(absl::MakeSpan(some));
  const float* const begin = some.data();
  EXPECT_EQ(communicator.Block(data, 0, 7).data, begin);
  EXPECT_EQ(communicator.Block(data, 0, 7).elements, 14);
  EXPECT_EQ(communicator.Block(data, 2, 7).data, begin + 28);
  EXPECT_EQ(communicator.Block(data, 2, 7).elements, 7);
  EXPECT_EQ(communicator.Block(data, 1).data, begin + 12);
}

TEST(CommunicatorTest, TheFirstErrorStays) {
  CountingCommunicator communicator(3);
  communicator.blame = true;
  std::vector<float> some(4);
  const CommBuffer data = CommBuffer::Of(absl::MakeSpan(some));
  const absl::Status first = communicator.AllReduce(
      data, ReduceOp::kSum, {.name = "gradients of block.3"});
  EXPECT_EQ(first.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(first.message(),
            "group data-0: all-reduce of gradients of block.3: rank 42 died "
            "(rank 40 waited 0)");
  EXPECT_EQ(MissingRank(first), 42);
  EXPECT_EQ(MissingRank(absl::UnavailableError("else")), absl::nullopt);
  EXPECT_EQ(communicator.Barrier({}), first);
  EXPECT_EQ(communicator.Broadcast(data, 1, {.name = "other"}), first);
  EXPECT_EQ(communicator.calls, 1);
  communicator.Abort(absl::InternalError("late"));  // broken already
  EXPECT_EQ(communicator.aborts, 0);
  EXPECT_EQ(communicator.Barrier({}), first);
}

TEST(CommunicatorTest, AbortStaysToo) {
  CountingCommunicator communicator(3);
  communicator.Abort(absl::InternalError("out of paper"));
  communicator.Abort(absl::InternalError("out of ink"));
  EXPECT_EQ(communicator.aborts, 1);
  EXPECT_EQ(communicator.Barrier({}),
            absl::CancelledError("group data-0 was aborted: out of paper"));
  EXPECT_EQ(communicator.calls, 0);
}

TEST(CommunicatorDeathTest, WrongArgumentsAreOurBugs) {
  CountingCommunicator communicator(3);
  std::vector<char> bytes(4);
  std::vector<float> some(4);
  const CommBuffer data = CommBuffer::Of(absl::MakeSpan(some));
  EXPECT_DEATH(
      communicator
          .AllReduce(CommBuffer::Of(absl::MakeSpan(bytes)), ReduceOp::kSum, {})
          .IgnoreError(),
      "bytes cannot be reduced");
  EXPECT_DEATH(communicator.Send(data, 0, {}).IgnoreError(), "sends to 0");
  EXPECT_DEATH(communicator.Broadcast(data, 3, {}).IgnoreError(), "root 3");
  EXPECT_DEATH(
      communicator.AllGather({.send = data.Slice(0, 1), .receive = data}, {})
          .IgnoreError(),
      "a block of 1 f32, where one of 2 f32");
  EXPECT_DEATH(
      communicator.AllGather({.send = data.Slice(1, 3), .receive = data}, {})
          .IgnoreError(),
      "overlaps");
  EXPECT_DEATH(
      communicator
          .ReduceScatter(
              {.send = data, .receive = data.Slice(0, 2), .row_elements = 3},
              ReduceOp::kSum, {})
          .IgnoreError(),
      "4 elements are not whole rows of 3");
  EXPECT_DEATH(
      communicator.AllToAll({.send = data, .receive = data}, {}).IgnoreError(),
      "Overlap");
  std::vector<float> other(4);
  const CommBuffer receive = CommBuffer::Of(absl::MakeSpan(other));
  EXPECT_DEATH(communicator.AllToAll({.send = data, .receive = receive}, {})
                   .IgnoreError(),
               "size");
  const auto exchange = [&](const std::vector<ElementRange>& gives,
                            const std::vector<ElementRange>& takes) {
    communicator
        .AllToAll({.send = data,
                   .receive = receive,
                   .send_ranges = gives,
                   .receive_ranges = takes},
                  {})
        .IgnoreError();
  };
  const std::vector<ElementRange> three = {{0, 1}, {1, 2}, {2, 3}};
  EXPECT_DEATH(exchange({{0, 1}}, three), "a block for each of 3 ranks");
  EXPECT_DEATH(exchange(three, {{0, 1}, {1, 2}, {3, 5}}),
               "a block of elements \\[3, 5\\) of 4");
  EXPECT_DEATH(exchange(three, {{0, 1}, {2, 1}, {3, 4}}),
               "a block of elements \\[2, 1\\) of 4");
  EXPECT_DEATH(exchange(three, {{0, 1}, {2, 4}, {3, 4}}),
               "blocks that are received overlap");
  exchange(three, {{0, 1}, {2, 2}, {2, 4}});  // of no elements: apart
  EXPECT_DEATH(
      communicator
          .Shift({.send = data, .to = 0, .receive = receive, .from = 1}, {})
          .IgnoreError(),
      "rank 0 shifts to 0 and from 1");
}

}  // namespace
}  // namespace troupe
