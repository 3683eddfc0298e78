#include "clients/cpp/process_space.h"

#include <filesystem>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/disk/file_lock.h"

namespace troupe {
namespace {

std::string Dir() { return testing::TempDir(); }

TEST(ProcessSpace, IsReadBack) {
  const ProcessSpace here = ThisProcessSpace();
  EXPECT_EQ(
      ProcessSpaceIn(
          {{"host", here.host}, {"boot", here.boot}, {"pids", here.pids}}),
      here);
  EXPECT_EQ(ProcessSpaceIn({{"host", 7}, {"pids", "x"}}), ProcessSpace());
}

// A laptop gets another name in another network.
TEST(ProcessSpace, AMachineMayBeRenamed) {
  ProcessSpace space = ThisProcessSpace();
  space.host = "as it was called before";
  EXPECT_FALSE(LiveElsewhere(space, Dir()));
}

TEST(ProcessSpace, WhatRanBeforeTheMachineBegan) {
  ProcessSpace space = ThisProcessSpace();
  space.boot = "before";
  EXPECT_FALSE(LiveElsewhere(space, Dir())) << "it is gone";
  space.host = "no-such-host";
  EXPECT_TRUE(LiveElsewhere(space, Dir())) << "another machine";
  EXPECT_EQ(PlaceName(space), "no-such-host");
}

TEST(ProcessSpace, OfAnOlderBuildOnlyTheNameIsKnown) {
  EXPECT_FALSE(LiveElsewhere({}, Dir()));
  EXPECT_FALSE(LiveElsewhere({.host = HostName()}, Dir()));
  EXPECT_TRUE(LiveElsewhere({.host = "no-such-host"}, Dir()));
}

// Containers on one machine, of one name or not.
TEST(ProcessSpace, AnotherContainerLivesWhileItsSchedulerDoes) {
  ProcessSpace space = ThisProcessSpace();
  space.pids += 1;
  EXPECT_FALSE(LiveElsewhere(space, Dir())) << "it is gone";
  const auto lock = FileLock::Take(Dir() + "/lock", "its scheduler");
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_TRUE(LiveElsewhere(space, Dir()));
  EXPECT_EQ(PlaceName(space), HostName() + " in another container");
  EXPECT_FALSE(LiveElsewhere(ThisProcessSpace(), Dir()));
}

}  // namespace
}  // namespace troupe
