#include "clients/cpp/cluster_commands.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(ClusterCommands, CanBeCopied) {
  EXPECT_EQ(UpCommand("/tmp/troupe", 4),
            "troupe up --workers 4 --dir /tmp/troupe");
  EXPECT_EQ(UpCommand("/my runs"), "troupe up --workers N --dir '/my runs'");
  EXPECT_EQ(DownCommand("/my runs"), "troupe down --dir '/my runs'");
}

}  // namespace
}  // namespace troupe
