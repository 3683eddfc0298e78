#include "storage/engine/make_engine.h"

#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

TEST(MakeIoEngine, AutoAlwaysFindsOne) {
  const auto engine = MakeIoEngine({.depth = 3});
  ASSERT_TRUE(engine.ok()) << engine.status().ToString();
  EXPECT_TRUE((*engine)->name() == "io_uring" ||
              (*engine)->name() == "thread_pool");
  EXPECT_EQ((*engine)->depth(), 3);
}

TEST(MakeIoEngine, TakesTheKindThatIsAskedFor) {
  const auto engine = MakeIoEngine({.kind = "thread_pool"});
  ASSERT_TRUE(engine.ok());
  EXPECT_EQ((*engine)->name(), "thread_pool");
}

TEST(MakeIoEngine, RefusesWhatItDoesNotKnow) {
  EXPECT_TRUE(Fails(MakeIoEngine({.kind = "aio"}).status(),
                    absl::StatusCode::kInvalidArgument,
                    {"\"aio\"", "auto, io_uring or thread_pool"}));
  EXPECT_TRUE(Fails(MakeIoEngine({.depth = 0}).status(),
                    absl::StatusCode::kInvalidArgument, {"depth 0"}));
}

}  // namespace
}  // namespace troupe
