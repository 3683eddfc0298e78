#include "storage/disk/errno_status.h"

#include <cerrno>

#include "gtest/gtest.h"
#include "proto/base/status.h"
#include "storage/disk/storage_error.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

TEST(ErrnoStatus, NamesTheErrnoAndTheWayOut) {
  EXPECT_TRUE(Fails(ErrnoStatus(ENOSPC, "/a: write"),
                    absl::StatusCode::kResourceExhausted,
                    {"/a: write: ENOSPC", "free space"}));
  EXPECT_TRUE(Fails(ErrnoStatus(EIO, "/a"), absl::StatusCode::kUnavailable,
                    {"EIO", "kernel's log"}));
  EXPECT_TRUE(Fails(ErrnoStatus(ENOENT, "/a"), absl::StatusCode::kNotFound,
                    {"no such file"}));
}

TEST(ErrnoStatus, IsOfTheStorageAndMayBeWantOfRoom) {
  EXPECT_TRUE(IsNoRoom(ErrnoStatus(ENOSPC, "/a")));
  EXPECT_TRUE(IsNoRoom(Annotate(ErrnoStatus(EDQUOT, "/a"), "job 3")));
  for (const int error : {EIO, EROFS, 9999}) {
    EXPECT_TRUE(IsOfStorage(ErrnoStatus(error, "/a"))) << error;
    EXPECT_FALSE(IsNoRoom(ErrnoStatus(error, "/a"))) << error;
  }
  EXPECT_FALSE(IsNoRoom(absl::ResourceExhaustedError("cuda:0: out of memory")));
  EXPECT_FALSE(IsOfStorage(NotOfStorage(ErrnoStatus(EIO, "/a"))));
  EXPECT_FALSE(IsOfStorage(absl::OkStatus()));
}

TEST(ErrnoStatus, UnknownOnesKeepTheirName) {
  EXPECT_TRUE(Fails(ErrnoStatus(EPIPE, "/a"), absl::StatusCode::kInternal,
                    {"EPIPE", "Broken pipe"}));
  EXPECT_TRUE(Fails(ErrnoStatus(9999, "/a"), absl::StatusCode::kInternal,
                    {"errno 9999"}));
}

}  // namespace
}  // namespace troupe
