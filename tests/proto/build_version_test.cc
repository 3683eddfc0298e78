#include "proto/build_version.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/protocol_version.h"

namespace troupe {
namespace {

BuildVersion Peer(int oldest, int protocol) {
  BuildVersion build;
  build.set_build("troupe x\ny");
  build.set_oldest_protocol(oldest);
  build.set_protocol(protocol);
  return build;
}

TEST(BuildVersion, BuildsTalkThatHaveAVersionInCommon) {
  EXPECT_TRUE(CheckCanTalk("the worker a", ThisBuild()).ok());
  const int newest = kProtocolVersion;
  const int oldest = kOldestProtocolVersion;
  EXPECT_TRUE(CheckCanTalk("it", Peer(newest, newest + 5)).ok());
  EXPECT_TRUE(CheckCanTalk("it", Peer(oldest - 5, oldest)).ok());
  EXPECT_TRUE(CheckCanTalk("it", Peer(oldest - 5, newest + 5)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      CheckCanTalk("it", Peer(newest + 1, newest + 5))));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      CheckCanTalk("it", Peer(oldest - 5, oldest - 1))));
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckCanTalk("it", BuildVersion())));
}

TEST(BuildVersion, ARefusalSaysWhoIsOlderAndWhatToDo) {
  EXPECT_EQ(CheckCanTalk("the worker a",
                         Peer(kProtocolVersion + 1, kProtocolVersion + 2))
                .message(),
            absl::StrCat("the worker a is troupe x\\ny and speaks protocol "
                         "versions ",
                         kProtocolVersion + 1, " to ", kProtocolVersion + 2,
                         "; this scheduler is ", kBuildName,
                         " and speaks protocol version ", kProtocolVersion,
                         "; install one build on both (the latter is older)"));
  EXPECT_EQ(DescribeBuild(ThisBuild()),
            absl::StrCat(kBuildName, " (protocol ", kProtocolVersion, ")"));
}

}  // namespace
}  // namespace troupe
