#include "storage/spill/spill_file.h"

#include <sys/stat.h>

#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/disk/file_lock.h"
#include "tests/storage/spill/spill_fixture.h"

namespace troupe {
namespace {

constexpr uint64_t kPage = kIoAlignment;
constexpr uint64_t kBytes = 32 * kPage;

class SpillFileTest : public testing::Test {
 protected:
  SpillFileOptions Options() const {
    return {.directory = dir_.path(),
            .bytes = kBytes,
            .owner = {.cluster = "c", .job = "7", .rank = 3}};
  }

  TempDir dir_;
  const std::unique_ptr<IoEngine> engine_ = SmallEngine();
};

TEST_F(SpillFileTest, TakesItsRoomAtOnceAndGivesItBack) {
  {
    Spill spill = MakeSpill(*engine_, Options());
    EXPECT_EQ(NamesIn(dir_.path()).size(), 1u);
    struct stat info;
    ASSERT_EQ(stat(spill.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_size, kSpillHeaderBytes + kBytes);
    EXPECT_GE(info.st_blocks * 512, kSpillHeaderBytes + kBytes);
    EXPECT_TRUE(IsSpillHeader(ReadText(spill.path())));
    EXPECT_TRUE(FileLock::IsHeld(spill.path()));
  }
  EXPECT_EQ(NamesIn(dir_.path()), std::vector<std::string>());
}

TEST_F(SpillFileTest, MayTakeMoreRoomThanItsTierHas) {
  SpillFileOptions options = Options();
  options.room = 3 * kBytes;
  const Spill spill = MakeSpill(*engine_, options);
  EXPECT_EQ(spill.file->bytes(), kBytes);
  EXPECT_EQ(std::filesystem::file_size(spill.path()),
            kSpillHeaderBytes + 3 * kBytes);
}

// Each rank of a host has them in its tier's budget.
TEST_F(SpillFileTest, ChecksumsLieWhereItIsTold) {
  std::vector<uint32_t> sums(kBytes / kPage);
  SpillFileOptions options = Options();
  options.sums = absl::MakeSpan(sums);
  Spill spill = MakeSpill(*engine_, options);
  SpillMemory out(kBytes, 1);
  const uint32_t of_zeros = sums[0];
  EXPECT_NE(of_zeros, 0);
  ASSERT_TRUE(spill.Write({.offset = 0, .bytes = kPage}, out.data()).ok());
  EXPECT_NE(sums[0], of_zeros);
  EXPECT_EQ(sums[1], of_zeros);
  ASSERT_TRUE(spill.Read({.offset = 0, .bytes = kPage}, out.data()).ok());
  sums[0] ^= 1;
  EXPECT_TRUE(
      absl::IsDataLoss(spill.Read({.offset = 0, .bytes = kPage}, out.data())));
}

TEST_F(SpillFileTest, ReadsWhatItWrote) {
  Spill spill = MakeSpill(*engine_, Options());
  const SpillMemory out(kBytes, 1), in(kBytes, 2);
  // All at once, in ranges of many sizes, with and without known memory.
  for (const bool known : {false, true}) {
    if (known) engine_->RegisterMemory(in.data(), kBytes).IgnoreError();
    memset(in.data(), 0, kBytes);
    for (const IoKind kind : {IoKind::kWrite, IoKind::kRead}) {
      int ended = 0;
      const auto done = [&ended](const absl::Status& status) {
        EXPECT_TRUE(status.ok()) << status;
        ++ended;
      };
      uint64_t at = 0;
      for (const uint64_t pages : {1, 2, 3, 5, 1, 20}) {
        const SpillRange range = {at, pages * kPage};
        const absl::Status begun = spill.queue->Start(
            kind, range, (kind == IoKind::kWrite ? out : in).data() + at, done);
        ASSERT_TRUE(begun.ok()) << begun;
        at += range.bytes;
      }
      ASSERT_EQ(at, kBytes);
      EXPECT_EQ(spill.queue->in_flight(), 6);
      EXPECT_EQ(ended, 0) << "callbacks run in Poll";
      spill.queue->Drain();
      EXPECT_EQ(ended, 6);
    }
    EXPECT_TRUE(in == out);
  }
  EXPECT_TRUE(IsSpillHeader(ReadText(spill.path()))) << "the header stays";
  engine_->ForgetMemory(in.data());
}

TEST_F(SpillFileTest, ReadsPartsAndSumsOfWhatItWrote) {
  Spill spill = MakeSpill(*engine_, Options());
  const SpillMemory out(8 * kPage, 1), in(8 * kPage, 2);
  ASSERT_TRUE(spill.Write({0, 4 * kPage}, out.data()).ok());
  ASSERT_TRUE(spill.Write({4 * kPage, 4 * kPage}, out.data() + 4 * kPage).ok());
  ASSERT_TRUE(spill.Read({0, 8 * kPage}, in.data()).ok());
  EXPECT_TRUE(in == out);
  memset(in.data(), 0, in.bytes());
  ASSERT_TRUE(spill.Read({2 * kPage, 4 * kPage}, in.data()).ok());
  EXPECT_EQ(memcmp(in.data(), out.data() + 2 * kPage, 4 * kPage), 0);
}

TEST_F(SpillFileTest, IsZeroAtFirst) {
  Spill spill = MakeSpill(*engine_, Options());
  const SpillMemory zeros(8 * kPage, 0), in(8 * kPage, 2), out(kPage, 1);
  memset(zeros.data(), 0, zeros.bytes());
  ASSERT_TRUE(spill.Read({0, 8 * kPage}, in.data()).ok());
  EXPECT_TRUE(in == zeros);
  ASSERT_TRUE(spill.Write({3 * kPage, kPage}, out.data()).ok());
  memcpy(zeros.data() + 3 * kPage, out.data(), kPage);
  ASSERT_TRUE(spill.Read({0, 8 * kPage}, in.data()).ok());
  EXPECT_TRUE(in == zeros) << "but what was written";
}

// The code that orders the moves may use a queue for each thread.
TEST_F(SpillFileTest, QueuesOfTwoThreadsMoveAtOnce) {
  Spill spill = MakeSpill(*engine_, Options());
  const SpillMemory out(kBytes, 1), in(kBytes, 2), later(kBytes / 2, 3);
  ASSERT_TRUE(spill.Write({0, kBytes}, out.data()).ok());
  std::thread reader([&] {
    const auto engine = SmallEngine();
    const auto queue = SpillQueue::Open(*spill.file, *engine).value();
    for (int i = 0; i < 20; ++i) {
      const absl::Status read =
          queue->Now(IoKind::kRead, {kBytes / 2, kBytes / 2}, in.data());
      EXPECT_TRUE(read.ok()) << read;
    }
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(spill.Write({0, kBytes / 2}, later.data()).ok());
  }
  reader.join();
  EXPECT_EQ(memcmp(in.data(), out.data() + kBytes / 2, kBytes / 2), 0);
  ASSERT_TRUE(spill.Read({0, kBytes}, in.data()).ok());
  EXPECT_EQ(memcmp(in.data(), later.data(), kBytes / 2), 0);
}

// A disk that has begun the first two requests when it is told to end, and
// answers for them long after; what was behind them is given back at once.
class LateDisk final : public SpillDiskInMemory {
 public:
  static constexpr int kBegun = 2;
  static constexpr int kLate = 5;  // polls

  LateDisk() : SpillDiskInMemory(4) {}
  bool has_answered() const { return late_ == 0; }

  int in_flight() const override {
    return SpillDiskInMemory::in_flight() + static_cast<int>(begun_.size());
  }
  std::vector<IoCompletion> Poll(absl::Duration timeout) override {
    if (!cancelled_) return {};
    if (late_ > 0 && --late_ == 0) {
      SpillDiskInMemory::Start(std::exchange(begun_, {}));
    }
    return SpillDiskInMemory::Poll(timeout);
  }
  void Cancel() override {
    cancelled_ = true;
    SpillDiskInMemory::Cancel();
  }

 protected:
  void Start(absl::Span<const IoRequest> requests) override {
    for (const IoRequest& request : requests) {
      if (begun_.size() < kBegun) {
        begun_.push_back(request);
      } else {
        SpillDiskInMemory::Start(absl::MakeConstSpan(&request, 1));
      }
    }
  }

 private:
  bool cancelled_ = false;
  int late_ = kLate;
  std::vector<IoRequest> begun_;
};

// The disk has the memory of what it has begun: a move ends after that.
TEST_F(SpillFileTest, AMoveThatIsToStopWaitsForWhatTheDiskHasBegun) {
  Spill spill = MakeSpill(*engine_, Options());
  const SpillMemory data(kBytes, 1);
  LateDisk disk;
  int asked = 0;
  const auto queue = SpillQueue::Open(*spill.file, disk,
                                      {.piece_bytes = kPage,
                                       .stopped =
                                           [&] {
                                             ++asked;
                                             return absl::AbortedError("why");
                                           }})
                         .value();
  EXPECT_EQ(queue->Now(IoKind::kWrite, {0, kBytes}, data.data()),
            absl::AbortedError("why"));
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(disk.has_answered());
  EXPECT_EQ(queue->in_flight(), 0);
  // All that was written, of 32 pieces.
  const std::string& written = disk.Content(spill.path());
  ASSERT_EQ(written.size(), kSpillHeaderBytes + LateDisk::kBegun * kPage);
  EXPECT_EQ(memcmp(written.data() + kSpillHeaderBytes, data.data(),
                   LateDisk::kBegun * kPage),
            0);
  EXPECT_TRUE(Fails(spill.Read({0, kPage}, data.data()),
                    absl::StatusCode::kFailedPrecondition,
                    {spill.path(), "a write of those at 0 has failed"}));
}

TEST_F(SpillFileTest, RefusesWhatIsNotInTheTier) {
  Spill spill = MakeSpill(*engine_, Options());
  const SpillMemory data(2 * kPage, 1);
  for (const SpillRange range :
       {SpillRange{0, 0}, SpillRange{kBytes, kPage},
        SpillRange{0, kBytes + kPage}, SpillRange{kBytes - kPage, 2 * kPage},
        SpillRange{UINT64_MAX - kPage + 1, kPage},
        SpillRange{kPage, UINT64_MAX - kPage + 1}}) {
    EXPECT_TRUE(Fails(spill.Write(range, data.data()),
                      absl::StatusCode::kInvalidArgument,
                      {spill.path(), "do not lie in a tier of 131072"}));
    EXPECT_TRUE(absl::IsInvalidArgument(spill.Read(range, data.data())));
  }
  for (const SpillRange range : {SpillRange{1, kPage}, SpillRange{0, 100}}) {
    EXPECT_TRUE(Fails(spill.Write(range, data.data()),
                      absl::StatusCode::kInvalidArgument, {"aligned to 4096"}));
  }
  EXPECT_TRUE(
      absl::IsInvalidArgument(spill.Write({0, kPage}, data.data() + 512)));
}

TEST_F(SpillFileTest, BoundsWhatIsInFlight) {
  Spill spill = MakeSpill(*engine_, Options());
  const SpillMemory data(kPage, 1);
  int ended = 0;
  const auto done = [&ended](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    ++ended;
  };
  for (int i = 0; i < SpillQueue::kMovesMax; ++i) {
    ASSERT_TRUE(
        spill.queue->Start(IoKind::kWrite, {0, kPage}, data.data(), done).ok());
  }
  EXPECT_TRUE(
      Fails(spill.queue->Start(IoKind::kWrite, {0, kPage}, data.data(), done),
            absl::StatusCode::kResourceExhausted, {"1024 moves in flight"}));
  spill.queue->Drain();
  EXPECT_EQ(ended, SpillQueue::kMovesMax);
}

TEST_F(SpillFileTest, ACallbackMayStartTheNextMove) {
  Spill spill = MakeSpill(*engine_, Options());
  const SpillMemory out(8 * kPage, 1), in(8 * kPage, 2);
  bool read = false;
  const auto written = [&](const absl::Status& status) {
    ASSERT_TRUE(status.ok()) << status;
    const absl::Status begun =
        spill.queue->Start(IoKind::kRead, {0, 8 * kPage}, in.data(),
                           [&](const absl::Status& s) { read = s.ok(); });
    ASSERT_TRUE(begun.ok()) << begun;
  };
  const absl::Status begun =
      spill.queue->Start(IoKind::kWrite, {0, 8 * kPage}, out.data(), written);
  ASSERT_TRUE(begun.ok()) << begun;
  spill.queue->Drain();
  EXPECT_TRUE(read);
  EXPECT_TRUE(in == out);
}

TEST_F(SpillFileTest, WhatIsCancelledEndsOnceAndIsNotRead) {
  const SpillMemory data(kBytes, 1);
  for (const bool destroyed : {false, true}) {
    Spill spill = MakeSpill(*engine_, Options());
    int ended = 0;
    int cancelled = 0;
    for (uint64_t at = 0; at < kBytes; at += 8 * kPage) {
      const absl::Status begun =
          spill.queue->Start(IoKind::kWrite, {at, 8 * kPage}, data.data() + at,
                             [&](const absl::Status& status) {
                               ++ended;
                               if (absl::IsCancelled(status)) ++cancelled;
                             });
      ASSERT_TRUE(begun.ok()) << begun;
    }
    if (destroyed) {
      spill.queue.reset();
    } else {
      spill.queue->Cancel();
      spill.queue->Drain();
      EXPECT_TRUE(absl::IsFailedPrecondition(
          spill.Read({kBytes - 8 * kPage, 8 * kPage}, data.data())));
      // It is as good as new.
      EXPECT_TRUE(spill.Write({0, kBytes}, data.data()).ok());
      EXPECT_TRUE(spill.Read({0, kBytes}, data.data()).ok());
    }
    EXPECT_EQ(ended, 4);
    EXPECT_GE(cancelled, 3) << "the engine had room for one only";
  }
  EXPECT_EQ(NamesIn(dir_.path()), std::vector<std::string>());
}

TEST_F(SpillFileTest, SaysWhatIsWrongWithItsSize) {
  SpillFileOptions options = Options();
  options.bytes = uint64_t{1} << 50;
  EXPECT_TRUE(Fails(SpillFile::Create(options).status(),
                    absl::StatusCode::kResourceExhausted,
                    {dir_.path(), "1048576.00 GiB are wanted", "are free",
                     "lower the tier's budget"}));
  for (const uint64_t bytes : {uint64_t{0}, kPage + 512}) {
    options.bytes = bytes;
    EXPECT_TRUE(Fails(SpillFile::Create(options).status(),
                      absl::StatusCode::kInvalidArgument,
                      {dir_.path(), "a multiple of 4096"}));
  }
  EXPECT_EQ(NamesIn(dir_.path()), std::vector<std::string>());
}

}  // namespace
}  // namespace troupe
