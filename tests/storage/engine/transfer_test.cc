#include "storage/engine/transfer.h"

#include <cerrno>

#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

using Next = FileTransfer::Next;

alignas(kIoAlignment) char buffer[3 * kIoAlignment];

IoRequest Request(IoKind kind, size_t bytes) {
  return {.kind = kind, .offset = kIoAlignment, .data = buffer, .bytes = bytes};
}

TEST(FileTransfer, ContinuesAfterAShortOperation) {
  FileTransfer t(Request(IoKind::kRead, 100), "f");
  EXPECT_EQ(t.Advance(30, false), Next::kAgain);
  EXPECT_EQ(t.offset(), kIoAlignment + 30);
  EXPECT_EQ(t.data(), buffer + 30);
  EXPECT_EQ(t.bytes(), 70u);
  EXPECT_EQ(t.Advance(70, false), Next::kDone);
  EXPECT_TRUE(t.status().ok());
}

TEST(FileTransfer, RepeatsWhatWasInterrupted) {
  FileTransfer t(Request(IoKind::kWrite, 100), "f");
  EXPECT_EQ(t.Advance(-EINTR, false), Next::kAgain);
  EXPECT_EQ(t.Advance(-EAGAIN, false), Next::kAgain);
  EXPECT_EQ(t.bytes(), 100u);
}

TEST(FileTransfer, LeavesDirectWhenRefusedOrMisaligned) {
  FileTransfer t(Request(IoKind::kWrite, 2 * kIoAlignment), "f");
  EXPECT_TRUE(t.FitsDirect());
  EXPECT_EQ(t.Advance(kIoAlignment, true), Next::kAgain);
  EXPECT_TRUE(t.FitsDirect());
  EXPECT_EQ(t.Advance(-EINVAL, true), Next::kAgain);
  EXPECT_FALSE(t.FitsDirect());
  EXPECT_TRUE(t.direct_refused());
  // The same errno without O_DIRECT is an error.
  EXPECT_EQ(t.Advance(-EINVAL, false), Next::kDone);
  EXPECT_TRUE(Fails(t.status(), absl::StatusCode::kInvalidArgument,
                    {"f: write of 4096 bytes at offset 8192", "EINVAL"}));
  EXPECT_FALSE(FileTransfer(Request(IoKind::kWrite, 100), "f").FitsDirect());
}

TEST(FileTransfer, EndsWithTheOperationDuringWhichItWasCancelled) {
  for (const int result : {30, -EINTR, -EAGAIN, -ECANCELED}) {
    FileTransfer t(Request(IoKind::kWrite, 100), "f");
    t.Cancel();
    EXPECT_EQ(t.Advance(result, false), Next::kDone);
    EXPECT_TRUE(
        Fails(t.status(), absl::StatusCode::kCancelled, {"was cancelled"}));
  }
  FileTransfer moved(Request(IoKind::kWrite, 100), "f");
  moved.Cancel();
  EXPECT_EQ(moved.Advance(100, false), Next::kDone);
  EXPECT_TRUE(moved.status().ok());
  FileTransfer failed(Request(IoKind::kWrite, 100), "f");
  failed.Cancel();
  EXPECT_EQ(failed.Advance(-EIO, false), Next::kDone);
  EXPECT_TRUE(absl::IsUnavailable(failed.status()));
}

TEST(FileTransfer, MovesAtMostAGibibyteAtOnce) {
  FileTransfer t(Request(IoKind::kRead, size_t{5} << 30), "f");
  EXPECT_EQ(t.bytes(), size_t{1} << 30);
}

TEST(FileTransfer, EndOfFileAndNothingWritten) {
  FileTransfer read(Request(IoKind::kRead, 100), "f");
  EXPECT_EQ(read.Advance(60, false), Next::kAgain);
  EXPECT_EQ(read.Advance(0, false), Next::kDone);
  EXPECT_TRUE(Fails(read.status(), absl::StatusCode::kOutOfRange,
                    {"ends 40 bytes before"}));
  FileTransfer write(Request(IoKind::kWrite, 100), "f");
  EXPECT_EQ(write.Advance(0, false), Next::kDone);
  EXPECT_TRUE(Fails(write.status(), absl::StatusCode::kDataLoss, {"nothing"}));
}

}  // namespace
}  // namespace troupe
