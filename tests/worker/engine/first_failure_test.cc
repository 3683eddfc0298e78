#include "worker/engine/first_failure.h"

#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "worker/collective/call_error.h"
#include "worker/collective/create_communicator.h"
#include "worker/collective/key_value_store.h"

namespace troupe {
namespace {

class FirstFailureTest : public testing::Test {
 protected:
  void SetUp() override {
    auto alone = CreateCommunicator(
        "in_process",
        {.group = {.name = "alone", .ranks = {0}}, .store = &store_});
    ASSERT_TRUE(alone.ok()) << alone.status();
    communicators_.push_back(nullptr);  // of a group that meets nobody
    communicators_.push_back(*std::move(alone));
  }

  // Whether the communicator has been aborted.
  bool Ended() { return !communicators_[1]->Barrier({}).ok(); }

  InMemoryStore store_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  FirstFailure failure_;
  const absl::Status own_ = absl::InternalError("a disk broke");
  const absl::Status abort_ = absl::CancelledError("the job was cancelled");
};

TEST_F(FirstFailureTest, AnAbortIsTheReasonOfWhatItBreaks) {
  ASSERT_TRUE(failure_.Attach(communicators_).ok());
  EXPECT_TRUE(failure_.Aborted(abort_));
  EXPECT_FALSE(failure_.Aborted(own_)) << "only the first one counts";
  EXPECT_EQ(failure_.aborted(), abort_);
  failure_.EndWaits(abort_);
  EXPECT_TRUE(Ended());
  failure_.FailedIn(own_);
  EXPECT_EQ(failure_.ReasonOf(own_), abort_);
  EXPECT_TRUE(failure_.ReasonOf(absl::OkStatus()).ok());
}

TEST_F(FirstFailureTest, WhatFailedBeforeAnAbortStaysTheReason) {
  ASSERT_TRUE(failure_.Attach(communicators_).ok());
  failure_.FailedIn(own_);
  EXPECT_TRUE(Ended());
  EXPECT_TRUE(failure_.Aborted(abort_));
  EXPECT_EQ(failure_.ReasonOf(own_), own_);
}

// A peer that is gone is what the abort says, and says better.
TEST_F(FirstFailureTest, WhatFailedForAnotherRankIsNotTheFirst) {
  const absl::Status missing = PeerError({.rank = 3, .what = "died"});
  failure_.FailedIn(missing);
  EXPECT_TRUE(failure_.Aborted(abort_));
  EXPECT_EQ(failure_.ReasonOf(missing), abort_);
}

TEST_F(FirstFailureTest, NobodyJoinsAfterAnAbort) {
  EXPECT_TRUE(failure_.Aborted(abort_));
  EXPECT_EQ(failure_.Attach(communicators_), abort_);
  failure_.EndWaits(abort_);
  EXPECT_FALSE(Ended()) << "it was not attached";
}

TEST_F(FirstFailureTest, NothingIsAbortedOnceTheRunHasEnded) {
  ASSERT_TRUE(failure_.Attach(communicators_).ok());
  EXPECT_TRUE(failure_.ReasonOf(absl::OkStatus()).ok());
  failure_.EndWaits(abort_);
  EXPECT_FALSE(Ended());
}

}  // namespace
}  // namespace troupe
