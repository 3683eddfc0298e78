#include "storage/spill/spill_file.h"

#include <sys/stat.h>

#include <cstring>

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
            .owner = {.cluster = "c", .job = 7, .rank = 3},
            .piece_bytes = 2 * kPage};
  }

  TempDir dir_;
  const std::unique_ptr<IoEngine> engine_ = SmallEngine();
};

TEST_F(SpillFileTest, TakesItsRoomAtOnceAndGivesItBack) {
  {
    const auto spill = MakeSpill(*engine_, Options());
    EXPECT_EQ(NamesIn(dir_.path()).size(), 1u);
    struct stat info;
    ASSERT_EQ(stat(spill->path().c_str(), &info), 0);
    EXPECT_EQ(info.st_size, kSpillHeaderBytes + kBytes);
    EXPECT_GE(info.st_blocks * 512, kSpillHeaderBytes + kBytes);
    EXPECT_TRUE(IsSpillHeader(ReadText(spill->path())));
    EXPECT_TRUE(FileLock::IsHeld(spill->path()));
  }
  EXPECT_EQ(NamesIn(dir_.path()), std::vector<std::string>());
}

TEST_F(SpillFileTest, ReadsWhatItWrote) {
  const auto spill = MakeSpill(*engine_, Options());
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
        const absl::Status begun =
            kind == IoKind::kWrite ? spill->Write(range, out.data() + at, done)
                                   : spill->Read(range, in.data() + at, done);
        ASSERT_TRUE(begun.ok()) << begun;
        at += range.bytes;
      }
      ASSERT_EQ(at, kBytes);
      EXPECT_EQ(spill->in_flight(), 6);
      EXPECT_EQ(ended, 0) << "callbacks run in Poll";
      spill->Drain();
      EXPECT_EQ(ended, 6);
    }
    EXPECT_TRUE(in == out);
  }
  EXPECT_TRUE(IsSpillHeader(ReadText(spill->path()))) << "the header stays";
  engine_->ForgetMemory(in.data());
}

TEST_F(SpillFileTest, ReadsPartsAndSumsOfWhatItWrote) {
  const auto spill = MakeSpill(*engine_, Options());
  const SpillMemory out(8 * kPage, 1), in(8 * kPage, 2);
  ASSERT_TRUE(WriteNow(*spill, {0, 4 * kPage}, out.data()).ok());
  ASSERT_TRUE(
      WriteNow(*spill, {4 * kPage, 4 * kPage}, out.data() + 4 * kPage).ok());
  ASSERT_TRUE(ReadNow(*spill, {0, 8 * kPage}, in.data()).ok());
  EXPECT_TRUE(in == out);
  memset(in.data(), 0, in.bytes());
  ASSERT_TRUE(ReadNow(*spill, {2 * kPage, 4 * kPage}, in.data()).ok());
  EXPECT_EQ(memcmp(in.data(), out.data() + 2 * kPage, 4 * kPage), 0);
}

TEST_F(SpillFileTest, RefusesToReadWhatWasNotWrittenSo) {
  const auto spill = MakeSpill(*engine_, Options());
  const SpillMemory data(8 * kPage, 1);
  const auto expect_refused = [&](SpillRange range, uint64_t where) {
    EXPECT_TRUE(Fails(
        ReadNow(*spill, range, data.data()),
        absl::StatusCode::kFailedPrecondition,
        {spill->path(), "were not written so", absl::StrCat("see ", where)}));
  };
  expect_refused({0, kPage}, 0);
  ASSERT_TRUE(WriteNow(*spill, {0, 4 * kPage}, data.data()).ok());
  expect_refused({0, 3 * kPage}, 4 * kPage);
  expect_refused({kPage, kPage}, kPage);
  expect_refused({0, 6 * kPage}, 4 * kPage);
  // One page of the second piece: the first is still there.
  ASSERT_TRUE(WriteNow(*spill, {3 * kPage, kPage}, data.data()).ok());
  EXPECT_TRUE(ReadNow(*spill, {0, 2 * kPage}, data.data()).ok());
  EXPECT_TRUE(ReadNow(*spill, {3 * kPage, kPage}, data.data()).ok());
  expect_refused({0, 4 * kPage}, 2 * kPage);
  // As long as a write is on its way there is nothing to read.
  ASSERT_TRUE(
      spill->Write({0, 2 * kPage}, data.data(), [](const absl::Status&) {})
          .ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      spill->Read({0, 2 * kPage}, data.data(),
                  [](const absl::Status&) { ADD_FAILURE(); })));
}

TEST_F(SpillFileTest, RefusesWhatIsNotInTheTier) {
  const auto spill = MakeSpill(*engine_, Options());
  const SpillMemory data(2 * kPage, 1);
  for (const SpillRange range :
       {SpillRange{0, 0}, SpillRange{kBytes, kPage},
        SpillRange{0, kBytes + kPage}, SpillRange{kBytes - kPage, 2 * kPage},
        SpillRange{UINT64_MAX - kPage + 1, kPage},
        SpillRange{kPage, UINT64_MAX - kPage + 1}}) {
    EXPECT_TRUE(Fails(WriteNow(*spill, range, data.data()),
                      absl::StatusCode::kInvalidArgument,
                      {spill->path(), "do not lie in a tier of 131072"}));
    EXPECT_TRUE(absl::IsInvalidArgument(ReadNow(*spill, range, data.data())));
  }
  for (const SpillRange range : {SpillRange{1, kPage}, SpillRange{0, 100}}) {
    EXPECT_TRUE(Fails(WriteNow(*spill, range, data.data()),
                      absl::StatusCode::kInvalidArgument, {"aligned to 4096"}));
  }
  EXPECT_TRUE(
      absl::IsInvalidArgument(WriteNow(*spill, {0, kPage}, data.data() + 512)));
}

TEST_F(SpillFileTest, BoundsWhatIsInFlight) {
  const auto spill = MakeSpill(*engine_, Options());
  const SpillMemory data(kPage, 1);
  int ended = 0;
  const auto done = [&ended](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    ++ended;
  };
  for (int i = 0; i < SpillFile::kMovesMax; ++i) {
    ASSERT_TRUE(spill->Write({0, kPage}, data.data(), done).ok());
  }
  EXPECT_TRUE(Fails(spill->Write({0, kPage}, data.data(), done),
                    absl::StatusCode::kResourceExhausted,
                    {"1024 moves in flight"}));
  spill->Drain();
  EXPECT_EQ(ended, SpillFile::kMovesMax);
}

TEST_F(SpillFileTest, ACallbackMayStartTheNextMove) {
  const auto spill = MakeSpill(*engine_, Options());
  const SpillMemory out(8 * kPage, 1), in(8 * kPage, 2);
  bool read = false;
  ASSERT_TRUE(spill
                  ->Write({0, 8 * kPage}, out.data(),
                          [&](const absl::Status& status) {
                            ASSERT_TRUE(status.ok()) << status;
                            ASSERT_TRUE(spill
                                            ->Read({0, 8 * kPage}, in.data(),
                                                   [&](const absl::Status& s) {
                                                     read = s.ok();
                                                   })
                                            .ok());
                          })
                  .ok());
  spill->Drain();
  EXPECT_TRUE(read);
  EXPECT_TRUE(in == out);
}

TEST_F(SpillFileTest, WhatIsCancelledEndsOnceAndIsNotRead) {
  const SpillMemory data(kBytes, 1);
  for (const bool destroyed : {false, true}) {
    auto spill = MakeSpill(*engine_, Options());
    int ended = 0;
    int cancelled = 0;
    for (uint64_t at = 0; at < kBytes; at += 8 * kPage) {
      ASSERT_TRUE(spill
                      ->Write({at, 8 * kPage}, data.data() + at,
                              [&](const absl::Status& status) {
                                ++ended;
                                if (absl::IsCancelled(status)) ++cancelled;
                              })
                      .ok());
    }
    if (destroyed) {
      spill.reset();
    } else {
      spill->Cancel();
      spill->Drain();
      EXPECT_TRUE(absl::IsFailedPrecondition(
          ReadNow(*spill, {kBytes - 8 * kPage, 8 * kPage}, data.data())));
      // It is as good as new.
      EXPECT_TRUE(WriteNow(*spill, {0, kBytes}, data.data()).ok());
      EXPECT_TRUE(ReadNow(*spill, {0, kBytes}, data.data()).ok());
    }
    EXPECT_EQ(ended, 4);
    EXPECT_GE(cancelled, 3) << "the engine had room for one only";
  }
  EXPECT_EQ(NamesIn(dir_.path()), std::vector<std::string>());
}

TEST_F(SpillFileTest, SaysWhatIsWrongWithItsSize) {
  SpillFileOptions options = Options();
  options.bytes = uint64_t{1} << 50;
  EXPECT_TRUE(Fails(SpillFile::Create(*engine_, options).status(),
                    absl::StatusCode::kResourceExhausted,
                    {dir_.path(), "1048576.00 GiB are wanted", "are free",
                     "lower the tier's budget"}));
  for (const uint64_t bytes : {uint64_t{0}, kPage + 512}) {
    options.bytes = bytes;
    EXPECT_TRUE(Fails(SpillFile::Create(*engine_, options).status(),
                      absl::StatusCode::kInvalidArgument,
                      {dir_.path(), "a multiple of 4096"}));
  }
  EXPECT_EQ(NamesIn(dir_.path()), std::vector<std::string>());
}

}  // namespace
}  // namespace troupe
