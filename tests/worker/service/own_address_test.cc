#include "worker/service/own_address.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(OwnAddress, LoopbackIsOne) {
  EXPECT_THAT(OwnAddresses(), Contains(HasSubstr("127.0.0.1 (")));
  EXPECT_TRUE(CheckOwnAddress("127.0.0.1").ok());
  EXPECT_TRUE(CheckOwnAddress("localhost").ok());
}

// Set aside for documents (RFC 5737), so that no host has it.
TEST(OwnAddress, AnothersIsRefusedWithThoseThatThereAre) {
  const absl::Status status = CheckOwnAddress("198.51.100.7");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("--address: 198.51.100.7 is no address of this host"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("127.0.0.1 ("));
}

TEST(OwnAddress, EveryAddressIsNone) {
  for (const char* every : {"0.0.0.0", "::"}) {
    EXPECT_THAT(std::string(CheckOwnAddress(every).message()),
                HasSubstr(std::string(every) + " is no address of this host"));
  }
}

// ".invalid" is no domain (RFC 2606); without a resolver that is not known.
TEST(OwnAddress, ANameThatIsNoneIsRefused) {
  const absl::Status status = CheckOwnAddress("gpu-7.invalid");
  EXPECT_THAT(status.code(), AnyOf(absl::StatusCode::kInvalidArgument,
                                   absl::StatusCode::kUnavailable));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("--address: gpu-7.invalid"));
}

TEST(OwnAddress, LoopbackIsForASchedulerOfThisHost) {
  for (const char* address : {"127.0.0.1", "localhost", "127.0.1.1"}) {
    for (const char* scheduler : {"127.0.0.1:4321", "localhost:4321"}) {
      EXPECT_TRUE(CheckReachableFromOtherHosts(address, scheduler).ok());
    }
    const absl::Status status =
        CheckReachableFromOtherHosts(address, "198.51.100.7:4321");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(StartsWith(std::string("--address: ") + address + " is "),
              HasSubstr("reached from this host only, and the scheduler at "
                        "198.51.100.7:4321 is on another"),
              Not(HasSubstr("127.0.0.1 ("))));
  }
}

// On whichever of its addresses: that is what `troupe up` on one host is, too.
TEST(OwnAddress, EachAddressOfThisHostIsASchedulersOfThisHost) {
  for (const std::string& own : OwnAddresses()) {
    const std::string address = own.substr(0, own.find(' '));
    const bool v6 = address.find(':') != address.npos;
    const std::string scheduler =
        v6 ? "[" + address + "]:4321" : address + ":4321";
    EXPECT_TRUE(CheckReachableFromOtherHosts("127.0.0.1", scheduler).ok());
    if (!v6) {
      EXPECT_EQ(CheckReachableFromOtherHosts(address, "198.51.100.7:1").ok(),
                address.substr(0, 4) != "127.");
    }
  }
}

// Whether that is so is found when the worker connects.
TEST(OwnAddress, ASchedulerOfAnUnknownNameIsNotJudged) {
  EXPECT_TRUE(
      CheckReachableFromOtherHosts("127.0.0.1", "head.invalid:4321").ok());
}

}  // namespace
}  // namespace troupe
