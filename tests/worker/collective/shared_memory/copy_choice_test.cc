#include "worker/collective/shared_memory/copy_choice.h"

#include <algorithm>
#include <string>

#include "gtest/gtest.h"

namespace troupe {
namespace {

// Of a run of either kind.
struct Times {
  absl::Duration stream;
  absl::Duration ordinary;
};

absl::Status TryWith(const Times& times, CopyChoice& choice) {
  return choice.Try([&times](CopyKind kind) {
    return kind == CopyKind::kStream ? times.stream : times.ordinary;
  });
}

TEST(CopyAs, CopiesTheSameEitherWay) {
  alignas(16) char to[300];
  const std::string from(300, 'x');
  for (const CopyKind kind : {CopyKind::kStream, CopyKind::kOrdinary}) {
    for (const size_t bytes : {0, 1, 64, 200}) {
      std::fill_n(to, sizeof(to), ' ');
      CopyAs(kind, to, from.data(), bytes);
      EXPECT_EQ(std::string(to, sizeof(to)),
                from.substr(0, bytes) + std::string(300 - bytes, ' '));
    }
  }
  CopyAs(CopyKind::kOrdinary, nullptr, nullptr, 0);
}

TEST(CopyChoice, FollowsTheTimes) {
  CopyChoice choice;
  EXPECT_EQ(choice.kind(), CopyKind::kStream);
  const absl::Duration us = absl::Microseconds(1);
  ASSERT_TRUE(TryWith({.stream = 20 * us, .ordinary = 9 * us}, choice).ok());
  EXPECT_EQ(choice.kind(), CopyKind::kOrdinary);
  ASSERT_TRUE(TryWith({.stream = 20 * us, .ordinary = 90 * us}, choice).ok());
  EXPECT_EQ(choice.kind(), CopyKind::kStream);
}

// What disturbs some runs only makes them longer.
TEST(CopyChoice, ComparesTheShortestTimes) {
  CopyChoice choice;
  int runs = 0;
  ASSERT_TRUE(choice
                  .Try([&runs](CopyKind kind) {
                    const bool disturbed =
                        (kind == CopyKind::kOrdinary) == (runs++ < 3);
                    return absl::Microseconds(
                        (disturbed ? 1000 : 0) +
                        (kind == CopyKind::kOrdinary ? 9 : 10));
                  })
                  .ok());
  EXPECT_EQ(runs, 2 * CopyChoice::kTurns);
  EXPECT_EQ(choice.kind(), CopyKind::kOrdinary);
}

TEST(CopyChoice, ReturnsTheErrorOfARun) {
  CopyChoice choice;
  EXPECT_EQ(choice.Try([](CopyKind) { return absl::AbortedError("gone"); }),
            absl::AbortedError("gone"));
}

TEST(CopyChoice, IsDueAtFirstAndAfterSoManyBytes) {
  constexpr int64_t kMin = CopyChoice::kBytesMin;
  CopyChoice choice;
  EXPECT_TRUE(choice.Due(kMin));
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE(choice.Due(CopyChoice::kBytesBetween - 2 * kMin));
    EXPECT_FALSE(choice.Due(kMin));
    EXPECT_TRUE(choice.Due(kMin));
  }
}

TEST(CopyChoice, IsNotDueForWhatGainsNothing) {
  CopyChoice choice;
  EXPECT_FALSE(choice.Due(0));
  EXPECT_FALSE(choice.Due(CopyChoice::kBytesMin - 1));
  EXPECT_TRUE(choice.Due(CopyChoice::kBytesMin));
}

}  // namespace
}  // namespace troupe
