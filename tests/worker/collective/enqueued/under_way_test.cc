#include "worker/collective/enqueued/under_way.h"

#include <memory>

#include "gtest/gtest.h"

namespace troupe {
namespace {

class FakeFence final : public Fence {
 public:
  explicit FakeFence(const int& reached, int place)
      : reached_(reached), place_(place) {}
  absl::Status Await() override { return absl::OkStatus(); }
  bool HasRun() const override { return reached_ >= place_; }
  int64_t NanosSince(const Fence& earlier) const override { return 0; }

 private:
  const int& reached_;
  const int place_;
};

class FakeHold final : public Transport::Hold {
 public:
  explicit FakeHold(int& held) : held_(held) { ++held_; }
  ~FakeHold() override { --held_; }

 private:
  int& held_;
};

const absl::Time kStart = absl::FromUnixSeconds(1000);

class UnderWayTest : public testing::Test {
 protected:
  std::unique_ptr<Fence> At(int place) {
    return std::make_unique<FakeFence>(reached_, place);
  }
  void Add(const std::string& what, int begin, int end) {
    under_way_.Add({.awaited = {.what = what, .timeout = absl::Seconds(10)},
                    .begin = At(begin),
                    .hold = std::make_unique<FakeHold>(held_)});
    under_way_.Enqueued(At(end));
  }

  int reached_ = 0;  // place in the queue
  int held_ = 0;
  UnderWay under_way_;
};

TEST_F(UnderWayTest, ForgetsWhatHasRun) {
  Add("first", 1, 2);
  Add("second", 2, 3);
  EXPECT_EQ(held_, 2);
  reached_ = 2;
  under_way_.Sweep(kStart);
  EXPECT_EQ(under_way_.oldest().what, "second");
  EXPECT_EQ(held_, 1);
  reached_ = 3;
  under_way_.Sweep(kStart);
  EXPECT_TRUE(under_way_.empty());
  EXPECT_EQ(held_, 0);
}

TEST_F(UnderWayTest, TheOldestIsDueItsTimeoutAfterItsTurn) {
  Add("first", 1, 2);
  Add("second", 2, 3);
  under_way_.Sweep(kStart);
  EXPECT_EQ(under_way_.due(), absl::InfiniteFuture());
  reached_ = 1;
  under_way_.Sweep(kStart + absl::Seconds(60));
  EXPECT_EQ(under_way_.due(), kStart + absl::Seconds(70));
  under_way_.Sweep(kStart + absl::Seconds(65));
  EXPECT_EQ(under_way_.due(), kStart + absl::Seconds(70));
  reached_ = 2;
  under_way_.Sweep(kStart + absl::Seconds(69));
  EXPECT_EQ(under_way_.due(), kStart + absl::Seconds(79));
}

TEST_F(UnderWayTest, WhatCouldNotBeEnqueuedIsForgotten) {
  under_way_.Add({.awaited = {.what = "first"},
                  .begin = At(1),
                  .hold = std::make_unique<FakeHold>(held_)});
  reached_ = 5;
  under_way_.Sweep(kStart);  // it is not in the queue
  EXPECT_FALSE(under_way_.empty());
  under_way_.Enqueued(nullptr);
  EXPECT_TRUE(under_way_.empty());
  EXPECT_EQ(held_, 0);
}

TEST_F(UnderWayTest, LetsGoOfAll) {
  Add("first", 1, 2);
  under_way_.LetGo();
  EXPECT_EQ(held_, 0);
  EXPECT_EQ(under_way_.oldest().what, "first");
}

}  // namespace
}  // namespace troupe
