#include "worker/engine/start_agreement.h"

#include <functional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr int kRanks = 3;

// Runs a rank on each of three threads.
void RunRanks(InMemoryStore& store,
              const std::function<void(int rank, StartAgreement&)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      StartAgreement agreement(
          {.rank = rank, .ranks = kRanks, .name = absl::StrCat("w", rank)},
          store);
      body(rank, agreement);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(StartAgreement, AllAreToldWhatRankZeroChose) {
  InMemoryStore store;
  RunRanks(store, [](int rank, StartAgreement& agreement) {
    const auto choice = agreement.Choose(absl::StrCat("/c/", rank));
    EXPECT_EQ(choice.value(), "/c/0");
    EXPECT_TRUE(agreement.Begin({.step = 5, .content = *choice}).value());
  });
}

TEST(StartAgreement, WhatAllReadMayHaveAnyName) {
  InMemoryStore store;
  RunRanks(store, [](int, StartAgreement& agreement) {
    const auto choice = agreement.Choose("/donn\u00e9es/it's \"one\"");
    const auto begins = agreement.Begin({.step = 5, .content = *choice});
    EXPECT_TRUE(begins.ok() && *begins) << begins.status();
  });
}

TEST(StartAgreement, DamageForOneRankIsForAllAndTheNextRoundDecides) {
  InMemoryStore store;
  RunRanks(store, [](int rank, StartAgreement& agreement) {
    ASSERT_TRUE(agreement.Choose("newest").ok());
    const StartOutcome outcome = {.damage = rank == 2 ? "a bit\nflipped" : "",
                                  .step = rank == 2 ? 0 : 10};
    EXPECT_FALSE(agreement.Begin(outcome).value());
    EXPECT_EQ(agreement.damage(), "a bit\nflipped");
    EXPECT_EQ(agreement.Choose("older").value(), "older");
    EXPECT_TRUE(agreement.Begin({.step = 5}).value());
  });
}

TEST(StartAgreement, WhoLoadedSomethingElseIsNamed) {
  for (const bool other_step : {false, true}) {
    InMemoryStore store;
    RunRanks(store, [&](int rank, StartAgreement& agreement) {
      ASSERT_TRUE(agreement.Choose("/c").ok());
      const bool other = rank == 1;
      const absl::StatusOr<bool> begins =
          agreement.Begin({.step = other && other_step ? 40 : 50,
                           .content = other ? "manifest b" : "manifest a"});
      if (rank == 0) {
        EXPECT_TRUE(absl::IsFailedPrecondition(begins.status()));
        EXPECT_EQ(begins.status().message(),
                  absl::StrCat(
                      "w1 (rank 1) starts after step ", other_step ? 40 : 50,
                      " (manifest b), and w0 (rank 0) after step 50 (manifest "
                      "a): what they read is not the same; all workers must "
                      "see the same folder under its path"));
        store.Abort(begins.status());
      } else {
        EXPECT_FALSE(begins.ok()) << "nobody begins";
      }
    });
  }
}

// A rank that reads none has none to compare.
TEST(StartAgreement, WhoHasOtherTokensIsNamed) {
  for (const bool other : {false, true}) {
    InMemoryStore store;
    RunRanks(store, [&](int rank, StartAgreement& agreement) {
      ASSERT_TRUE(agreement.Choose("").ok());
      const std::vector<std::string> data = {"", "tokens a",
                                             other ? "tokens b" : "tokens a"};
      const absl::StatusOr<bool> begins = agreement.Begin({.data = data[rank]});
      EXPECT_EQ(begins.ok(), !other) << begins.status();
      if (rank != 0 || !other) return;
      EXPECT_EQ(begins.status(),
                absl::FailedPreconditionError(
                    "data.tokens: w2 (rank 2) has tokens b, and w1 (rank 1) "
                    "has tokens a: all workers must see the same file under "
                    "its path"));
      store.Abort(begins.status());
    });
  }
}

TEST(StartAgreement, OneRankNeedsNobody) {
  InMemoryStore store;
  store.Abort(absl::CancelledError("not to be used"));
  StartAgreement agreement({}, store);
  EXPECT_EQ(agreement.Choose("/c").value(), "/c");
  EXPECT_FALSE(agreement.Begin({.damage = "torn"}).value());
  EXPECT_EQ(agreement.damage(), "torn");
  EXPECT_EQ(agreement.Choose("/d").value(), "/d");
  EXPECT_TRUE(agreement.Begin({}).value());
}

}  // namespace
}  // namespace troupe
