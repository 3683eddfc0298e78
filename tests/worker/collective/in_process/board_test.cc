#include "worker/collective/in_process/board.h"

#include <vector>

#include "gtest/gtest.h"
#include "proto/base/steady_time.h"
#include "tests/worker/collective/ranks.h"

namespace troupe {
namespace {

using absl::StatusCode;

const absl::Time kNever = absl::InfiniteFuture();

CommBuffer View(std::vector<char>& bytes) {
  return CommBuffer::Of(absl::MakeSpan(bytes));
}

TEST(BoardTest, AllSeeTheBuffersOfAll) {
  Board board(3);
  OnThreads(3, [&](int rank) {
    for (char round = 0; round < 50; ++round) {
      std::vector<char> mine(1, static_cast<char>(10 * rank + round));
      ASSERT_TRUE(board.Enter(rank, {"round", View(mine)}, kNever).ok());
      for (int other = 0; other < 3; ++other) {
        ASSERT_EQ(*static_cast<char*>(board.BufferOf(other).data),
                  10 * other + round);
      }
      board.NextPhase(rank);
    }
  });
}

TEST(BoardTest, NamesTheFirstWhoDidNotCome) {
  Board board(3);
  const Verdict late = board.Enter(0, {"x", {}}, SteadyNow());
  EXPECT_EQ(late.code, StatusCode::kDeadlineExceeded);
  EXPECT_EQ(late.peer, 1);
  // The group has failed: a rank that comes later hears the same.
  const Verdict second = board.Enter(1, {"x", {}}, kNever);
  EXPECT_EQ(second.code, StatusCode::kDeadlineExceeded);
  EXPECT_EQ(second.peer, 1);
}

TEST(BoardTest, SomeoneWhoLeftSaysMoreThanSomeoneLate) {
  Board board(3);
  board.Leave(2);
  const Verdict outcome = board.Enter(0, {"x", {}}, kNever);
  EXPECT_EQ(outcome.code, StatusCode::kUnavailable);
  EXPECT_EQ(outcome.peer, 2);
}

TEST(BoardTest, LeavingAfterTheLastCallHarmsNobody) {
  Board board(2);
  OnThreads(2, [&](int rank) {
    ASSERT_TRUE(board.Enter(rank, {"x", {}}, kNever).ok());
    board.Leave(rank);
  });
}

TEST(BoardTest, AFailureFreesThoseWhoWait) {
  Board board(3);
  OnThreads(3, [&](int rank) {
    if (rank == 2) {
      board.Fail({StatusCode::kUnavailable, 2, "aborted: x"});
      board.Fail({StatusCode::kUnavailable, 1, "later"});
      return;
    }
    std::vector<char> byte(1);
    const Verdict outcome = rank == 0 ? board.Enter(0, {"x", {}}, kNever)
                                      : board.Recv({.sender = 0, .receiver = 1},
                                                   View(byte), kNever);
    EXPECT_EQ(outcome.peer, 2);
    EXPECT_EQ(outcome.what, "aborted: x");
  });
}

TEST(BoardTest, MessagesKeepTheirOrder) {
  Board board(2);
  OnThreads(2, [&](int rank) {
    for (int i = 0; i < 200; ++i) {
      std::vector<char> byte(1, rank == 0 ? static_cast<char>(i) : 0);
      const Board::Route route{.sender = 0, .receiver = 1};
      ASSERT_TRUE((rank == 0 ? board.Send(route, View(byte), kNever)
                             : board.Recv(route, View(byte), kNever))
                      .ok());
      ASSERT_EQ(byte[0], static_cast<char>(i));
    }
  });
}

TEST(BoardTest, SenderAndReceiverNameEachOther) {
  std::vector<char> byte(1);
  Board sending(3);
  const Verdict sent =
      sending.Send({.sender = 0, .receiver = 2}, View(byte), SteadyNow());
  EXPECT_EQ(sent.code, StatusCode::kDeadlineExceeded);
  EXPECT_EQ(sent.peer, 2);
  Board receiving(3);
  receiving.Leave(1);
  const Verdict received =
      receiving.Recv({.sender = 1, .receiver = 0}, View(byte), kNever);
  EXPECT_EQ(received.code, StatusCode::kUnavailable);
  EXPECT_EQ(received.peer, 1);
}

TEST(BoardDeathTest, DifferentCallsAreABug) {
  EXPECT_DEATH(
      {
        Board board(2);
        OnThreads(2, [&](int rank) {
          board.Enter(rank, {rank == 0 ? "all-reduce" : "barrier", {}}, kNever);
        });
      },
      "called");
}

}  // namespace
}  // namespace troupe
